"""Test the fields of each kind: what is accepted, what it becomes, and the error otherwise."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources_app.errors import ValidationFailed
from resources_app.fields.declarations import (
    FIELDS,
    MAX_ENTRIES,
    MAX_LABELS,
    MAX_TEXT,
    Field,
    field_of,
    parse_ref,
    writable_names,
)
from resources_app.vocabulary import Kind

PROTECTED = {"id", "type", "created_at", "updated_at", "archived_at", "version", "etag"}
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.just("\ud800")
    | st.just("\x00"),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)
EVERY_FIELD = [
    pytest.param(field, id=f"{kind}.{name}")
    for kind in FIELDS
    for name, field in FIELDS[kind].items()
]


def clean(name: str, value: Any, kind: str = Kind.TASK) -> Any:
    return FIELDS[kind][name].clean(name, value)


def refusal(name: str, value: Any, kind: str = Kind.TASK) -> dict[str, Any]:
    with pytest.raises(ValidationFailed) as caught:
        clean(name, value, kind)
    return caught.value.details


def test_the_protected_fields_are_not_writable() -> None:
    for kind in (Kind.TASK, Kind.EPIC):
        assert {name for name, field in FIELDS[kind].items() if not field.writable} == PROTECTED
        assert not PROTECTED & set(writable_names(kind))
        assert all(FIELDS[kind][name].operations == () for name in PROTECTED)


def test_parent_id_of_a_task_is_its_epic_id() -> None:
    assert field_of(Kind.TASK, "parent_id") is FIELDS[Kind.TASK]["epic_id"]
    assert field_of(Kind.EPIC, "parent_id") is None
    assert field_of(Kind.TASK, "colour") is None


@pytest.mark.parametrize("field", EVERY_FIELD)
def test_the_empty_value_of_an_optional_field_is_itself_accepted(field: Field) -> None:
    if field.writable and not field.required:
        assert field.clean(field.name, field.empty) == field.empty
        # A removed choice would silently become another one.
        if not field.choices:
            assert field.clean(field.name, None) == field.empty
    else:
        with pytest.raises(ValidationFailed):
            field.clean(field.name, field.empty)


@pytest.mark.parametrize("field", EVERY_FIELD)
@given(value=JSON)
def test_any_value_is_cleaned_for_good_or_refused_by_name(field: Field, value: Any) -> None:
    try:
        cleaned = field.clean(field.name, value)
    except ValidationFailed as error:
        assert error.details["field"].startswith(field.name)
        return
    assert field.clean(field.name, cleaned) == cleaned
    assert "\x00" not in str(cleaned)
    str(cleaned).encode()


@pytest.mark.parametrize(
    "bad", ["", " ", "\n", "\u202e", "x" * 201, None, 3, ["a"], "a\x00b", "\ud800"]
)
def test_a_title_is_one_line_of_1_to_200_characters(bad: Any) -> None:
    assert refusal("title", bad)["field"] == "title"


def test_a_title_may_be_200_characters_long_and_is_trimmed() -> None:
    assert clean("title", "é" * 200) == "é" * 200
    assert clean("title", "  Fix login \n") == "Fix login"
    assert [clean("title", odd) for odd in ("a\nb", "a\r\nb", "a\u2028b")] == ["a b"] * 3


def test_a_description_is_kept_to_the_byte() -> None:
    text = "  \r\n\t# É e\u0301 👍🏽 \u2028 $1 \\1 \n\n"
    assert clean("description", text) == text


def test_a_description_that_is_too_long_says_how_long_it_may_be() -> None:
    assert clean("description", "x" * MAX_TEXT)
    details = refusal("description", "x" * (MAX_TEXT + 1))
    assert details == {"field": "description", "value": "x" * 100 + "…", "max_length": MAX_TEXT}


@pytest.mark.parametrize("name", ["status", "priority"])
@pytest.mark.parametrize("bad", ["OPEN", "open ", "invalid", 1, True, None, ["open"], {}])
def test_a_choice_names_what_is_allowed(name: str, bad: Any) -> None:
    details = refusal(name, bad)
    assert (details["field"], details["value"]) == (name, bad)
    assert details["allowed_values"] == list(FIELDS[Kind.TASK][name].choices)


def test_statuses_and_priorities_are_those_of_the_contract() -> None:
    assert FIELDS[Kind.TASK]["status"].choices == (
        "open",
        "in_progress",
        "blocked",
        "done",
        "cancelled",
    )
    assert FIELDS[Kind.TASK]["priority"].choices == ("none", "low", "medium", "high", "urgent")


@pytest.mark.parametrize(
    "bad", ["tomorrow", "2026-13-01", "2026-02-30", "2026-1-1", 20260101, ["2026-01-01"]]
)
def test_a_due_date_is_a_day_that_exists(bad: Any) -> None:
    assert refusal("due_date", bad) == {"field": "due_date", "value": bad}


def test_an_empty_due_date_is_none() -> None:
    assert clean("due_date", "") is None
    assert clean("due_date", "2028-02-29") == "2028-02-29"


def test_labels_are_trimmed_and_each_kept_once_in_their_order() -> None:
    assert clean("labels", [" b", "a", "b ", "a"]) == ["b", "a"]


@pytest.mark.parametrize(
    "bad", ["a", [""], [" "], [1], [None], [["a"]], {"a": 1}, ["x" * 51], ["x"] * (MAX_LABELS + 1)]
)
def test_labels_are_a_list_of_short_words(bad: Any) -> None:
    assert refusal("labels", bad)["field"] == "labels"


def test_evidence_is_kept_to_the_byte_and_may_repeat() -> None:
    entries = [" indented\n", "log\r\n", "log\r\n"]
    assert clean("evidence", entries) == entries
    assert refusal("evidence", ["fine", "\n"])["field"] == "evidence"
    assert refusal("evidence", ["x"] * (MAX_ENTRIES + 1))["max_entries"] == MAX_ENTRIES


def test_a_reference_is_a_url_with_a_title_or_the_url_alone() -> None:
    assert clean(
        "references",
        ["https://example.org", {"url": "mcp://backlog/tasks/TASK-0001", "title": "that"}],
    ) == [
        {"url": "https://example.org", "title": ""},
        {"url": "mcp://backlog/tasks/TASK-0001", "title": "that"},
    ]


@pytest.mark.parametrize(
    "url",
    ["docs/a b.md", "./a", "/a", "#part", "?q=1", "документы/а.md", "mailto:a@b.c", "ib://x/y"],
)
def test_a_reference_may_be_a_path_in_any_script_or_any_harmless_link(url: str) -> None:
    assert clean("references", [url]) == [{"url": url, "title": ""}]


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        " JavaScript:alert(1)",
        "java\nscript:alert(1)",
        "java\tscript:alert(1)",
        "\x01javascript:alert(1)",
        "data:text/html,x",
        "vbscript:x",
        "",
        "<script>",
    ],
)
def test_a_reference_that_could_run_in_a_browser_is_refused(url: str) -> None:
    assert refusal("references", [{"url": url}])["field"].startswith("references")


@pytest.mark.parametrize(
    "bad", [[{}], [{"title": "x"}], [{"url": "a", "colour": 1}], [1], [["a"]], [{"url": 1}], "a"]
)
def test_a_reference_of_another_shape_is_refused(bad: Any) -> None:
    assert refusal("references", bad)["field"].startswith("references")


@pytest.mark.parametrize(
    "bad",
    [
        "TASK-1",
        "TASK-001",
        "TASK-00001",
        "task-0001",
        "EPIC-0001",
        "TASK-0001 ",
        "TASK-٠٠٠١",
        "TASK-" + "1" * 16,
        1,
    ],
)
def test_an_id_is_exactly_as_we_write_it(bad: Any) -> None:
    assert parse_ref(bad, "TASK") is None
    assert refusal("depends_on", [bad])["field"] == "depends_on"


def test_ids_grow_beyond_four_digits() -> None:
    assert parse_ref("TASK-0042", "TASK") == 42
    assert parse_ref("TASK-123456", "TASK") == 123456


def test_depends_on_names_each_task_once() -> None:
    assert clean("depends_on", ["TASK-0002", "TASK-0001", "TASK-0002"]) == [
        "TASK-0002",
        "TASK-0001",
    ]


def test_a_comment_is_not_empty_and_kept_to_the_byte() -> None:
    assert clean("body", " yes\n", Kind.COMMENT) == " yes\n"
    assert refusal("body", " \n", Kind.COMMENT)["field"] == "body"
    assert refusal("body", None, Kind.COMMENT)["field"] == "body"


@pytest.mark.parametrize(
    ("given", "kept"), [(0, 0), (3.0, 3), (2.25, 2.25), (10_000, 10_000), (None, None), ("", None)]
)
def test_an_estimate_is_a_number_with_two_decimals(given: Any, kept: Any) -> None:
    cleaned = clean("estimate", given)
    assert (cleaned, type(cleaned)) == (kept, type(kept))


@pytest.mark.parametrize(
    "wrong", [-1, 10_001, 10**400, 0.125, float("nan"), float("inf"), True, "3", [3]]
)
def test_an_estimate_out_of_range_is_refused(wrong: Any) -> None:
    assert refusal("estimate", wrong)["field"] == "estimate"


def test_an_epic_has_no_estimate() -> None:
    assert field_of(Kind.EPIC, "estimate") is None
