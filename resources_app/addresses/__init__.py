"""Parse URIs and resolve them to write targets. The table of patterns is in reading/registry.py."""
