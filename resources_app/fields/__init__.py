"""Declare each field once."""
