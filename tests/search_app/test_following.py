"""Test that the index follows each write, in its transaction."""

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from resources_app.models import Task
from resources_app.writing import batches, stored_files, write_path
from search_app.models import Document
from search_app.search import search_unified
from tests.factories import as_actor, make_epic, make_task, system
from tests.search_app.finding import found


def uri(task: object, *rest: str) -> str:
    return "/".join(["mcp://backlog/tasks", task.ref, *rest])  # type: ignore[attr-defined]


def test_a_write_is_found_when_it_returns_and_what_it_replaced_is_not(alice: User) -> None:
    task = make_task(title="Aardvark", description="lives in a burrow")
    assert found(alice, "burrow") == [task.ref]
    operation = {"type": "str_replace", "old_str": "burrow", "new_str": "termitarium"}
    write_path.write(as_actor(alice), uri(task, "description"), operation)
    assert found(alice, "burrow") == []
    assert found(alice, "termitarium") == [task.ref]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("evidence", ["pelican"]),
        ("blocked_reason", ["pelican"]),
        ("labels", ["pelican"]),
        ("references", [{"url": "https://example.org/pelican", "title": "x"}]),
    ],
)
def test_each_field_is_found_and_named(alice: User, field: str, value: object) -> None:
    from search_app.search import search_unified

    task = make_task(title="Quiet")
    write_path.write(as_actor(alice), uri(task, field), {"type": "set", "value": value})
    [result] = search_unified(alice, "pelican")["results"]
    assert result["id"] == task.ref and result["snippet"]["matched_fields"] == [field]


def test_a_rolled_back_write_leaves_nothing_to_find(alice: User) -> None:
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        make_task(title="Phantom")
        raise ZeroDivisionError
    assert found(alice, "phantom") == []


def test_a_rehearsed_write_leaves_nothing_to_find(alice: User) -> None:
    task = make_task(title="Real")
    write_path.write(
        as_actor(alice), uri(task, "title"), {"type": "set", "value": "Phantom"}, dry_run=True
    )
    assert found(alice, "phantom") == [] and found(alice, "real") == [task.ref]


def test_a_batch_is_found_whole(alice: User) -> None:
    tasks = [make_task(title="Plain") for _ in range(3)]
    operations = [
        {"uri": uri(task, "title"), "operation": {"type": "set", "value": f"Batched {n}"}}
        for n, task in enumerate(tasks)
    ]
    batches.write_batch(as_actor(alice), operations)
    assert found(alice, "batched") == [task.ref for task in tasks]


def test_what_is_archived_is_gone_until_it_comes_back(alice: User) -> None:
    task = make_task(title="Needle")
    write_path.archive(as_actor(alice), uri(task))
    assert found(alice, "needle") == []
    write_path.unarchive(as_actor(alice), uri(task))
    assert found(alice, "needle") == [task.ref]


def test_what_is_deleted_leaves_no_row(carol: User) -> None:
    task = make_task(title="Needle")
    write_path.delete_permanently(as_actor(carol), uri(task))
    assert found(carol, "needle") == [] and not Document.objects.exists()


def test_comments_are_followed_when_edited_and_removed(alice: User) -> None:
    epic = make_epic(title="Quiet")
    comment = write_path.add_comment(as_actor(alice), f"mcp://backlog/epics/{epic.ref}", "a kraken")
    assert found(alice, "kraken") == [epic.ref]
    address = f"mcp://backlog/comments/{comment.pk}"
    write_path.write(as_actor(alice), address, {"type": "set", "value": "a narwhal"})
    assert found(alice, "kraken") == [] and found(alice, "narwhal") == [epic.ref]
    write_path.archive(as_actor(alice), address)
    assert found(alice, "narwhal") == []


def test_a_resource_is_followed_through_move_rewrite_and_removal(alice: User) -> None:
    stored_files.create_resource(system(), "resources/a/old.md", "ocelot")
    stored_files.move(as_actor(alice), "resources/a/old.md", "resources/b/new.md")
    assert found(alice, "ocelot", parent_id="resources/b") == ["resources/b/new.md"]
    stored_files.replace_content(as_actor(alice), "resources/b/new.md", "jaguar")
    assert found(alice, "ocelot") == [] and found(alice, "jaguar") == ["resources/b/new.md"]
    stored_files.remove(as_actor(alice), "resources/b/new.md")
    assert found(alice, "jaguar") == []


def test_a_binary_file_is_found_by_its_name(alice: User) -> None:
    stored_files.create_resource(
        system(), "resources/logo.png", b"\x89PNG\x00\x01", description="The emblem"
    )
    assert found(alice, "logo") == found(alice, "emblem") == ["resources/logo.png"]


def test_collections_search_through_the_index(alice: User) -> None:
    from resources_app.reading.by_address import read

    task = make_task(title="Rework authentication", description="with tokens")
    make_task(title="Tokens alone")
    archived = make_task(title="Authentication of old tokens")
    write_path.archive(as_actor(alice), uri(archived))

    def refs(address: str) -> list[str]:
        return [
            item["id"]
            for item in read(as_actor(alice), f"mcp://backlog/{address}").contents["results"]
        ]

    assert refs("tasks?search=authenticating+token") == [task.ref]
    assert refs("tasks?search=authenticat&status=open") == [task.ref]
    assert refs("tasks?search=authentication&status=done") == []
    assert refs("tasks?search=%21%21") == []
    assert refs("archive?search=authentication") == [archived.ref]


def test_what_is_appended_to_a_very_long_text_is_found_with_its_place(alice: User) -> None:
    task = make_task(description="words of the beginning " * 20_000)
    write_path.write(
        as_actor(alice),
        uri(task, "description"),
        {"type": "append", "content": "\nzanzibar at the end"},
    )
    [result] = search_unified(alice, "zanzibar")["results"]
    assert result["snippet"]["text"].endswith("zanzibar at the end")
    assert result["snippet"]["field"] == "description"


def test_a_write_beside_the_text_leaves_the_words_and_moves_the_filters(alice: User) -> None:
    task = make_task(title="Quokka")
    with CaptureQueriesContext(connection) as queries:
        write_path.write(as_actor(alice), uri(task, "status"), {"type": "set", "value": "blocked"})
        written = [query["sql"] for query in queries if "quokka" in query["sql"].lower()]
    assert not [sql for sql in written if "search_" in sql]
    assert [hit["id"] for hit in search_unified(alice, "quokka", status="blocked")["results"]] == [
        task.ref
    ]
    assert search_unified(alice, "quokka", status="open")["total"] == 0


def test_a_stale_document_is_written_whole_also_by_a_write_beside_the_text(alice: User) -> None:
    task = make_task(title="Quokka")
    Task.objects.filter(pk=task.pk).update(title="Wombat", version=2)
    write_path.write(as_actor(alice), uri(task, "status"), {"type": "set", "value": "blocked"})
    assert search_unified(alice, "wombat")["total"] == 1
    assert search_unified(alice, "quokka")["total"] == 0
