"""The few places that know the database."""
