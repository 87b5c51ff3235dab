"""Integrate IntelligenceBank: a client, a mirror, and each user's own rights."""
