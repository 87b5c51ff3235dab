"""Import and export: markdown trees, mirrored folders and converted links."""
