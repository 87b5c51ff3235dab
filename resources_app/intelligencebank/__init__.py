"""IntelligenceBank: a client, a mirror that follows it, and each person's own rights in it."""
