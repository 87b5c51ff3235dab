"""Test deliberate failures: processes killed, servers down, files damaged."""
