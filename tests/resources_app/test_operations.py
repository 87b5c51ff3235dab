"""Test operations as pure functions: the examples of ADR 0001 and the laws that hold for every
value.
"""

import copy
import re
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from resources_app.editing.operations import (
    ALLOWED,
    ARGUMENTS,
    PREVIEW_LENGTH,
    Shape,
    apply_operation,
    deep_merge,
)
from resources_app.errors import BacklogError, InvalidOperation, OperationFailed, ValidationFailed

# Characters that a pattern language would treat as syntax, or that careless text code mangles.
ALPHABET = "ab$^.*+?()[]{}|\\1&\r\n\t é\u0301👍🏽\u200d\u2028\ufeff"
TEXTS = st.text(alphabet=ALPHABET, max_size=40)
PIECES = st.text(alphabet=ALPHABET, min_size=1, max_size=6)
ARRAYS = st.lists(st.text(alphabet="abc", max_size=2), max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.sampled_from("abcd"), JSON, max_size=4)


def apply_text(text: str, kind: str, /, **arguments: Any) -> str:
    result = apply_operation(text, {"type": kind, **arguments}, "text")
    assert isinstance(result, str)
    return result


def apply_array(array: list[Any], kind: str, /, **arguments: Any) -> list[Any]:
    result = apply_operation(array, {"type": kind, **arguments}, "array")
    assert isinstance(result, list)
    return result


# The examples of ADR 0001


def test_str_replace_changes_one_section() -> None:
    text = "# Task\n\n## Old Section\nOld content\n\n## Next\n"
    operation = {"old_str": "## Old Section\nOld content", "new_str": "## New Section\nNew content"}
    assert (
        apply_text(text, "str_replace", **operation)
        == "# Task\n\n## New Section\nNew content\n\n## Next\n"
    )


def test_append_adds_to_the_end() -> None:
    assert (
        apply_text("# Task", "append", content="\n## New Section\n...")
        == "# Task\n## New Section\n..."
    )


def test_array_append_adds_evidence() -> None:
    entry = "Updated description with new findings"
    assert apply_array(["first"], "array_append", value=entry) == ["first", entry]


def test_set_gives_a_scalar_its_value() -> None:
    assert (
        apply_operation("open", {"type": "set", "value": "in_progress"}, "scalar") == "in_progress"
    )


def test_a_missing_old_str_answers_as_in_the_adr() -> None:
    text = "## Current Section\n## Another Section\n"
    with pytest.raises(OperationFailed) as caught:
        apply_text(text, "str_replace", old_str="## Old Section", new_str="x")
    assert caught.value.message == "str_replace failed: old_str not found"
    assert caught.value.details == {
        "operation": "str_replace",
        "old_str": "## Old Section",
        "searched_content_preview": text,
        "nearest_line": {"line": 1, "text": "## Current Section"},
    }
    assert caught.value.suggestion


# Text


@given(TEXTS, PIECES, TEXTS, TEXTS)
@example("price: ", "$1.00 (net)", "\\1 \\g<0> $& $$ %s {0}", "\n")
@example("", ".*", "", "")
@example("cafe", "\u0301", "", "!")
@example("👩", "\u200d", "", "🚀")
@example("a\r", "\n", "\r\n", "b\r\n")
def test_str_replace_is_literal_and_leaves_every_other_character(
    before: str, old: str, new: str, after: str
) -> None:
    text = before + old + after
    assume(text.find(old) == text.rfind(old))
    assert apply_text(text, "str_replace", old_str=old, new_str=new) == before + new + after


@given(TEXTS, PIECES, PIECES, TEXTS)
def test_str_replace_and_its_inverse_give_the_text_back(
    before: str, old: str, new: str, after: str
) -> None:
    text, changed = before + old + after, before + new + after
    assume(text.find(old) == text.rfind(old) and changed.find(new) == changed.rfind(new))
    there = apply_text(text, "str_replace", old_str=old, new_str=new)
    assert apply_text(there, "str_replace", old_str=new, new_str=old) == text


