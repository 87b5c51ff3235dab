"""Test that random addresses, operations and queries over REST get a success or one of the
contract's errors, never a 500.
"""

from typing import Any

import pytest
from django.contrib.auth.models import User
from hypothesis import given
from hypothesis import strategies as st

from resources_app.editing.operations import ARGUMENTS
from resources_app.fields.declarations import FIELDS
from resources_app.reading.registry import REGISTRY
from resources_app.writing import stored_files
from tests.api.clients import ApiClient
from tests.factories import as_actor, make_epic, make_task
from tests.fuzz.cases import check, fuzz

anything = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
segment = st.one_of(
    st.sampled_from(
        [
            "tasks",
            "epics",
            "TASK-0001",
            "EPIC-0001",
            "TASK-0002",
            "archive",
            "resources",
            "a.md",
            "docs",
        ]
    ),
    st.sampled_from(
        [
            *FIELDS["task"],
            "file",
            "metadata",
            "schema",
            "versions",
            "comments",
            "0",
            "1",
            "..",
            "%2e%2e",
            "@v1",
        ]
    ),
    anything,
)
query = st.lists(
    st.tuples(
        st.sampled_from(["status", "filter", "limit", "cursor", "version", "since", "sort", "x"]),
        anything,
    ),
    max_size=3,
).map(lambda pairs: "&".join(f"{name}={value}" for name, value in pairs))
made = st.builds(
    lambda scheme, segments, query: (
        f"{scheme}{'/'.join(segments)}" + (f"?{query}" if query else "")
    ),
    st.sampled_from(
        [
            "mcp://backlog/",
            "mcp://backlog/tasks/",
            "file:///",
            "auth://",
            "admin://",
            "workflow://workflows/",
            "ib://X/",
        ]
    ),
    st.lists(segment, max_size=5),
    query,
)
patterned = st.builds(
    lambda entry, value: (
        entry.pattern.replace("{id}", "TASK-0001")
        .replace("{field}", value)
        .replace("{path}", value)
    ),
    st.sampled_from(list(REGISTRY)),
    segment,
)
address = st.one_of(made, patterned, anything)
value = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | anything,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(anything, inner, max_size=4),
    max_leaves=8,
)
argument = st.sampled_from(
    [
        "old_str",
        "new_str",
        "content",
        "value",
        "index",
        "line",
        "field",
        "version",
        "replace_all",
        "x",
    ]
)
operation = st.one_of(
    st.builds(
        lambda kind, arguments: {"type": kind, **arguments},
        st.sampled_from([*ARGUMENTS, "fly"]),
        st.dictionaries(argument, value, max_size=4),
    ),
    value,
)


@pytest.fixture
def client(alice: User) -> ApiClient:
    make_epic(title="Epic")
    make_task(
        title="First",
        description="one\ntwo\nthree\n",
        evidence=["a", "b"],
        references=[{"url": "https://x.y"}],
    )
    make_task(title="Second", depends_on=["TASK-0001"])
    stored_files.create_resource(as_actor(alice), "resources/docs/a.md", "# A\n")
    return ApiClient(alice)


@fuzz(0.15)
@given(uri=address)
def test_any_address_reads_or_is_refused(client: ApiClient, uri: str) -> None:
    check(
        lambda: client._client.get("/api/v1/resource/", {"uri": uri}, headers=client._headers), uri
    )


@fuzz(0.2)
@given(uri=st.one_of(made, patterned), operation=operation, etag=st.none() | anything)
def test_any_write_is_done_or_refused(
    client: ApiClient, uri: str, operation: Any, etag: str | None
) -> None:
    check(
        lambda: client.post("/api/v1/write/", {"uri": uri, "operation": operation, "etag": etag}),
        (uri, operation, etag),
    )


@fuzz(0.05)
@given(
    operations=st.lists(st.fixed_dictionaries({"uri": made, "operation": operation}), max_size=4),
    atomic=st.booleans(),
    dry_run=st.booleans(),
)
def test_any_batch_is_done_or_refused(
    client: ApiClient, operations: Any, atomic: bool, dry_run: bool
) -> None:
    batch = {"operations": operations, "atomic": atomic, "dry_run": dry_run}
    check(lambda: client.post("/api/v1/write_batch/", batch), batch)


@fuzz(0.15)
@given(query=query)
def test_any_list_query_is_answered_or_refused(client: ApiClient, query: str) -> None:
    check(lambda: client.get(f"/api/v1/tasks/?{query}"), query)
