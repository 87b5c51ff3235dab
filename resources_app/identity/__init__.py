"""Who acts: roles, tokens, credentials, service accounts, OAuth grants."""
