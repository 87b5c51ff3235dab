"""Test that a database of the first release, with its data, is migrated to this release and loses
nothing.
"""

import json
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.color import no_style
from django.db import connection, transaction
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.utils import timezone

from resources_app.history import change_log, revisions
from resources_app.history.change_log import _CurrentTransaction
from resources_app.history.documents import document_of
from resources_app.identity import tokens
from resources_app.models import Comment, Epic, Resource, Task
from resources_app.reading.by_address import read
from resources_app.vocabulary import Status
from resources_app.writing import write_path
from search_app.index.rebuild import index_health, sweep
from search_app.models import Document
from search_app.search import search_unified
from tests.concurrency.crew import send
from tests.factories import as_actor, make_task, task_uri
from tests.mcp.site import new_database
from tests.other_processes import ROOT, environment, result, start

RELEASE = ("resources_app", "0002_roles_and_counters")
ROWS = ROOT / "tests/fixtures/releases/0002.json"
KINDS = {"task": Task, "epic": Epic, "comment": Comment, "resource": Resource}


def fill_as_the_release_did() -> None:
    """Fill it through the models of that release, so that only its tables and columns exist."""
    call_command("migrate", *RELEASE, verbosity=0)
    models = MigrationLoader(connection).project_state([RELEASE]).apps
    rows = json.loads(ROWS.read_text())
    with transaction.atomic():
        for label, values in rows.items():
            for value in values:
                models.get_model(label)(**value).save()
    with connection.cursor() as cursor:
        for statement in connection.ops.sequence_reset_sql(
            no_style(), [models.get_model(label) for label in rows]
        ):
            cursor.execute(statement)


def upgrade_and_look() -> dict[str, Any]:
    """Migrate and return what a user who could see everything then can see now."""
    call_command("migrate", verbosity=0)
    sweep()
    alice = User.objects.get(username="alice")
    actor = as_actor(alice)
    feed = read(actor, "mcp://backlog/changes?limit=200").contents["results"]
    listed = read(actor, "mcp://backlog/tasks").contents
    words = ["kestrel", "pangolin", "ocelot", "数据库"]
    found = {word: [hit["uri"] for hit in search_unified(alice, word)["results"]] for word in words}
    seen = {
        "rows": {
            kind: list(model.objects.order_by("pk").values()) for kind, model in KINDS.items()
        },
        "total": listed["total"],
        "listed": sorted(task["id"] for task in listed["results"]),
        "changes": [change["uri"] for change in feed],
        "found": found,
        "index": index_health()["status"],
        "replayed": [
            replays(kind, row) for kind, model in KINDS.items() for row in model.objects.all()
        ],
        "tokens": [token.name for token in tokens.tokens_of(alice)],
        "bob": search_unified(User.objects.get(username="bob"), "designers")["total"],
    }
    task = Task.objects.get(number=1)
    seen["written"] = write_path.write(
        actor, task_uri(task, "title"), {"type": "set", "value": "Moved"}
    )["version"]
    seen["created"] = make_task(actor=actor).ref
    answer: dict[str, Any] = json.loads(json.dumps(seen, default=str))
    return answer


def replays(kind: str, row: Any) -> bool:
    """Return whether each version is one step from the previous one, and the last is the current
    state.
    """
    versions = [
        revisions.document_at(kind, row.pk, version) for version in range(1, row.version + 1)
    ]
    return versions[-1] == document_of(row) and all(
        one != other for one, other in pairwise(versions)
    )


def test_a_database_of_the_first_release_is_brought_to_this_one(tmp_path: Path) -> None:
    before = json.loads(ROWS.read_text())
    with new_database(tmp_path) as url:
        variables = environment(tmp_path, url)
        send(variables, fill_as_the_release_did)
        after = send(variables, upgrade_and_look)
    for kind, model in KINDS.items():
        columns = [name for name in before[model._meta.label][0] if not name.endswith("_at")]
        assert pick(after["rows"][kind], columns) == pick(before[model._meta.label], columns)
    live = [task for task in before["resources_app.Task"] if not task["archived_at"]]
    assert after["total"] == len(live) and after["listed"] == [
        f"TASK-{task['number']:04d}" for task in live
    ]
    assert after["changes"] == [change["uri"] for change in before["resources_app.Change"]]
    assert all(after["replayed"]) and after["index"] == "ok"
    assert all(after["found"].values()), after["found"]
    assert (after["tokens"], after["bob"]) == (["laptop"], 0)
    assert after["written"] == before["resources_app.Task"][0]["version"] + 1
    assert after["created"] == f"TASK-{len(before['resources_app.Task']) + 1:04d}"


