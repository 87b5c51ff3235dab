"""What breaks, on purpose: processes killed, servers away, files damaged."""
