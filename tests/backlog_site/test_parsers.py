"""Test JSON bodies: rejected with a reason, or a value that every database stores and every
response carries.
"""

import io
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backlog_site.api.limits import BodyTooLarge
from backlog_site.api.parsers import MAX_DEPTH, BoundedJSONParser, parse_json
from resources_app.errors import ValidationFailed


def refused(body: bytes) -> ValidationFailed:
    with pytest.raises(ValidationFailed) as caught:
        parse_json(body)
    assert caught.value.details["field"] == "body"
    return caught.value


def nested(depth: int, opening: bytes = b"[", closing: bytes = b"]") -> bytes:
    return opening * depth + b"1" + closing * depth


safe_text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
numbers = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
storable = st.recursive(
    st.none() | st.booleans() | numbers | safe_text,
    lambda inner: st.lists(inner) | st.dictionaries(safe_text, inner),
    max_leaves=20,
)
fragments = st.sampled_from(
    [
        *(
            b"{",
            b"}",
            b"[",
            b"]",
            b",",
            b":",
            b'"',
            b'"a":',
            b" ",
            b"\\",
            b"\\u0000",
            b"\\ud800",
            b"\\udc00",
        ),
        *(
            b"NaN",
            b"-Infinity",
            b"1e999",
            b"9" * 30,
            b"-",
            b"0",
            b".5",
            b"null",
            b"\xff",
            b"\x00",
            b"\xef\xbb\xbf",
        ),
    ]
)


def strings_in(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    children = (
        [*value, *value.values()]
        if isinstance(value, dict)
        else value
        if isinstance(value, list)
        else []
    )
    return [string for child in children for string in strings_in(child)]


def assert_storable(value: Any) -> None:
    json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    assert not any("\x00" in string for string in strings_in(value))


@settings(deadline=None)
@given(st.binary(max_size=200) | st.lists(fragments, max_size=40).map(b"".join))
def test_any_body_gives_a_storable_value_or_a_refusal(body: bytes) -> None:
    try:
        value = parse_json(body)
    except ValidationFailed:
        return
    assert_storable(value)


@settings(deadline=None)
@given(storable)
def test_every_storable_value_comes_through_unchanged(value: Any) -> None:
    assert parse_json(json.dumps(value).encode()) == value
    assert parse_json(json.dumps(value, ensure_ascii=False).encode()) == value


@settings(deadline=None)
@given(
    st.text(),
    st.sampled_from(["\x00", "\ud800", "\udfff"]),
    st.sampled_from(["value", "key", "deep"]),
)
def test_nul_and_lone_surrogates_are_refused_wherever_they_stand(
    text: str, bad: str, place: str
) -> None:
    string = text + bad
    body = {"value": string, "key": {string: 1}, "deep": [[{"a": [string]}]]}[place]
    refused(json.dumps(body).encode())


def test_an_escaped_backslash_before_u0000_is_plain_text() -> None:
    assert parse_json(rb'"\\u0000 \\ud800"') == r"\u0000 \ud800"


def test_a_surrogate_pair_is_one_character() -> None:
    assert parse_json(rb'"\ud83d\ude00"') == "😀"


def test_nesting_is_allowed_to_the_limit_and_refused_beyond() -> None:
    parse_json(nested(MAX_DEPTH))
    assert refused(nested(MAX_DEPTH + 1)).details["max_depth"] == MAX_DEPTH
    assert refused(nested(MAX_DEPTH + 1, b'{"a":', b"}")).details["max_depth"] == MAX_DEPTH


@pytest.mark.parametrize("body", [nested(100_000), b"[" * 1_000_000, b'{"a":' * 100_000])
def test_absurd_nesting_is_a_refusal_and_not_a_crash(body: bytes) -> None:
    refused(body)


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**30])
def test_integers_beyond_64_bits_are_refused(number: int) -> None:
    assert "64 bits" in refused(str(number).encode()).message


def test_a_number_of_a_million_digits_is_refused_without_echoing_it() -> None:
    assert len(refused(b"9" * 1_000_000).message) < 200


@pytest.mark.parametrize("body", [b"NaN", b"[Infinity]", b'{"a": -Infinity}', b"1e999", b"-1e999"])
def test_numbers_that_json_does_not_have_are_refused(body: bytes) -> None:
    refused(body)


def test_a_repeated_key_is_refused_by_name() -> None:
    assert refused(b'{"title": 1, "x": {"status": 1, "status": 2}}').details["key"] == "'status'"


def test_invalid_utf8_is_refused_with_its_position() -> None:
    assert refused(b'"ab\xff"').details["position"] == 3


def test_a_byte_order_mark_is_accepted() -> None:
    assert parse_json(b'\xef\xbb\xbf{"a": 1}') == {"a": 1}


def test_broken_json_is_refused_with_line_and_column() -> None:
    assert refused(b'{"a": 1,\n "b"}').details | {"field": ""} == {
        "field": "",
        "line": 2,
        "column": 5,
    }


def test_a_body_over_the_limit_is_refused_as_too_large(settings: Any) -> None:  # pytest-django's
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 10
    assert BoundedJSONParser().parse(io.BytesIO(b'"12345678"')) == "12345678"
    with pytest.raises(BodyTooLarge) as caught:
        BoundedJSONParser().parse(io.BytesIO(b'"123456789"'))
    assert (caught.value.status, caught.value.code) == (413, "validation_failed")
