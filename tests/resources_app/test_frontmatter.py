"""Test frontmatter in and out: byte-exact, lenient with hand-edited files, safe against YAML
bombs.
"""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resources_app.files.frontmatter import MAX_BYTES, parse, rejoin, render

text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=40)
floats = st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | st.integers(-(10**17), 10**17) | floats | text
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4),
    max_leaves=8,
)
frontmatters = st.dictionaries(text, values, max_size=6)
# fmt: off
TRICKY = [
    "yes", "no", "0755", "1.10", "12:30", "2026-01-22", "null", "~", "1e5", "0o17", "<<", "=", "- a", "a: b", " x ",
    "true", "-0", "1_000", "\ufeff", "\x85", "\u2028", "a\n", "\n a", "a \nb", "---", "|", "'", '"', "&a", "!x", "%",
    "#", "*b*", "@", "`", "?",
]
# fmt: on


@settings(max_examples=300)
@given(frontmatters, text)
def test_what_is_rendered_is_parsed_back(frontmatter: dict[str, Any], body: str) -> None:
    parsed = parse(render(frontmatter, body))
    assert (parsed.frontmatter, parsed.body, parsed.problems) == (frontmatter, body, [])


@pytest.mark.parametrize("word", TRICKY)
def test_a_tricky_string_stays_a_string_as_value_key_and_entry(word: str) -> None:
    frontmatter = {word: word, "list": [word, {"x": word}]}
    assert parse(render(frontmatter, word)).frontmatter == frontmatter


@settings(max_examples=200)
@given(st.text(st.sampled_from(list("---\n: abc'\"[]{}#&*!|>\t\r0.")), max_size=60))
def test_head_and_body_are_the_text_and_parsing_never_fails(source: str) -> None:
    parsed = parse("---\n" + source)
    assert parsed.head + parsed.body == "---\n" + source
    json.dumps(parsed.frontmatter)


def test_plain_words_become_values_only_when_written_canonically() -> None:
    block = (
        "a: 1\nb: 0755\nc: 1.10\nd: 1.5\ne: yes\nf: true\ng: 2026-01-22\nh: 12:30:00\ni: null\nj:\n"
    )
    block += "k: True\nl: 1_000\nm: .inf\n"
    assert parse(f"---\n{block}---\n").frontmatter == {
        "a": 1, "b": "0755", "c": "1.10", "d": 1.5, "e": "yes", "f": True, "g": "2026-01-22", "h": "12:30:00",
        "i": None, "j": None, "k": "True", "l": "1_000", "m": ".inf",
    }  # fmt: skip


def test_strings_are_quoted_for_readers_that_would_take_them_for_something_else() -> None:
    rendered = render(
        {"a": "2026-01-22T10:00:00.000Z", "b": "yes", "c": "1e5", "d": "plain", "e": ["x"]},
        "Body\n",
    )
    assert (
        rendered == "---\na: '2026-01-22T10:00:00.000Z'\nb: 'yes'\nc: '1e5'\nd: plain\ne:\n  -"
        " x\n---\nBody\n"
    )


def test_an_unquoted_colon_in_a_title_is_read_and_reported() -> None:
    parsed = parse(
        "---\nid: TASK-0001\ntitle: Fix: login: twice\nstatus: open\nlabels: [a, b]\n---\nBody\n"
    )
    assert parsed.frontmatter == {
        "id": "TASK-0001",
        "title": "Fix: login: twice",
        "status": "open",
        "labels": ["a", "b"],
    }
    assert parsed.body == "Body\n"
    assert (
        len(parsed.problems) == 1
        and "Line 3" in parsed.problems[0]
        and "title" in parsed.problems[0]
    )


def test_a_colon_inside_a_nested_entry_costs_nothing_but_a_report() -> None:
    parsed = parse(
        "---\ntitle: A\nreferences:\n  - url: https://a.example\n    title: Spec: part 2\nx:"
        " 1\n---\n"
    )
    assert parsed.frontmatter["references"] == [
        {"url": "https://a.example", "title": "Spec: part 2"}
    ]
    assert parsed.frontmatter["x"] == 1 and parsed.problems


