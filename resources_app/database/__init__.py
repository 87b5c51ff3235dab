"""Contain the code that depends on the database."""
