"""Run `python -m bench.serving [REQUESTS]`: CPU of one request in Django's two handlers and in the
site's own, on both databases.

The handlers are called directly, so that servers are not part of the comparison.
"""

import json
import sys

from bench.servers import fill, manage, surroundings

DATABASES = ("sqlite", "postgres")
TASKS = 1_000
REQUESTS = 200


def main(requests: int = REQUESTS) -> int:
    print(
        f"{'CPU in ms per request':32}" + "".join(f"{name:>8}" for name in ("WSGI", "ASGI", "site"))
    )
    for database in DATABASES:
        with surroundings(database) as around:
            environment = around(TASKS)
            filled = fill(environment, TASKS)
            found = json.loads(manage(environment, "bench_serving", filled.token, str(requests)))
        for request, by_handler in found.items():
            print(
                f"{database:10} {request:20} "
                + "".join(f"{cpu:8.2f}" for cpu in by_handler.values()),
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
