"""What comes in and goes out: markdown trees, mirrored folders, converted links."""
