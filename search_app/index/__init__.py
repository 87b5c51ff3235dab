"""Define the documents of the index, write them and rebuild them."""
