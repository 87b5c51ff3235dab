"""Serve the web viewer.

Each view parses a request, calls one domain function and renders a template.
"""
