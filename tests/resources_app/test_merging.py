"""Test two edits of one text: changes of one side are taken, changes of both are shown as
conflicts.
"""

from hypothesis import given
from hypothesis import strategies as st

from resources_app.editing.merge import MIDDLE, MINE, THEIRS, merge_texts

LINES = st.lists(st.sampled_from(["a", "b", "c", "d", ""]), max_size=12).map("\n".join)


def test_edits_of_different_lines_are_both_kept() -> None:
    merged = merge_texts("one\ntwo\nthree", "ONE\ntwo\nthree", "one\ntwo\nTHREE")
    assert (merged.text, merged.conflicts) == ("ONE\ntwo\nTHREE", 0)


def test_edits_of_the_same_line_stand_side_by_side() -> None:
    merged = merge_texts("one\ntwo", "one\nmine", "one\ntheirs")
    assert merged.conflicts == 1
    assert merged.text == f"one\n{MINE}\nmine\n{MIDDLE}\ntheirs\n{THEIRS}"


def test_additions_at_both_ends_are_kept() -> None:
    assert merge_texts("middle", "top\nmiddle", "middle\nbottom").text == "top\nmiddle\nbottom"


@given(LINES, LINES)
def test_whoever_changed_nothing_gives_way(base: str, edited: str) -> None:
    assert merge_texts(base, edited, base) == merge_texts(base, base, edited)
    assert merge_texts(base, edited, base).text == edited


@given(LINES, LINES)
def test_the_same_edit_on_both_sides_is_one_edit(base: str, edited: str) -> None:
    merged = merge_texts(base, edited, edited)
    assert (merged.text, merged.conflicts) == (edited, 0)


@given(LINES, LINES, LINES)
def test_no_line_that_somebody_added_is_lost(base: str, mine: str, theirs: str) -> None:
    merged = set(merge_texts(base, mine, theirs).text.split("\n"))
    added = (set(mine.split("\n")) | set(theirs.split("\n"))) - set(base.split("\n"))
    assert added <= merged
