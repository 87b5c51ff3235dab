"""Test that migrations after the last release only add: processes of that release keep working
until they are restarted.
"""

from typing import Any

import pytest
from django.db import migrations, models
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations.base import Operation

# The newest migration of each app in the last release. Move these up with each release.
LAST_RELEASE = {"resources_app": 7, "search_app": 6}
# Published releases. A migration may remove what one of them has stopped using, and names it:
# `contracts = "0.1.0"`.
RELEASES: set[str] = set()
HARMLESS = (
    migrations.CreateModel,
    migrations.AddIndex,
    migrations.RemoveIndex,
    migrations.RenameIndex,
    migrations.RemoveConstraint,
    migrations.RunPython,
    migrations.AlterModelOptions,
    migrations.AlterModelManagers,
)


def offences(operations: list[Operation]) -> list[str]:
    """Return operations that processes of the previous release could fail at."""
    added = {
        (_of(one, "model_name"), _of(one, "name"))
        for one in operations
        if isinstance(one, migrations.AddField)
    }
    return [one.describe() for one in operations if not _is_expansion(one, added)]


def _is_expansion(operation: Operation, added: set[tuple[str, str]]) -> bool:
    if isinstance(operation, migrations.SeparateDatabaseAndState):
        return not offences(operation.database_operations)
    if isinstance(operation, migrations.AddField):
        return _can_be_left_out(operation.field)
    if isinstance(operation, migrations.AlterField):
        return bool(operation.field.null)
    if isinstance(operation, migrations.AddConstraint):
        # On new columns only: a constraint on old ones rejects writes of the previous release.
        named = getattr(operation.constraint, "fields", ())
        return bool(named) and all((operation.model_name, name) in added for name in named)
    return isinstance(operation, HARMLESS)


def _can_be_left_out(field: Any) -> bool:
    """Return whether an INSERT may omit the column, as the previous release does.

    Django drops a plain default from the database.
    """
    is_optional = field.null or field.many_to_many or field.generated
    return bool(is_optional or field.db_default is not models.NOT_PROVIDED)


def _of(operation: Operation, name: str) -> str:
    return str(getattr(operation, name)).lower()


def test_migrations_since_the_last_release_only_add() -> None:
    found = {}
    for (label, name), migration in MigrationLoader(None).disk_migrations.items():
        is_new = label in LAST_RELEASE and int(name.split("_")[0]) > LAST_RELEASE[label]
        if (
            is_new
            and getattr(migration, "contracts", None) not in RELEASES
            and (wrong := offences(migration.operations))
        ):
            found[f"{label}.{name}"] = wrong
    assert found == {}


def test_the_last_release_is_one_that_exists() -> None:
    names = [
        (label, int(name.split("_")[0]))
        for label, name in MigrationLoader(None).disk_migrations
        if label in LAST_RELEASE
    ]
    assert set(LAST_RELEASE.items()) <= set(names)


NUMBER = models.IntegerField()


@pytest.mark.parametrize(
    "operation",
    [
        migrations.RemoveField("task", "title"),
        migrations.RenameField("task", "title", "heading"),
        migrations.AddField("task", "size", models.IntegerField(default=0)),
        migrations.AlterField("task", "title", NUMBER),
        migrations.DeleteModel("Task"),
        migrations.RenameModel("Task", "Item"),
        migrations.AlterModelTable("task", "items"),
        migrations.AlterUniqueTogether("task", {("title",)}),
        migrations.AddConstraint("task", models.UniqueConstraint(fields=["title"], name="once")),
        migrations.AddConstraint(
            "task", models.CheckConstraint(condition=models.Q(title="x"), name="x")
        ),
        migrations.RunSQL("DROP TABLE resources_app_task"),
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RemoveField("task", "title")]
        ),
    ],
)
def test_an_operation_that_the_last_release_could_fail_at_is_refused(operation: Operation) -> None:
    assert offences([operation])


@pytest.mark.parametrize(
    "operation",
    [
        migrations.AddField("task", "size", models.IntegerField(null=True)),
        migrations.AddField("task", "size", models.IntegerField(db_default=0)),
        migrations.AddField(
            "task",
            "size",
            models.GeneratedField(
                expression=models.F("number"), output_field=NUMBER, db_persist=True
            ),
        ),
        migrations.AddIndex("task", models.Index(fields=["title"], name="by_title")),
        migrations.RunPython(migrations.RunPython.noop),
    ],
)
def test_an_operation_that_adds_is_accepted(operation: Operation) -> None:
    assert not offences([operation])
