"""Sign users in, manage their sessions, tokens and agent connections, and serve OAuth."""
