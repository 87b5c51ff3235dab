"""Run `make bench`: measure the cost of a request over HTTP, at 1,000 to 100,000 tasks, on SQLite
and PostgreSQL.
"""
