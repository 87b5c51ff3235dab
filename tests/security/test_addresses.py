"""Test every caller × every address of the registry and every tool; hidden objects look like
missing ones.
"""

from typing import Any

import pytest
from django.db import transaction

from backlog_site.mcp.context import acting_as
from backlog_site.mcp.server import toolsets
from backlog_site.mcp.tools import BacklogTools
from resources_app.errors import BacklogError
from resources_app.identity.roles import Actor
from resources_app.models import Change
from resources_app.reading.by_address import read
from resources_app.reading.patterns import Entry
from resources_app.reading.registry import REGISTRY
from resources_app.writing.write_path import write
from tests.factories import as_actor, make_user
from tests.security.callers import EVERYBODY, STRANGERS, Caller, all_callers
from tests.security.matrix import TABLE, Row, fill, rows

pytestmark = pytest.mark.django_db

VALUES = {
    **{
        "id": "TASK-0001",
        "field": "evidence",
        "index": "0",
        "number": "1",
        "template": "bug",
        "path": "docs/a.md",
    },
    **{"clientid": "Unknown1", "query": "x"},
}
REFUSALS = {"permission_denied", "not_found", "unauthenticated"}


@pytest.fixture
def callers() -> dict[str, Caller]:
    fill()
    return all_callers()


def policy_of(entry: Entry) -> Row | None:
    found = [
        name
        for name, prefixes in TABLE["addresses"].items()
        if entry.pattern.startswith(tuple(prefixes))
    ]
    return Row(found[0]) if found else None


def filled(entry: Entry, **over: str) -> str:
    uri = entry.pattern.replace("{id}", "0" * 32) if entry.scheme == "ib" else entry.pattern
    if entry.category == "archive":
        uri = uri.replace("{path}", "docs/old.md")
    for name, value in (VALUES | over).items():
        uri = uri.replace(f"{{{name}}}", value)
    uri = uri.replace("epics/TASK-", "epics/EPIC-").replace(
        "archive/TASK-0001", "archive/TASK-0002"
    )
    return uri.replace("archive/TASK-0002/tasks", "archive/EPIC-0002/tasks")


def outcome_of(actor: Actor | None, uri: str) -> str:
    if actor is None:
        return "unknown"
    try:
        contents = read(actor, uri).contents
    except BacklogError as error:
        return "refused" if error.code in REFUSALS else f"{error.code}: {error.message}"
    return "nothing" if isinstance(contents, dict) and contents.get("results") == [] else "done"


def test_every_address_has_a_policy() -> None:
    assert [entry.pattern for entry in REGISTRY if policy_of(entry) is None] == []


def test_every_address_reads_for_whom_it_is_meant(callers: dict[str, Caller]) -> None:
    wrong = []
    for entry in REGISTRY:
        row, uri = policy_of(entry), filled(entry)
        for name in sorted(set(EVERYBODY) - set(STRANGERS)):
            found, expected = outcome_of(callers[name].actor, uri), row.expected(name)
            absent = uri.startswith(
                "workflow://workflows"
            )  # no job has run: an empty list, or not found
            if (
                found != expected
                and not (expected == "nothing" and found == "refused")
                and not absent
            ):
                wrong.append(f"{uri} as {name}: {found}, expected {expected}")
            if absent and found == "done":
                wrong.append(f"{uri} as {name}: read what is not there")
    assert wrong == []


def test_strangers_are_nobody(callers: dict[str, Caller]) -> None:
    assert [name for name in STRANGERS if callers[name].actor is not None] == []


def test_no_address_is_written_by_who_may_only_read(callers: dict[str, Caller]) -> None:
    before = Change.objects.count()
    for entry in REGISTRY:
        for name in ("viewer_token", "viewer_oauth_write", "admin_read_token", "no_role_oauth"):
            for operation in ({"type": "set", "value": "x"}, {"type": "append", "content": "x"}):
                with pytest.raises(BacklogError):
                    write(callers[name].actor, filled(entry), operation)
    assert Change.objects.count() == before


