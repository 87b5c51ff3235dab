"""Test that a backup holds everything as of one moment, also during writes, and restores into
either database.
"""

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import Group, User
from django.core.management import CommandError, call_command

from backlog_site.operations import backups
from resources_app.history import change_log, revisions
from resources_app.history.documents import document_of
from resources_app.identity import tokens
from resources_app.models import Change, Task
from resources_app.reading.by_address import read
from resources_app.writing import batches, stored_files, write_path
from search_app.search import search_unified
from tests.concurrency.crew import line_up, send, together
from tests.factories import as_actor, make_epic, make_task, system, task_uri
from tests.other_processes import ROOT, environment, run, shared_environment

pytestmark = pytest.mark.django_db(transaction=True, serialized_rollback=True)

RESTORE = """
import sys
from django.core.management import call_command
call_command("migrate", verbosity=0)
call_command("restore", sys.argv[1])
call_command("backup", sys.argv[2])
"""
WRITERS, BATCHES, BACKUPS = 2, 40, 4
LAST_RELEASE = ROOT / "tests/fixtures/releases/0007.jsonl.gz"


def rows_in(file: Path) -> list[Any]:
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        *rows, end = [json.loads(line) for line in lines][1:]
    return [*rows, {"end": end["end"]}]


def restored_elsewhere(file: Path, folder: Path) -> Path:
    """Restore into a new SQLite database and return a backup of it."""
    again = folder / "again.gz"
    run(environment(folder, f"sqlite:///{folder / 'other.sqlite3'}"), RESTORE, file, again)
    return again


def fill(alice: User, carol: User) -> Task:
    Group.objects.create(name="design").user_set.add(alice)
    epic = make_epic(title="Эпик 数据库")
    task = make_task(
        title="Hidden",
        epic_id=epic.ref,
        groups=["design"],
        labels=["a", "b"],
        due_date="2026-12-01",
    )
    make_task(title="Needs it", depends_on=[task.ref])
    write_path.add_comment(as_actor(alice), task_uri(task), "Said \x0b here\u2028")
    stored_files.create_resource(
        as_actor(alice), "artifacts/logo.png", b"\x89PNG\r\n\x1a\n\x00\xff"
    )
    write_path.write(
        as_actor(alice), task_uri(task, "description"), {"type": "set", "value": "one\r\ntwo\n"}
    )
    tokens.create(alice, "laptop", "write")
    return task


def test_everything_comes_back_in_another_database(
    alice: User, carol: User, tmp_path: Path
) -> None:
    fill(alice, carol)
    call_command("backup", tmp_path / "all.gz")
    again = restored_elsewhere(tmp_path / "all.gz", tmp_path)
    assert rows_in(again) == rows_in(tmp_path / "all.gz")
    assert (tmp_path / "all.gz").stat().st_mode & 0o077 == 0


def test_a_restored_site_goes_on(alice: User, carol: User, tmp_path: Path) -> None:
    task = fill(alice, carol)
    call_command("backup", tmp_path / "all.gz")
    make_task(title="Written after the backup")
    call_command("restore", tmp_path / "all.gz", replace=True)
    assert not Task.objects.filter(title="Written after the backup").exists()
    write_path.write(as_actor(alice), task_uri(task, "title"), {"type": "set", "value": "Seen"})
    assert make_task(title="The next").number == task.number + 2
    assert Change.objects.filter(object_id=task.pk, kind="task").count() == 3


def test_a_backup_of_the_release_before_is_restored_and_goes_on() -> None:
    call_command("restore", LAST_RELEASE)
    alice = User.objects.get(username="alice")
    before = [row for row in rows_in(LAST_RELEASE) if row.get("model") == "resources_app.change"]
    told, cursor = change_log.feed(alice, "", 100)
    assert [change.pk for change in told] == [row["pk"] for row in before]
    # A cursor issued by the previous release still works.
    third = before[2]
    told, _ = change_log.feed(alice, f"{third['fields']['txid']}.{third['pk']}", 100)
    assert [change.pk for change in told] == [row["pk"] for row in before[3:]]
    task = Task.objects.get(number=1)
    assert (
        revisions.document_at("task", task.pk, 3) == document_of(task)
        and task.description == "one\r\ntwo\n"
    )
    assert search_unified(alice, "kestrel")["results"][0]["uri"] == task_uri(task)
    assert read(as_actor(alice), "mcp://backlog/tasks").contents["total"] == 2
    write_path.write(as_actor(alice), task_uri(task, "title"), {"type": "set", "value": "Seen"})
    assert [change.version for change in change_log.feed(alice, cursor, 100)[0]] == [4]
    assert make_task(title="The next").number == 4


def test_a_backup_of_a_newer_release_is_refused_with_its_migrations(
    alice: User, tmp_path: Path
) -> None:
    call_command("backup", tmp_path / "all.gz")
    lines = gzip.decompress((tmp_path / "all.gz").read_bytes()).decode().splitlines(keepends=True)
    head = json.loads(lines[0])
    head["migrations"].append(["resources_app", "9999_made_by_a_newer_release"])
    body = "".join([json.dumps(head) + "\n", *lines[1:-1]])
    end = json.loads(lines[-1]) | {"sha256": hashlib.sha256(body.encode()).hexdigest()}
    (tmp_path / "all.gz").write_bytes(gzip.compress((body + json.dumps(end) + "\n").encode()))
    with pytest.raises(
        CommandError, match=r"newer release.*resources_app\.9999_made_by_a_newer_release"
    ):
        call_command("restore", tmp_path / "all.gz", replace=True)


