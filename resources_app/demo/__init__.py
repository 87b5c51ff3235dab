"""The demo team and its backlog."""