INDEX_BEFORE = ("search_app", "0005_marks")
TEXT_BEFORE = {
    "sqlite": (
        "INSERT INTO search_text_a (rowid, title, body, marks) VALUES (%(id)s, %(title)s, ' words"
        " ', '')"
    ),
    "postgresql": (
        "UPDATE search_app_document SET title = %(title)s, body = ' words ',"
        " terms = to_tsvector('simple', %(title)s) || 'words'::tsvector WHERE id = %(id)s"
    ),
}


def index_as_it_was_before() -> list[str]:
    """Create rows and texts as the previous index schema stored them. Return the titles."""
    fill_as_the_release_did()
    call_command("migrate", "resources_app", verbosity=0)
    call_command("migrate", *INDEX_BEFORE, verbosity=0)
    document = (
        MigrationLoader(connection)
        .project_state([INDEX_BEFORE])
        .apps.get_model("search_app", "Document")
    )
    titles = [f"needle {chr(97 + task.pk)}" for task in Task.objects.all()]
    with connection.cursor() as cursor:
        for task, title in zip(Task.objects.all(), titles, strict=True):
            about = {
                "object_id": task.pk,
                "updated_at": task.updated_at,
                "version": task.version,
                "title_key": title,
            }
            flags = {
                "archived": bool(task.archived_at),
                "restricted": task.restricted,
                "status": task.status,
            }
            row = document.objects.create(
                slot="a", kind="task", length=3, pending=False, **about, **flags
            )
            cursor.execute(
                TEXT_BEFORE[connection.vendor],
                {"id": row.pk, "title": f" {title.replace(' ', '  ')} "},
            )
    return titles


def look_into_the_index(title: str) -> dict[str, Any]:
    """Search without a sweep, so that every hit was carried over."""
    call_command("migrate", verbosity=0)
    alice = User.objects.get(username="alice")
    by_status = {
        status: search_unified(alice, "needle", status=status)["total"] for status in Status.labels
    }
    return {
        "explained": search_unified(alice, title, explain=True)["results"][0]["explain"],
        "total": search_unified(alice, "needle", types="task")["total"],
        "by_status": by_status,
        "visible": Task.objects.visible_to(alice).live().count(),
        "anew": (make_task(title="Anew"), Document.objects.count())[1],
    }


def test_the_index_is_carried_over_as_it_is(tmp_path: Path) -> None:
    with new_database(tmp_path) as url:
        variables = environment(tmp_path, url)
        titles = send(variables, index_as_it_was_before)
        after = send(variables, look_into_the_index, titles[0])
    assert after["explained"]["exact_title"] == 5.0
    assert after["total"] == sum(after["by_status"].values()) == after["visible"] > 0
    assert after["anew"] == len(titles) + 1


LAST_RELEASE = [("resources_app", "0007_ib_written_at"), ("search_app", "0006_marks_of_both")]
WRITERS, WRITES_AFTER = 4, 10


def bring_to_the_last_release() -> None:
    fill_as_the_release_did()
    executor = MigrationExecutor(connection)
    ours = dict(LAST_RELEASE)
    executor.migrate(
        [
            *LAST_RELEASE,
            *(leaf for leaf in executor.loader.graph.leaf_nodes() if leaf[0] not in ours),
        ]
    )


def migrate_to_this_release() -> None:
    call_command("migrate", verbosity=0)


def write_as_the_last_release_did(migrated: Path) -> int:
    """Run statements of a process that still runs the last release.

    Ends a few writes after the database was migrated.
    """
    models = MigrationLoader(connection).project_state(LAST_RELEASE).apps
    written = left = 0
    while left < WRITES_AFTER:
        left += migrated.exists()
        write_once(models)
        read_once(models)
        written += 1
        time.sleep(
            0.02
        )  # SQLite polls for its lock: writers that never pause would starve any other statement
        if written == 1:
            print("writing", flush=True)
    return written


