"""Read resources: `by_address.read(actor, uri)`, and one reader module per kind."""
