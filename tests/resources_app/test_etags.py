"""Test ETags: one per address and version; a field's ETag changes only when the field does."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources_app.addresses.uris import parse
from resources_app.errors import Conflict, ValidationFailed
from resources_app.fields.declarations import writable_names
from resources_app.history.etags import make_etag, normalise, version_in
from resources_app.models import Task
from resources_app.reading.registry import target_of
from resources_app.writing import write_path
from resources_app.writing.session import current_etag
from tests.factories import make_task, system, task_uri

REFS = st.sampled_from(["TASK-0001", "TASK-0002", "EPIC-0001", "resources/a.md", "1"])
NAMES = st.sampled_from(["", "title", "description"])
VERSIONS = st.integers(1, 10**9)


def write(task: Task, *rest: object, etag: str | None = None, **operation: Any) -> dict[str, Any]:
    return write_path.write(system(), task_uri(task, *rest), operation, etag)


def etag_of(task: Task, *rest: object) -> str:
    return current_etag(Task.objects.get(pk=task.pk), target_of(parse(task_uri(task, *rest))))


@given(REFS, NAMES, VERSIONS)
def test_an_etag_gives_its_version_back_for_its_own_address(
    ref: str, name: str, version: int
) -> None:
    assert version_in(make_etag(ref, version, name), ref, name) == version


@given(st.tuples(REFS, NAMES, VERSIONS), st.tuples(REFS, NAMES, VERSIONS))
def test_an_etag_is_never_valid_for_another_address(
    one: tuple[str, str, int], other: tuple[str, str, int]
) -> None:
    etag = make_etag(one[0], one[2], one[1])
    assert (version_in(etag, other[0], other[1]) is None) == (one[:2] != other[:2])
    assert (etag == make_etag(other[0], other[2], other[1])) == (one == other)


@given(st.text(max_size=30) | st.from_regex(r"\d{1,12}-[0-9a-f]{12}"))
def test_a_made_up_etag_stands_for_no_version(etag: str) -> None:
    assert version_in(etag, "TASK-0001") is None


@pytest.mark.parametrize("written", ["3-ab", '"3-ab"', 'W/"3-ab"', ' "3-ab" '])
def test_the_ways_http_writes_an_etag_are_the_same(written: str) -> None:
    assert normalise(written) == "3-ab"


@pytest.mark.django_db
def test_the_answer_of_a_write_carries_the_etag_for_the_next() -> None:
    task = make_task(description="a")
    first = write(task, "description", type="append", content="b")
    second = write(task, "description", etag=first["etag"], type="append", content="c")
    assert second["etag"] == etag_of(task, "description") != first["etag"]


CHANGES: dict[str, Any] = {
    "title": "Another",
    "description": "More",
    "status": "done",
    "priority": "high",
    "labels": ["x"],
    "assignee": "carol",
    "due_date": "2027-01-01",
    "evidence": ["seen"],
    "blocked_reason": ["waiting"],
    "references": [{"url": "https://example.org", "title": ""}],
    "groups": ["admin"],
    "estimate": 3,
}


@pytest.mark.django_db
@pytest.mark.parametrize("changed", CHANGES)
def test_a_write_to_one_field_changes_its_etag_and_the_things_and_no_other(changed: str) -> None:
    task = make_task()
    names = writable_names("task")
    before = {name: etag_of(task, name) for name in names}
    whole = etag_of(task)
    write(task, changed, type="set", value=CHANGES[changed])
    assert [name for name in names if etag_of(task, name) != before[name]] == [changed]
    assert etag_of(task) != whole


def test_the_examples_above_cover_every_field_but_links_to_other_tasks() -> None:
    assert set(writable_names("task")) - set(CHANGES) == {"epic_id", "depends_on"}


@pytest.mark.django_db
def test_a_write_that_changes_nothing_keeps_every_etag() -> None:
    task = make_task(title="Same", description="text")
    etags = etag_of(task), etag_of(task, "title")
    answer = write(task, "title", type="set", value="Same")
    write(task, "description", type="str_replace", old_str="text", new_str="text")
    assert (etag_of(task), etag_of(task, "title")) == etags
    assert (answer["version"], answer["diff"]) == (1, "")


@pytest.mark.django_db
def test_an_element_and_its_list_share_an_etag() -> None:
    task = make_task(evidence=["a", "b"])
    etag = write(task, "evidence", 0, type="append", content="!")["etag"]
    assert write(task, "evidence", etag=etag, type="array_append", value="c")["diff"]["after"] == [
        "a!",
        "b",
        "c",
    ]


@pytest.mark.django_db
def test_parent_id_and_epic_id_share_an_etag() -> None:
    task = make_task()
    assert etag_of(task, "parent_id") == etag_of(task, "epic_id")


@pytest.mark.django_db
@pytest.mark.parametrize("etag", ["*", ' "*" '])
def test_a_star_matches_whatever_is_there(etag: str) -> None:
    assert write(make_task(), "title", etag=etag, type="set", value="New")["version"] == 2


@pytest.mark.django_db
@pytest.mark.parametrize("etag", [5, True, ["1-ab"], {}])
def test_an_etag_that_is_no_text_is_refused(etag: Any) -> None:
    with pytest.raises(ValidationFailed) as caught:
        write(make_task(), "title", etag=etag, type="set", value="New")
    assert caught.value.details["field"] == "etag"


@pytest.mark.django_db
@pytest.mark.parametrize(
    "etag", ["", "nonsense", "1-", "-", "1-000000000000", "9999999999-ab", "\ud800", "\x00"]
)
def test_an_etag_that_was_never_given_out_conflicts_without_a_diff(etag: str) -> None:
    task = make_task()
    with pytest.raises(Conflict) as caught:
        write(task, "title", etag=etag, type="set", value="New")
    assert caught.value.details == {
        "current_etag": etag_of(task, "title"),
        "current_version": 1,
        "diff": None,
    }


@pytest.mark.django_db
def test_an_etag_forged_for_a_version_to_come_conflicts_without_a_diff() -> None:
    task = make_task()
    with pytest.raises(Conflict) as caught:
        write(
            task, "title", etag=make_etag(task.ref, 9_999_999_999, "title"), type="set", value="New"
        )
    assert caught.value.details["diff"] is None


@pytest.mark.django_db
def test_the_etag_of_one_task_is_not_valid_for_another() -> None:
    one, other = make_task(), make_task()
    with pytest.raises(Conflict):
        write(other, "title", etag=etag_of(one, "title"), type="set", value="New")


@pytest.mark.django_db
def test_the_etag_of_the_task_is_not_valid_for_a_field() -> None:
    task = make_task()
    with pytest.raises(Conflict):
        write(task, "title", etag=etag_of(task), type="set", value="New")
