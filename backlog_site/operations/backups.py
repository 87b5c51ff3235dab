"""Back up the whole database as one compressed file of JSON lines while the site runs, and restore
it into either database.

The search index is left out, because it is rebuilt from the rest. Sessions are left out too, so
users sign in again.
"""

import gzip
import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import IO, Any

from django.apps import apps
from django.contrib.auth.models import User
from django.core import serializers
from django.core.management.color import no_style
from django.core.serializers.base import DeserializationError, DeserializedObject
from django.core.serializers.json import DjangoJSONEncoder
from django.db import IntegrityError, connection, transaction
from django.db.migrations.recorder import MigrationRecorder
from django.db.models import Model

from backlog_site.operations import checksums
from resources_app.models import Epic, Resource, Task
from resources_app.querying import counters

FORMAT = 1
BATCH = 500
# Four times the largest file: a few kilobytes of gzip can expand to a line of gigabytes.
MAX_LINE = 120_000_000
# Recreated after a restore by migrations, by `reindex` or by signing in.
LEFT_OUT_APPS = frozenset({"contenttypes", "sessions", "search_app"})
LEFT_OUT_MODELS = frozenset({"auth.permission"})

# Called with steps=, the number of rows done since the previous call.
Progress = Callable[..., None]


class BackupRefused(Exception):
    """Raised with what is wrong with the file or the database, and what to do."""


class _Exact(DjangoJSONEncoder):
    """Encode times exactly. Django's encoder truncates them to milliseconds."""

    def default(self, o: Any) -> Any:
        return o.isoformat() if isinstance(o, datetime) else super().default(o)


def kept_models() -> list[type[Model]]:
    models = [model for model in apps.get_models() if model._meta.managed and not model._meta.proxy]
    return [
        model
        for model in models
        if model._meta.app_label not in LEFT_OUT_APPS
        and model._meta.label_lower not in LEFT_OUT_MODELS
    ]


def count_rows() -> int:
    return sum(model._base_manager.count() for model in kept_models())


def back_up(target: Path, progress: Progress) -> int:
    """Write a temporary file first, so that the target is always complete.

    Returns the number of rows.
    """
    unfinished = target.with_name(f"{target.name}.unfinished")
    try:
        with gzip.open(unfinished, "wt", encoding="utf-8") as out, _one_moment():
            rows = _write_all(out, progress)
        unfinished.chmod(0o600)  # it holds everything, including token hashes
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)
    return rows


@contextmanager
def _one_moment() -> Iterator[None]:
    """Read every table from one snapshot without blocking writers."""
    if connection.vendor == "postgresql":
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield
        return
    with connection.cursor() as cursor:
        # atomic() would take the write lock; a deferred transaction only keeps its snapshot.
        cursor.execute("BEGIN DEFERRED")
        try:
            yield
        finally:
            cursor.execute("ROLLBACK")


def _write_all(file: IO[str], progress: Progress) -> int:
    head = {
        "backlog": FORMAT,
        "made_at": datetime.now(UTC).isoformat(),
        "migrations": _migrations(),
    }
    head["checksum"] = checksums.ALGORITHM
    out = checksums.SummedText(file)
    out.write(json.dumps(head) + "\n")
    done = 0
    for model in kept_models():
        rows = model._base_manager.order_by("pk").iterator(chunk_size=BATCH)
        while chunk := list(itertools.islice(rows, BATCH)):
            serializers.serialize(
                "jsonl",
                chunk,
                stream=out,
                cls=_Exact,
                ensure_ascii=False,
                use_natural_foreign_keys=True,
            )
            done += len(chunk)
            progress(steps=len(chunk))
    out.write(json.dumps({"end": done, checksums.ALGORITHM: out.hexdigest()}) + "\n")
    return done


def _migrations() -> list[list[str]]:
    labels = {model._meta.app_label for model in kept_models()}
    applied = MigrationRecorder(connection).applied_migrations()
    return sorted([app, name] for app, name in applied if app in labels)


