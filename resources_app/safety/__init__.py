"""What keeps secrets and requests inside: masking of secrets, public addresses."""
