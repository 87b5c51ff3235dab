"""What every request passes: threads, rate limits, metrics, static files."""
