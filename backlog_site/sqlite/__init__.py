"""The database backend of the embedded default."""