def restore(source: Path, progress: Progress, *, replace: bool = False) -> int:
    """Restore all of the backup or nothing. The search index must be rebuilt afterwards."""
    if not _migrations():
        raise BackupRefused("This database has no tables yet: run manage.py migrate first.")
    if not replace and any(model.objects.exists() for model in (User, Task, Epic, Resource)):
        raise BackupRefused(
            "This database is not empty. Restore into a new one, or replace what is here: --replace"
        )
    try:
        checksums.verify(source)
        with (
            gzip.open(source, "rt", encoding="utf-8") as lines,
            transaction.atomic(),
            _times_as_given(),
        ):
            return _read_all(lines, progress)
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise BackupRefused(f"{source} cannot be read: {error}") from error
    except (ValueError, KeyError, DeserializationError, IntegrityError) as error:
        raise BackupRefused(f"{source} is damaged; nothing was changed. {error}") from error


@contextmanager
def _times_as_given() -> Iterator[None]:
    """Keep the times in the file for fields that otherwise take the time of saving."""
    fields: list[Any] = [field for model in kept_models() for field in model._meta.local_fields]
    stamped = [
        (field, name)
        for field in fields
        for name in ("auto_now", "auto_now_add")
        if getattr(field, name, False)
    ]
    for field, name in stamped:
        setattr(field, name, False)
    try:
        yield
    finally:
        for field, name in stamped:
            setattr(field, name, True)


def _read_all(lines: IO[str], progress: Progress) -> int:
    is_older = _check_head(json.loads(lines.readline(MAX_LINE)))
    for model in kept_models():
        _empty(model)
    done = 0
    for steps in _load(_rows_of(lines)):
        progress(steps=steps)
        done += steps
    if is_older:
        counters.recount()
    with connection.cursor() as cursor:
        for statement in connection.ops.sequence_reset_sql(no_style(), kept_models()):
            cursor.execute(statement)
    connection.check_constraints()
    return done


def _check_head(head: Any) -> bool:
    """Return whether an older release made the backup. Raise BackupRefused for a backup this
    release cannot read.

    Migrations only add (docs/upgrade.md), so rows of an older release fit. A later column takes its
    default, readers position its changes, and counts made by a migration are recomputed.
    """
    if not isinstance(head, dict) or head.get("backlog") != FORMAT:
        raise BackupRefused("This is not a backup of Backlog.")
    made, here = (
        {(app, name) for app, name in found} for found in (head["migrations"], _migrations())
    )
    if unknown := made - here:
        names = ", ".join(sorted(f"{app}.{name}" for app, name in unknown))
        raise BackupRefused(
            f"The backup was made by a newer release, which has the migrations {names}. Upgrade"
            " this site and run manage.py migrate, then restore."
        )
    return made != here


def _empty(model: type[Model]) -> None:
    """Delete all rows.

    References are checked when the transaction ends, so the order does not matter.
    """
    beside: list[Any] = [field.remote_field.through for field in model._meta.local_many_to_many]
    for table in (*beside, model):
        rows = table._base_manager.all()
        rows._raw_delete(rows.db)


def _refuse_more(lines: IO[str]) -> None:
    if lines.readline(MAX_LINE):
        raise ValueError("There is something after its end.")


def _rows_of(lines: IO[str]) -> Iterator[dict[str, Any]]:
    """Yield the rows between head and end. Raises ValueError for a truncated file."""
    for number, line in enumerate(iter(partial(lines.readline, MAX_LINE + 1), "")):
        if len(line) > MAX_LINE:
            raise ValueError(f"A line is longer than {MAX_LINE} characters.")
        row = json.loads(line)
        if row.get("end") == number:
            _refuse_more(lines)
            return
        yield row
    raise ValueError("Its end is missing.")


def _load(rows: Iterator[dict[str, Any]]) -> Iterator[int]:
    for _, group in itertools.groupby(rows, key=lambda row: row["model"]):
        while chunk := list(itertools.islice(group, BATCH)):
            found = list(serializers.deserialize("python", chunk))
            type(found[0].object)._base_manager.bulk_create([row.object for row in found])
            for row in found:
                _follow_relations(row)
            yield len(chunk)


def _follow_relations(row: DeserializedObject) -> None:
    for name, values in (row.m2m_data or {}).items():
        if values:
            getattr(row.object, name).set(values)
