"""The write path: one module per verb, and the session that every write goes through."""