@given(st.lists(TEXTS, min_size=2, max_size=4), PIECES, TEXTS)
def test_replace_all_does_what_replace_of_python_does(parts: list[str], old: str, new: str) -> None:
    text = old.join(parts)
    assert apply_text(
        text, "str_replace", old_str=old, new_str=new, replace_all=True
    ) == text.replace(old, new)


@given(TEXTS, TEXTS)
def test_append_and_prepend_add_exactly_their_content(text: str, content: str) -> None:
    appended = apply_text(text, "append", content=content)
    assert appended.encode() == text.encode() + content.encode()
    assert apply_text(text, "prepend", content=content).encode() == content.encode() + text.encode()


@given(TEXTS, PIECES, TEXTS)
def test_delete_removes_exactly_its_content(before: str, content: str, after: str) -> None:
    text = before + content + after
    assume(text.find(content) == text.rfind(content))
    assert apply_text(text, "delete", content=content) == before + after


def lines_of(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


@given(
    st.lists(st.sampled_from(["one", "", "two\r", "3\u2028"]), min_size=1, max_size=6),
    st.booleans(),
    st.data(),
)
def test_insert_puts_whole_lines_at_any_line(
    lines: list[str], ended: bool, data: st.DataObject
) -> None:
    text = "\n".join(lines) + ("\n" if ended else "")
    total = len(lines_of(text))
    line = data.draw(st.integers(0, total))
    result = apply_text(text, "insert", line=line, content="new\nlines")
    assert lines_of(result) == [*lines_of(text)[:line], "new", "lines", *lines_of(text)[line:]]


def test_insert_into_an_empty_text_is_its_content() -> None:
    assert apply_text("", "insert", line=0, content="first") == "first"


def test_insert_keeps_a_line_end_that_the_content_brings() -> None:
    assert apply_text("a\nb\n", "insert", line=1, content="new\n") == "a\nnew\nb\n"
    assert apply_text("a\nb\n", "insert", line=2, content="new\n") == "a\nb\nnew\n"


@pytest.mark.parametrize("line", [-1, 3, 10**30])
def test_insert_outside_the_text_says_how_many_lines_there_are(line: int) -> None:
    with pytest.raises(OperationFailed) as caught:
        apply_text("a\nb", "insert", line=line, content="x")
    assert caught.value.details == {"operation": "insert", "line": line, "lines": 2}


@pytest.mark.parametrize(("kind", "argument"), [("str_replace", "old_str"), ("delete", "content")])
def test_several_matches_are_refused_with_their_lines(kind: str, argument: str) -> None:
    extra = {"new_str": "y"} if kind == "str_replace" else {}
    with pytest.raises(OperationFailed) as caught:
        apply_text("x\nb\nx x", kind, **{argument: "x"}, **extra)
    assert caught.value.details["occurrences"] == 3
    assert caught.value.details["lines"] == [1, 3, 3]
    assert ("replace_all" in caught.value.suggestion) == (kind == "str_replace")


@pytest.mark.parametrize(("kind", "argument"), [("str_replace", "old_str"), ("delete", "content")])
def test_no_match_shows_the_nearest_line_and_a_bounded_preview(kind: str, argument: str) -> None:
    text = "Ship the login page\n" + "x" * 10_000
    extra = {"new_str": "y"} if kind == "str_replace" else {}
    with pytest.raises(OperationFailed) as caught:
        apply_text(text, kind, **{argument: "Ship the logon page" + "\n" + "z" * 10_000}, **extra)
    details = caught.value.details
    assert details["nearest_line"] == {"line": 1, "text": "Ship the login page"}
    assert details["searched_content_preview"] == text[:PREVIEW_LENGTH]
    assert len(details[argument]) == PREVIEW_LENGTH


def test_an_empty_old_str_is_refused() -> None:
    with pytest.raises(ValidationFailed) as caught:
        apply_text("abc", "str_replace", old_str="", new_str="x")
    assert caught.value.details["field"] == "old_str"


# Arrays


@given(ARRAYS, st.text(max_size=2), st.data())
def test_array_operations_do_what_python_lists_do(
    value: list[str], entry: str, data: st.DataObject
) -> None:
    index = data.draw(st.integers(0, len(value)))
    model = list(value)
    model.insert(index, entry)
    assert apply_array(value, "array_insert", index=index, value=entry) == model
    assert apply_array(value, "array_append", value=entry) == [*value, entry]
    assert apply_array(value, "array_prepend", value=entry) == [entry, *value]
    model = list(value)
    if index < len(value):
        del model[index]
        assert apply_array(value, "array_remove", index=index) == model


@given(ARRAYS, st.data())
def test_array_remove_by_value_takes_the_first_that_is_equal(
    value: list[str], data: st.DataObject
) -> None:
    assume(value)
    model = list(value)
    entry = data.draw(st.sampled_from(value))
    model.remove(entry)
    assert apply_array(value, "array_remove", value=entry) == model


@given(ARRAYS, JSON)
def test_array_append_then_remove_gives_the_array_back(value: list[str], entry: Any) -> None:
    there = apply_array(value, "array_append", value=entry)
    assert apply_array(there, "array_remove", index=len(value)) == value


@pytest.mark.parametrize(
    ("value", "operation"),
    [
        (["a"], {"type": "array_insert", "index": 2, "value": "x"}),
        (["a"], {"type": "array_insert", "index": -1, "value": "x"}),
        (["a"], {"type": "array_remove", "index": 1}),
        ([], {"type": "array_remove", "index": 0}),
    ],
)
def test_an_index_outside_the_array_fails_and_says_the_range(
    value: list[str], operation: dict[str, Any]
) -> None:
    with pytest.raises(OperationFailed) as caught:
        apply_operation(value, operation, "array")
    assert caught.value.details["index"] == operation["index"]
    assert re.search(r"outside (0\.\.\d|an empty list)$", caught.value.message)


def test_removing_an_absent_value_fails() -> None:
    with pytest.raises(OperationFailed) as caught:
        apply_array(["a"], "array_remove", value="b")
    assert caught.value.details == {"operation": "array_remove", "value": "b"}


@pytest.mark.parametrize("arguments", [{}, {"index": 0, "value": "a"}])
def test_array_remove_takes_either_index_or_value(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValidationFailed):
        apply_array(["a"], "array_remove", **arguments)


# Objects


def test_set_changes_one_field_of_an_object() -> None:
    before = {"title": "a", "status": "open"}
    after = apply_operation(before, {"type": "set", "field": "status", "value": "done"}, "object")
    assert after == {"title": "a", "status": "done"}


def test_delete_field_empties_one_field_of_an_object() -> None:
    after = apply_operation(
        {"title": "a", "assignee": "bob"}, {"type": "delete_field", "field": "assignee"}, "object"
    )
    assert after == {"title": "a", "assignee": None}


def test_delete_field_of_an_absent_field_names_those_that_exist() -> None:
    with pytest.raises(OperationFailed) as caught:
        apply_operation({"b": 1, "a": 2}, {"type": "delete_field", "field": "c"}, "object")
    assert caught.value.details == {"field": "c", "fields": ["a", "b"]}


def test_merge_is_deep_and_replaces_lists() -> None:
    before = {"a": {"x": 1, "y": [1, 2]}, "b": 1}
    after = apply_operation(
        before, {"type": "merge", "value": {"a": {"y": [3], "z": 4}, "c": None}}, "object"
    )
    assert after == {"a": {"x": 1, "y": [3], "z": 4}, "b": 1, "c": None}


@given(OBJECTS, OBJECTS)
def test_merging_twice_is_merging_once(value: dict[str, Any], patch: dict[str, Any]) -> None:
    once = deep_merge(value, patch)
    assert deep_merge(once, patch) == once


@given(OBJECTS)
def test_merging_nothing_or_itself_changes_nothing(value: dict[str, Any]) -> None:
    assert deep_merge(value, {}) == value
    assert deep_merge(value, value) == value
    assert deep_merge({}, value) == value


@given(OBJECTS, OBJECTS)
def test_merge_keeps_what_the_patch_does_not_name(
    value: dict[str, Any], patch: dict[str, Any]
) -> None:
    merged = deep_merge(value, patch)
    assert {key: merged[key] for key in value if key not in patch} == {
        k: v for k, v in value.items() if k not in patch
    }
    assert set(merged) == set(value) | set(patch)


def test_merge_takes_only_an_object() -> None:
    with pytest.raises(ValidationFailed) as caught:
        apply_operation({}, {"type": "merge", "value": ["a"]}, "object")
    assert caught.value.details == {"field": "value", "value": ["a"]}


# Every shape


VALUES: dict[Shape, Any] = {
    "text": "a\nb",
    "scalar": "open",
    "array": ["a", "b"],
    "object": {"a": 1},
}
SHAPES: list[Shape] = list(VALUES)
SOME = {
    "old_str": "a",
    "new_str": "c",
    "line": 1,
    "content": "b",
    "value": "c",
    "field": "a",
    "index": 0,
    "version": 1,
}


KINDS: list[Any] = [*ARGUMENTS, "nonsense", "", None, 3, ["set"], {"type": "set"}]


@pytest.mark.parametrize(
    ("shape", "kind"),
    [(shape, kind) for shape in SHAPES for kind in KINDS if kind not in ALLOWED[shape]],
)
def test_an_operation_that_does_not_fit_is_refused_with_the_allowed_ones(
    shape: Shape, kind: Any
) -> None:
    with pytest.raises(InvalidOperation) as caught:
        apply_operation(VALUES[shape], {"type": kind}, shape)
    assert caught.value.details == {"operation": kind, "allowed": list(ALLOWED[shape])}


@pytest.mark.parametrize(
    ("shape", "kind"), [(shape, kind) for shape in SHAPES for kind in ALLOWED[shape]]
)
def test_an_unknown_argument_is_refused_with_the_known_ones(shape: Shape, kind: str) -> None:
    required, optional = ARGUMENTS[kind]
    operation = {"type": kind, **{name: SOME[name] for name in required}, "colour": "red"}
    with pytest.raises(ValidationFailed) as caught:
        apply_operation(VALUES[shape], operation, shape)
    assert caught.value.details == {"field": "colour", "allowed_values": [*required, *optional]}


@pytest.mark.parametrize(
    ("shape", "kind", "missing"),
    [
        (shape, kind, name)
        for shape in SHAPES
        for kind in ALLOWED[shape]
        for name in ARGUMENTS[kind][0]
    ],
)
def test_a_missing_argument_is_named(shape: Shape, kind: str, missing: str) -> None:
    required, _ = ARGUMENTS[kind]
    operation = {"type": kind, **{name: SOME[name] for name in required if name != missing}}
    with pytest.raises(ValidationFailed) as caught:
        apply_operation(VALUES[shape], operation, shape)
    assert caught.value.details == {"field": missing, "required": list(required)}


@pytest.mark.parametrize("operation", [None, "append", 3, [], [{"type": "append"}]])
def test_what_is_no_object_is_no_operation(operation: Any) -> None:
    with pytest.raises(ValidationFailed) as caught:
        apply_operation("text", operation, "text")
    assert caught.value.details == {"field": "operation", "value": operation}


def test_set_on_a_field_does_not_take_another_field() -> None:
    with pytest.raises(ValidationFailed):
        apply_operation("open", {"type": "set", "field": "title", "value": "x"}, "scalar")


def test_set_on_an_object_needs_the_field() -> None:
    with pytest.raises(ValidationFailed) as caught:
        apply_operation({"a": 1}, {"type": "set", "value": "x"}, "object")
    assert caught.value.details["field"] == "field"


@given(
    st.sampled_from(SHAPES),
    st.sampled_from([*ARGUMENTS, "other"]),
    st.dictionaries(st.sampled_from([*SOME, "replace_all", "colour"]), JSON, max_size=4),
)
def test_any_operation_gives_a_value_of_its_shape_or_a_contract_error(
    shape: Shape, kind: str, arguments: dict[str, Any]
) -> None:
    value = copy.deepcopy(VALUES[shape])
    try:
        result = apply_operation(value, {"type": kind, **arguments}, shape)
    except BacklogError as error:
        assert {"code", "message", "details", "suggestion", "retryable"} == set(error.as_json())
    else:
        assert kind == "set" or isinstance(result, type(value))
    assert value == VALUES[shape], "the operation changed the value it was given"
