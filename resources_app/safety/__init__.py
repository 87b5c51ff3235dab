"""Protect secrets and requests: secret masking and public-address checks."""
