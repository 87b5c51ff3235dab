"""`python -m bench.serving`: CPU of one request in Django's two handlers and in the site's own, on both databases.

The handlers are called directly, so that no server is compared with another.
"""

import json
import sys

from rich.console import Console
from rich.table import Table

from bench.servers import fill, manage, surroundings

DATABASES = ("sqlite", "postgres")
TASKS = 1_000
REQUESTS = 100


def main() -> int:
    table = Table(title="CPU in ms per request", title_justify="left")
    for heading in ("database", "request", "WSGI", "ASGI", "site"):
        table.add_column(heading, justify="left" if heading in {"database", "request"} else "right")
    for database in DATABASES:
        with surroundings(database) as around:
            environment = around(TASKS)
            filled = fill(environment, TASKS)
            found = json.loads(manage(environment, "bench_serving", filled.token, str(REQUESTS)))
        for request, by_handler in found.items():
            table.add_row(database, request, *(f"{cpu:.2f}" for cpu in by_handler.values()))
    Console().print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
