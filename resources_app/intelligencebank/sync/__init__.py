"""Sync the mirror with runs that can be killed at any point and never delete on doubt."""