@pytest.mark.parametrize(
    "title",
    [
        "*bold* move",
        "@alice asks",
        "`code` first",
        "%d percent",
        "&amp; co",
        "[WIP] thing",
        "{x",
        "\ttab",
        "'tis",
    ],
)
def test_a_title_that_is_no_yaml_is_read_as_it_stands(title: str) -> None:
    parsed = parse(f"---\ntitle: {title}\nstatus: open\n---\nB")
    assert parsed.frontmatter == {"title": title.strip(), "status": "open"}
    assert parsed.problems and parsed.body == "B"


def test_lines_that_belong_to_no_key_are_named_and_the_rest_is_read() -> None:
    parsed = parse("---\nwhat is this\ntitle: A: b\n---\nB")
    assert parsed.frontmatter == {"title": "A: b"}
    assert any("Line 2" in problem and "what is this" in problem for problem in parsed.problems)


def test_crlf_and_a_byte_order_mark_are_kept() -> None:
    source = "\ufeff---\r\ntitle: A\r\nlabels:\r\n  - x\r\n---\r\nBody\r\n"
    parsed = parse(source)
    assert parsed.frontmatter == {"title": "A", "labels": ["x"]} and parsed.body == "Body\r\n"
    assert parsed.head + parsed.body == source


@pytest.mark.parametrize(
    "source",
    [
        "",
        "Body",
        "--- \nno closing",
        "---\nJust a rule\n---\nmore",
        "----\na: 1\n----\n",
        " ---\na: 1\n---\n",
    ],
)
def test_what_is_no_frontmatter_stays_in_the_body(source: str) -> None:
    parsed = parse(source)
    assert (parsed.frontmatter, parsed.body, parsed.head) == ({}, source, "")


def test_an_empty_frontmatter_is_one() -> None:
    assert parse("---\n---\nB").body == "B"
    assert render({}, "B") == "B"
    assert parse(render({}, "---\na: 1\n---\n")).body == "---\na: 1\n---\n"


def test_rejoining_keeps_comments_and_quotes_until_the_frontmatter_changes() -> None:
    source = "---\n# ours\ntitle: 'A'   # why\n---\nOld"
    assert rejoin(source, {"title": "A"}, "New") == "---\n# ours\ntitle: 'A'   # why\n---\nNew"
    assert rejoin(source, {"title": "B"}, "Old") == "---\ntitle: B\n---\nOld"
    assert rejoin("Old", {"title": "B"}, "Old") == "---\ntitle: B\n---\nOld"


def test_a_repeated_key_is_reported_and_the_last_counts() -> None:
    parsed = parse("---\na: 1\na: 2\n---\n")
    assert parsed.frontmatter == {"a": 2} and "'a'" in parsed.problems[0]


ALIAS_BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{new}: &{new} [{','.join([f'*{old}'] * 9)}]\n"
    for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)
MERGE_BOMB = "a: &a {k: v}\n" + "".join(f"k{i}: &b{i} {{<<: [*a, *a]}}\n" for i in range(50))
BOMBS = {
    "alias": ALIAS_BOMB,
    "merge": MERGE_BOMB,
    "brackets": "x: " + "[" * 50_000 + "\n",
    "braces": "x: " + "{a: " * 10_000 + "\n",
    "dashes": "x:\n" + "".join(" " * depth + "-\n" for depth in range(1, 300)),
    "questions": "? " * 20_000 + "\n",
    "python": "x: !!python/object/apply:os.system ['true']\n",
    "binary": "x: !!binary aGVsbG8=\n",
    "huge": "x: " + "y" * MAX_BYTES + "\n",
    "digits": "x: " + "9" * 50_000 + "\n",
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_harmless(name: str) -> None:
    parsed = parse(f"---\ntitle: A\n{BOMBS[name]}---\nBody")
    assert len(json.dumps(parsed.frontmatter)) < 2 * MAX_BYTES
    assert parsed.problems or name == "digits"
    assert parsed.frontmatter.get("title") == "A" or parsed.body.startswith("---")


def test_escaped_nul_and_surrogates_never_get_in() -> None:
    parsed = parse('---\na: "x\\0y"\nb: ["\\ud800"]\n"c\\0": 1\n---\n')
    assert parsed.frontmatter == {"a": "x\ufffdy", "b": ["\ufffd"], "c\ufffd": 1}
    assert parsed.problems


def test_keys_are_always_strings() -> None:
    assert parse("---\n1: a\ntrue: b\n2026-01-01: c\nnull: d\n---\n").frontmatter == {
        "1": "a", "true": "b", "2026-01-01": "c", "null": "d",
    }  # fmt: skip
