"""The query language of collections, and counters that answer without counting."""
