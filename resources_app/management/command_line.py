"""Share code of the admin commands on files: the acting user, a progress bar and a report."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from resources_app.identity.roles import Actor, is_admin, system_actor
from resources_app.interchange.tree import Report
from resources_app.vocabulary import Via


def add_user_argument(parser: CommandParser) -> None:
    parser.add_argument(
        "--user",
        metavar="NAME",
        help="the admin in whose name it happens; the first superuser if left out",
    )


def admin_actor(name: str | None) -> Actor:
    """Return the actor.

    In an empty database there is no user yet, so the history names no author.
    """
    people = User.objects.filter(is_active=True).order_by("pk")
    if name is None:
        first = people.filter(is_superuser=True).first()
        return Actor(first, Via.IMPORT) if first else system_actor(Via.IMPORT)
    user = people.filter(username=name).first()
    if user is None or not is_admin(user):
        raise CommandError(f"There is no admin {name!r}. Name one with --user, or leave it out.")
    return Actor(user, Via.IMPORT)


@contextmanager
def progress_bar(title: str, total: int | None) -> Iterator[Callable[..., None]]:
    """Show a progress bar on a terminal, nothing elsewhere.

    Call the yielded function once per object, or with a number of objects.
    """
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as progress:
        task = progress.add_task(title, total=total)
        yield lambda _name="", steps=1: progress.advance(task, steps)


def print_report(command: BaseCommand, report: Report) -> None:
    """Print what needs attention and count the rest.

    Raises CommandError if something was rejected.
    """
    for problems, style in (
        (report.warnings, command.style.WARNING),
        (report.failures, command.style.ERROR),
    ):
        for path, message in problems:
            command.stderr.write(_printable(f"{path}: {message}"), style)
    for reason, paths in _by_reason(report.left_out).items():
        command.stderr.write(f"Left out, {len(paths)}: {reason}", command.style.WARNING)
        command.stderr.write(
            _printable("\n".join(f"  {path}" for path in paths)), lambda line: line
        )
    counts = ", ".join(f"{count} {what}" for what, count in sorted(report.counts.items()))
    command.stdout.write(counts or "Nothing was found.")
    if report.left_out:
        command.stdout.write(
            _printable(f"{len(report.left_out)} left out: {_by_folder(report.left_out)}")
        )
    if report.failures:
        raise CommandError(f"{len(report.failures)} refused, see above. Everything else was done.")


def _by_reason(left_out: list[tuple[str, str]]) -> dict[str, list[str]]:
    paths: dict[str, list[str]] = {}
    for path, reason in left_out:
        paths.setdefault(reason, []).append(path)
    return paths


def _by_folder(left_out: list[tuple[str, str]]) -> str:
    counts = Counter(f"{path.partition('/')[0]}/" if "/" in path else path for path, _ in left_out)
    return ", ".join(
        f"{count} in {folder}" if folder.endswith("/") else folder
        for folder, count in counts.items()
    )


def _printable(line: str) -> str:
    """Escape file names whose bytes are not valid text."""
    return line.encode(errors="backslashreplace").decode()
