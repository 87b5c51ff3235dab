"""Test contract section 4, adr-0001 section 6: batches, dry runs and idempotency keys over REST."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from tests.api.clients import ApiClient
from tests.contract.calling import TASK, contents, etag_of, refused, write, write_batch
from tests.contract.conftest import DESCRIPTION


def append(text: str, **more: Any) -> dict[str, Any]:
    return {"uri": f"{TASK}/description", "operation": {"type": "append", "content": text}, **more}


def test_the_batch_of_the_spec_is_all_or_nothing(backlog: ApiClient) -> None:
    operations = [
        append("\n## New Section\n..."),
        {"uri": f"{TASK}/status", "operation": {"type": "set", "value": "in_progress"}},
        {
            "uri": f"{TASK}/evidence",
            "operation": {"type": "array_append", "value": "Updated description"},
        },
    ]
    wrong = {"uri": f"{TASK}/status", "operation": {"type": "set", "value": "no"}}
    untouched = contents(backlog, TASK)
    failed = write_batch(backlog, *operations, wrong, atomic=True)
    assert refused(failed, "validation_failed", 400)["operation_index"] == 3
    assert contents(backlog, TASK) == untouched
    done = write_batch(backlog, *operations, atomic=True).json()
    assert [set(result) for result in done["results"]] == [
        {"uri", "etag", "version", "mime_type", "size", "diff"}
    ] * 3
    assert contents(backlog, TASK)["evidence"][-1] == "Updated description"
    partly = write_batch(backlog, wrong, append("x"), atomic=False).json()
    assert (
        partly["results"][0]["error"]["code"] == "validation_failed"
        and "etag" in partly["results"][1]
    )


def test_a_rehearsal_answers_diffs_and_the_etag_that_binds_them(backlog: ApiClient) -> None:
    uri, before = f"{TASK}/description", contents(backlog, TASK)
    rehearsed = write_batch(backlog, append("a"), append("b"), dry_run=True).json()["results"]
    assert "+a" in rehearsed[0]["diff"] and "+ab" in rehearsed[1]["diff"]
    assert contents(backlog, TASK) == before
    assert {result["etag"] for result in rehearsed} == {etag_of(backlog, uri)}
    alone = write(backlog, uri, {"type": "append", "content": "a"}, dry_run=True).json()
    assert alone["etag"] == etag_of(backlog, uri)
    write(backlog, uri, {"type": "append", "content": "somebody else"})
    late = write(backlog, uri, {"type": "append", "content": "a"}, etag=alone["etag"])
    assert "+somebody else" in refused(late, "conflict", 409)["diff"]


def test_an_etag_of_a_batch_that_was_taken_back_is_never_valid(backlog: ApiClient) -> None:
    etag = etag_of(backlog, f"{TASK}/description")
    failed = write_batch(backlog, append("a", etag=etag), append("b", etag=etag))
    details = refused(failed, "conflict", 409)
    assert (details["current_etag"], details["operation_index"]) == (etag, 1)
    assert write_batch(backlog, append("a", etag=etag), append("b")).status_code == 200
    kept = write_batch(backlog, append("c", etag=etag), append("d"), atomic=False).json()["results"]
    assert kept[0]["error"]["details"]["current_etag"] and "etag" in kept[1]


def test_a_key_repeats_the_answer_and_refuses_another_body(backlog: ApiClient, carol: User) -> None:
    first = write_batch(backlog, append("once\n"), idempotency_key="k")
    assert write_batch(backlog, append("once\n"), idempotency_key="k").json() == first.json()
    assert contents(backlog, f"{TASK}/description") == f"{DESCRIPTION}once\n"
    for other in ({"atomic": False}, {"dry_run": True}):
        details = refused(
            write_batch(backlog, append("once\n"), idempotency_key="k", **other),
            "validation_failed",
            400,
        )
        assert details["field"] == "idempotency_key"
    refused(write_batch(backlog, append("other"), idempotency_key="k"), "validation_failed", 400)
    assert write_batch(ApiClient(carol), append("twice"), idempotency_key="k").status_code == 200


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"operations": []}, "operations"),
        ({"operations": [append("x")] * 501}, "operations"),
        ({"operations": "x"}, "operations"),
        ({"operations": [{"uri": TASK}]}, "operations[0]"),
        ({"operations": [append("x", colour="red")]}, "operations[0]"),
        ({"operations": [append("x")], "colour": "red"}, "colour"),
        ({"operations": [append("x")], "atomic": "yes"}, "atomic"),
        ({"operations": [append("x")], "dry_run": 1}, "dry_run"),
        ({"operations": [append("x")], "idempotency_key": 5}, "idempotency_key"),
        ({"operations": [append("x")], "idempotency_key": ""}, "idempotency_key"),
        ({"operations": [append("x")], "idempotency_key": "k" * 201}, "idempotency_key"),
    ],
)
def test_a_bad_batch_is_refused_whole(backlog: ApiClient, body: dict[str, Any], field: str) -> None:
    assert (
        refused(backlog.post("/api/v1/write_batch/", body), "validation_failed", 400)["field"]
        == field
    )
    assert contents(backlog, f"{TASK}/description") == DESCRIPTION


def test_a_batch_takes_500_operations_each_seeing_those_before(backlog: ApiClient) -> None:
    assert write_batch(backlog, *[append("x")] * 500).json()["failed"] == 0
    assert contents(backlog, f"{TASK}/description") == DESCRIPTION + "x" * 500
