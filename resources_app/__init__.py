"""The domain: what the backlog holds, how it is addressed, read and written."""