def write_once(models: Any) -> None:
    """Make one update as `writing.write` does: the row, its counts, its change and revision, its
    document.
    """
    task_model, change_model = (
        models.get_model("resources_app", name) for name in ("Task", "Change")
    )
    with transaction.atomic():
        task = task_model.objects.select_for_update(no_key=True).order_by("pk").first()
        title, version = f"Title {task.version}", task.version + 1
        column = {
            "title": title,
            "version": version,
            "field_versions": {**task.field_versions, "title": version},
        }
        assert task_model.objects.filter(pk=task.pk, version=task.version).update(**column) == 1
        tally = {"kind": "task", "status": task.status, "priority": task.priority}
        models.get_model("resources_app", "Tally").objects.bulk_create(
            models.get_model("resources_app", "Tally")(**tally, step=step) for step in (-1, 1)
        )
        txid = _CurrentTransaction() if connection.vendor == "postgresql" else 0
        about = {"kind": "task", "object_id": task.pk, "version": version}
        change = change_model(
            txid=txid, ref="TASK-0001", uri="mcp://backlog/tasks/TASK-0001/title", **about
        )
        change.action, change.fields, change.via, change.created_at = (
            "update",
            ["title"],
            "rest",
            timezone.now(),
        )
        change.save(force_insert=True)
        delta = {"title": {"set": title}}
        models.get_model("resources_app", "Revision").objects.create(
            change_id=change.pk, delta=delta, snapshot={"title": title}, **about
        )
        models.get_model("search_app", "Document").objects.filter(
            kind="task", object_id=task.pk
        ).update(version=version)


def read_once(models: Any) -> None:
    """Read the feed, a list and the index, with every column that the release uses."""
    list(models.get_model("resources_app", "Change").objects.order_by("txid", "id")[:5])
    list(models.get_model("resources_app", "Task").objects.order_by("-updated_at")[:5])
    list(models.get_model("search_app", "Document").objects.all()[:5])


def follow_the_feed() -> dict[str, Any]:
    """Return what the new release reports of the old one's writes, after both have written."""
    alice = User.objects.get(username="alice")
    task = Task.objects.order_by("pk").first()
    assert task is not None
    write_path.write(
        as_actor(alice), task_uri(task, "title"), {"type": "set", "value": "By the new release"}
    )
    told, since = [], ""
    while (page := change_log.feed(alice, since, 50))[0]:
        told += [(change.ref, change.version) for change in page[0]]
        since = page[1]
    return {"versions": [version for ref, version in told if ref == task.ref], "count": len(told)}


WRITE = """
import sys
from pathlib import Path
from tests.faults.test_upgrade import write_as_the_last_release_did
print(write_as_the_last_release_did(Path(sys.argv[1])))
"""


def test_writers_of_the_last_release_do_not_fail_while_the_database_is_migrated(
    tmp_path: Path,
) -> None:
    with new_database(tmp_path) as url:
        variables = environment(tmp_path, url) | {
            "BACKLOG_DB_POOL": "1",
            "BACKLOG_LOCK_SECONDS": "600",
        }
        send(variables, bring_to_the_last_release)
        before = len(json.loads(ROWS.read_text())["resources_app.Change"])
        writers = [start(variables, WRITE, tmp_path / "migrated") for _ in range(WRITERS)]
        assert [writer.stdout.readline() for writer in writers if writer.stdout] == [
            "writing\n"
        ] * WRITERS
        send(variables, migrate_to_this_release)
        (tmp_path / "migrated").touch()
        written = sum(int(result(writer)) for writer in writers)
        found = send(variables, follow_the_feed)
    assert written >= WRITERS * WRITES_AFTER
    assert found["count"] == before + written + 1
    assert found["versions"] == list(range(1, len(found["versions"]) + 1))


def pick(rows: list[dict[str, Any]], columns: list[str]) -> list[dict[str, Any]]:
    return [{name: row[name] for name in columns} for row in rows]
