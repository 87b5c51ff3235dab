"""Test lists as lines and texts as browsers send them back: untouched fields do not change."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from resources_app.admin.forms import LinesField, ReferencesField, plain

characters = st.characters(exclude_categories=["Cs"], exclude_characters="\x00")
texts = st.text(characters | st.sampled_from(" \t\r\n|"), max_size=40)
entries = texts.map(str.strip).filter(bool)
references = st.fixed_dictionaries({"url": entries, "title": texts})


def through_a_browser(field: LinesField, value: list[Any]) -> list[Any]:
    return field.clean(plain(field.prepare_value(value)).replace("\n", "\r\n"))


@given(st.lists(entries, max_size=5))
def test_entries_that_were_there_come_back_as_they_were(value: list[str]) -> None:
    field = LinesField()
    field.keep(value)
    assert plain(through_a_browser(field, value)) == plain(value)


@given(st.lists(entries, max_size=5))
def test_entries_written_anew_are_read_as_they_would_be_shown(value: list[str]) -> None:
    assert through_a_browser(LinesField(), value) == plain(value)


@given(st.lists(references, max_size=5))
def test_references_that_were_there_come_back_whatever_is_in_them(
    value: list[dict[str, str]],
) -> None:
    field = ReferencesField()
    field.keep(value)
    assert plain(through_a_browser(field, value)) == plain(value)


def test_a_reference_is_a_url_and_perhaps_a_title() -> None:
    typed = "https://example.com | An example \r\n\r\n docs/a file.md\r\n"
    assert ReferencesField().clean(typed) == [
        {"url": "https://example.com", "title": "An example"},
        {"url": "docs/a file.md", "title": ""},
    ]
