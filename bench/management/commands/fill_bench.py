"""Run `manage.py fill_bench TASKS`: fill and index empty tables, and print a token."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management import BaseCommand

from bench.filling import analyse, enter_again, fill, index


class Command(BaseCommand):
    help = "Fills an empty database for the benchmark; prints a token and how fast the index is."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("tasks", type=int)

    def handle(self, *args: Any, tasks: int, **options: Any) -> None:
        token, speed = fill(tasks), index()
        analyse()
        figures = {"reindex_docs_per_cpu_s": speed, "index_update_p95_ms": enter_again()}
        self.stdout.write(json.dumps({"token": token, **figures}))