def test_a_database_with_something_in_it_is_left_alone(alice: User, tmp_path: Path) -> None:
    make_task(title="Here before")
    call_command("backup", tmp_path / "all.gz")
    with pytest.raises(CommandError, match="not empty"):
        call_command("restore", tmp_path / "all.gz")
    assert Task.objects.get().title == "Here before"


@pytest.mark.parametrize(
    "damage", ["cut", "no end", "other", "another version", "missing", "tampered", "more"]
)
def test_a_damaged_file_changes_nothing(alice: User, tmp_path: Path, damage: str) -> None:
    make_task(title="Here before")
    file = tmp_path / "all.gz"
    call_command("backup", file)
    lines = gzip.decompress(file.read_bytes()).decode().splitlines(keepends=True)
    if damage == "cut":
        file.write_bytes(file.read_bytes()[:-20])
    elif damage == "no end":
        file.write_bytes(gzip.compress("".join(lines[:-1]).encode()))
    elif damage == "other":
        file.write_bytes(gzip.compress(b'{"title": "no backup"}\n'))
    elif damage == "another version":
        file.write_bytes(
            gzip.compress(
                "".join([lines[0].replace("0001_initial", "0001_other"), *lines[1:]]).encode()
            )
        )
    elif damage == "tampered":
        file.write_bytes(
            gzip.compress("".join(lines).replace("Here before", "Here behind").encode())
        )
    elif damage == "more":
        file.write_bytes(gzip.compress("".join([*lines, lines[1]]).encode()))
    else:
        file.unlink()
    with pytest.raises(CommandError):
        call_command("restore", file, replace=True)
    assert Task.objects.get().title == "Here before"


def without_checksum(file: Path) -> list[str]:
    """The lines of the backup as they were before there were checksums."""
    head, *rows, end = gzip.decompress(file.read_bytes()).decode().splitlines(keepends=True)
    old = {name: value for name, value in json.loads(head).items() if name != "checksum"}
    return [f"{json.dumps(old)}\n", *rows, json.dumps({"end": json.loads(end)["end"]}) + "\n"]


def test_a_backup_without_a_checksum_is_restored_and_its_end_is_its_end(
    alice: User, tmp_path: Path
) -> None:
    make_task(title="Here before")
    file = tmp_path / "all.gz"
    call_command("backup", file)
    lines = without_checksum(file)
    Task.objects.update(title="Changed since")
    file.write_bytes(gzip.compress("".join([*lines, lines[1]]).encode()))
    with pytest.raises(CommandError, match="after its end"):
        call_command("restore", file, replace=True)
    assert Task.objects.get().title == "Changed since"
    file.write_bytes(gzip.compress("".join(lines).encode()))
    call_command("restore", file, replace=True)
    assert Task.objects.get().title == "Here before"


def test_a_checksum_that_was_taken_out_is_missed(alice: User, tmp_path: Path) -> None:
    make_task(title="Here before")
    file = tmp_path / "all.gz"
    call_command("backup", file)
    head, *_ = gzip.decompress(file.read_bytes()).decode().splitlines(keepends=True)
    file.write_bytes(gzip.compress("".join([head, *without_checksum(file)[1:]]).encode()))
    with pytest.raises(CommandError, match="checksum does not match"):
        call_command("restore", file, replace=True)


def test_a_backup_that_fails_leaves_the_one_before(alice: User, tmp_path: Path) -> None:
    call_command("backup", tmp_path / "all.gz")
    before = (tmp_path / "all.gz").read_bytes()

    def full(**_: Any) -> None:
        raise OSError("No space left on device")

    with pytest.raises(OSError, match="No space"):
        backups.back_up(tmp_path / "all.gz", full)
    assert [file.read_bytes() for file in tmp_path.glob("all.gz*")] == [before]


def write_or_back_up(part: int) -> list[str]:
    """Take backups in the last process; the others write the same line to both tasks, in one batch
    each.
    """
    line_up()
    if part < WRITERS:
        actor, both = system(), list(Task.objects.all())
        for number in range(BATCHES):
            line = {"type": "append", "content": f"{part}.{number}\n"}
            batches.write_batch(
                actor, [{"uri": task_uri(one, "description"), "operation": line} for one in both]
            )
        return []
    files = [f"{settings.DATA_DIR}/{number}.gz" for number in range(BACKUPS)]
    for file in files:
        backups.back_up(Path(file), lambda **_: None)
    return files


def back_up_while_others_write() -> list[str]:
    system()
    make_task(title="One")
    make_task(title="Other")
    return together(write_or_back_up, range(WRITERS + 1))[-1]


def test_a_backup_under_load_holds_no_half_of_a_batch(tmp_path: Path) -> None:
    files = send(shared_environment(tmp_path, BACKLOG_DB_POOL="1"), back_up_while_others_write)
    assert len(files) == BACKUPS
    for file in map(Path, files):
        rows = rows_in(file)
        texts = {
            row["fields"]["description"] for row in rows if row.get("model") == "resources_app.task"
        }
        assert len(texts) == 1
        lines = texts.pop().splitlines()
        recorded = [row for row in rows if row.get("model") == "resources_app.change"]
        assert len(recorded) == 2 * (1 + len(lines))
    restored_elsewhere(Path(files[-1]), tmp_path)
