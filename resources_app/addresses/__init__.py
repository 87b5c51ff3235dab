"""Parse URIs and build write targets. The table of patterns is in reading/registry.py."""
