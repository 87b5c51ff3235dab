"""Implement the domain: storing, addressing, reading and writing the backlog."""
