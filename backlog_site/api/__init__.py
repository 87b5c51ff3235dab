"""REST adapters over resources_app."""
