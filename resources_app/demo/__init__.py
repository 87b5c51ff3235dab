"""Provide the demo team and its backlog."""
