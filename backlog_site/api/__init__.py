"""Adapt resources_app to REST."""
