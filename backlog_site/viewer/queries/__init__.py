"""Query what the viewer's pages show.

Each answer is for one user and takes a constant number of queries.
"""
