"""What a URI is, and what a write to one points at. The table of patterns is reading/registry.py."""
