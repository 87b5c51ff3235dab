"""Provide what every request passes through: threads, rate limits, metrics and static files."""
