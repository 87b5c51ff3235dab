"""Implement the query language of collections, and counters that avoid counting rows."""
