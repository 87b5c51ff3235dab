"""Identify the actor: roles, tokens, credentials, service accounts and OAuth grants."""
