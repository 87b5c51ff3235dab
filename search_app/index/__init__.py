"""The index: what a document is, how it is written and rebuilt."""
