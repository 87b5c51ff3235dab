"""The field table: one declaration per field."""