def test_every_tool_has_a_row() -> None:
    own = {name for name in toolsets._tool_manager._tools if hasattr(BacklogTools, name)}
    assert own == set(rows("tools")), "add it to tests/security/matrix.yaml"
    assert own == set(toolsets._tool_manager._tools)


def called(actor: Actor | None, tool: str, arguments: dict[str, Any]) -> str:
    if actor is None:
        return "unknown"
    before = Change.objects.count()
    try:
        with acting_as(actor), transaction.atomic():
            answer = getattr(BacklogTools(), tool)(**arguments)
            changes = Change.objects.count() - before
            transaction.set_rollback(True)
    except BacklogError as error:
        assert Change.objects.count() == before
        return "refused" if error.code in REFUSALS else error.code
    if answer.get("success") is False or (answer.get("results") == [] and not changes):
        return "nothing"
    problems = [
        one for one in answer.get("results", ()) if isinstance(one, dict) and "error" in one
    ]
    return "nothing" if problems and tool == "backlog_get" else "done"


def test_every_tool_serves_whom_it_is_meant_for(callers: dict[str, Caller]) -> None:
    wrong = []
    for tool, row in rows("tools").items():
        for name in EVERYBODY:
            found, expected = called(callers[name].actor, tool, row.arguments), row.expected(name)
            if found != expected and not (expected == "nothing" and found == "refused"):
                wrong.append(f"{tool} as {name}: {found}, expected {expected}")
    assert wrong == []


def refusal(actor: Actor, uri: str) -> Any:
    try:
        return read(actor, uri).contents
    except BacklogError as error:
        return error.as_json()


def test_what_is_not_yours_cannot_be_told_from_what_is_not_there(
    callers: dict[str, Caller],
) -> None:
    """Compare TASK-0003, restricted to the group security, with TASK-0009, which does not exist."""
    alice = callers["contributor_token"].actor
    of_tasks = [
        entry for entry in REGISTRY if "{id}" in entry.pattern and "/tasks/" in entry.pattern
    ]
    assert len(of_tasks) >= 9
    for entry in of_tasks:
        hidden, absent = (
            str(refusal(alice, filled(entry, id=name))) for name in ("TASK-0003", "TASK-0009")
        )
        assert hidden.replace("TASK-0003", "TASK-0009") == absent, entry.pattern
        with pytest.raises(BacklogError) as one:
            write(alice, filled(entry, id="TASK-0003"), {"type": "set", "value": "x"}, "some-etag")
        with pytest.raises(BacklogError) as other:
            write(alice, filled(entry, id="TASK-0009"), {"type": "set", "value": "x"}, "some-etag")
        assert str(one.value.as_json()).replace("TASK-0003", "TASK-0009") == str(
            other.value.as_json()
        )


def test_no_list_count_search_feed_or_completion_tells_of_it(callers: dict[str, Caller]) -> None:
    from resources_app.reading import catalogue
    from search_app.search import search_unified

    alice = callers["contributor_token"].actor
    insider = as_actor(make_user("insider", "contributor", "security"))
    for uri in (
        "mcp://backlog/tasks",
        "mcp://backlog/tasks?aggregate=count&group_by=status",
        "mcp://backlog/changes",
    ):
        assert "secret" not in str(read(alice, uri).contents) and "TASK-0003" not in str(
            read(alice, uri).contents
        )
    assert (
        read(alice, "mcp://backlog/tasks").contents["total"] + 1
        == read(insider, "mcp://backlog/tasks").contents["total"]
    )
    assert "TASK-0003" not in str(search_unified(alice.user, "secret"))
    assert "TASK-0003" in str(search_unified(insider.user, "secret"))
    assert "TASK-0003" not in catalogue.complete(alice, "id", "TASK-")
    assert "TASK-0003" not in str(catalogue.list_catalogue(alice, None))
