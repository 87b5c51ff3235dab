"""Signing in, what somebody has here (sessions, tokens, the way for their agents), and OAuth."""
