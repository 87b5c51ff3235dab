"""Implement the write path: one module per verb, and the session behind every write."""
