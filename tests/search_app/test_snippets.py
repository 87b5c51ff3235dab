import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_app.index.documents import TextField
from search_app.snippets import LENGTH, Lookup, make_snippet, plain_text
from search_app.terms import parse


def snippet(query: str, *fields: TextField) -> dict[str, object]:
    return make_snippet(fields, Lookup([term.clause for term in parse(query)]))


def highlighted(made: dict[str, object]) -> list[str]:
    return [str(made["text"])[start:end] for start, end in made["highlights"]]  # type: ignore[attr-defined]


TITLE = TextField("title", "A title")


def test_it_shows_the_neighbourhood_of_the_match() -> None:
    text = "word " * 200 + "the needle is here " + "word " * 200
    made = snippet("needle", TITLE, TextField("description", text))
    assert made["field"] == "description" and made["matched_fields"] == ["description"]
    assert "the needle is here" in str(made["text"]) and highlighted(made) == ["needle"]
    assert str(made["text"]).startswith("…word ") and str(made["text"]).endswith(" word…")
    assert len(str(made["text"])) <= LENGTH + 2


def test_it_prefers_the_place_with_the_most_words() -> None:
    text = "needle " + "x " * 200 + "needle beside thread " + "x " * 200
    assert "needle beside thread" in str(
        snippet("thread needle", TITLE, TextField("description", text))["text"]
    )


def test_the_field_with_more_of_the_words_wins_and_all_are_named() -> None:
    made = snippet(
        "red fox",
        TextField("title", "A fox"),
        TextField("description", "the red fox"),
        TextField("evidence", "red"),
    )
    assert made["field"] == "description" and made["matched_fields"] == [
        "title",
        "description",
        "evidence",
    ]


def test_among_equals_the_first_field_wins() -> None:
    assert (
        snippet("fox", TextField("title", "A fox"), TextField("description", "fox fox"))["field"]
        == "title"
    )


def test_without_a_match_it_is_the_title() -> None:
    assert snippet("zebra", TITLE, TextField("description", "text")) == {
        "field": "title",
        "text": "A title",
        "matched_fields": [],
        "highlights": [],
    }


@pytest.mark.parametrize(
    ("markdown", "plain"),
    [
        ("# Heading\n\nSome **bold** and _soft_ `code`.", "Heading Some bold and soft code."),
        ("- [x] done\n- [ ] open\n1. first", "done open first"),
        (
            "[text](https://example.org/a_b 'x') ![image](a.png)",
            "[text](https://example.org/a_b 'x') image",
        ),
        ("see [the docs](https://example.org)", "see the docs"),
        ("```python\nx = snake_case_name\n```", "x = snake_case_name"),
        ("> quoted\n\n| a | b |\n|---|---|\n| 1 | 2 |", "quoted a b 1 2"),
        ("a <br> b <script>x</script>", "a b x"),
        ("2 * 3 < 4", "2 3 < 4"),
    ],
)
def test_markdown_is_stripped(markdown: str, plain: str) -> None:
    assert plain_text(markdown) == plain


def test_a_match_inside_an_address_shows_it() -> None:
    made = snippet(
        "needle", TITLE, TextField("description", "see [docs](https://example.org/needle)", True)
    )
    assert "needle" in str(made["text"]) and highlighted(made) == ["needle"]


def test_pairs_of_characters_are_highlighted_as_one() -> None:
    made = snippet("数据库", TITLE, TextField("description", "我们优化数据库查询"))
    assert highlighted(made) == ["数据库"]


def test_the_unfinished_word_and_parts_of_identifiers_are_highlighted() -> None:
    assert highlighted(
        snippet("authenticat", TITLE, TextField("description", "uses authentication"))
    ) == ["authentication"]
    assert highlighted(snippet("user ", TITLE, TextField("description", "calls getUserById"))) == [
        "getUserById"
    ]


FAMILY = "👩\u200d👩\u200d👧\u200d👦"


@pytest.mark.parametrize("cluster", [FAMILY, "e\u0301\u0323", "🇩🇪", "👍🏽", "नि"])
@pytest.mark.parametrize("shift", range(4))
def test_no_character_is_cut_in_two(cluster: str, shift: int) -> None:
    text = "x" * shift + cluster * 100 + " needle " + cluster * 100
    shown = str(snippet("needle", TITLE, TextField("description", text))["text"]).strip("…")
    before, after = shown.split(" needle ")
    assert before.lstrip("x").replace(cluster, "") == "" and after.replace(cluster, "") == ""


@given(st.text(max_size=400), st.text(max_size=20))
def test_any_text_gives_a_snippet_that_keeps_its_offsets(text: str, query: str) -> None:
    made = snippet(query, TITLE, TextField("description", text, True), TextField("id", "TASK-0001"))
    assert str(made["text"]).strip()
    assert made == snippet(
        query, TITLE, TextField("description", text, True), TextField("id", "TASK-0001")
    )
    for start, end in made["highlights"]:  # type: ignore[attr-defined]
        assert 0 <= start < end <= len(str(made["text"]))
    if str(made["text"]).startswith("…") and len(str(made["text"])) > 1:
        assert not unicodedata.category(str(made["text"])[1]).startswith("M")
