"""Provide the database backend of the embedded default."""
