"""Test splices and diffs: what is shown and stored is exactly what happened to the text."""

import difflib
import re
import sys
from collections.abc import Iterable
from types import FrameType

from hypothesis import example, given
from hypothesis import strategies as st

from resources_app.editing import text
from resources_app.editing.text import (
    Splice,
    apply_splices,
    nearest_line,
    splices_between,
    unified_diff,
)

# Few letters, so that lines repeat; line endings of all kinds, of which only \n counts.
TEXTS = st.text(alphabet="ab\n\n\r\f\u2028é👍\u0301", max_size=60)
DOCUMENTS = st.lists(st.sampled_from(["", "a", "b", "same", "👍🏽", "e\u0301"]), max_size=40).map(
    "\n".join
)
HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
MISSING_END = "\\ No newline at end of file"


def apply_diff(old: str, diff: str) -> str:
    """Apply a diff like patch(1) without fuzz: a missing context or removed line is an error."""
    source, position = _lines(old), 0
    result: list[str] = []
    for head, body in _hunks_of(diff):
        start, length = int(head[1]), int(head[2] or 1)
        first = start - 1 if length else start
        result += source[position:first]
        removed = [line for mark, line in body if mark in " -"]
        assert source[first : first + length] == removed, "the hunk does not fit the old text"
        added = [line for mark, line in body if mark in " +"]
        assert len(result) == (int(head[3]) - 1 if added else int(head[3])), (
            "the hunk stands at another line"
        )
        assert len(added) == int(head[4] or 1)
        result += added
        position = first + length
    return "".join(result + source[position:])


def _lines(whole: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", whole)


def _hunks_of(diff: str) -> Iterable[tuple[re.Match[str], list[tuple[str, str]]]]:
    hunks: list[tuple[re.Match[str], list[tuple[str, str]]]] = []
    for line in diff.split("\n")[2:] if diff else []:
        if line == MISSING_END:
            mark, ended = hunks[-1][1].pop()
            hunks[-1][1].append((mark, ended.removesuffix("\n")))
        elif match := HUNK.fullmatch(line):
            hunks.append((match, []))
        else:
            hunks[-1][1].append((line[0], line[1:] + "\n"))
    return hunks


@given(TEXTS, TEXTS)
def test_splices_between_two_texts_lead_from_one_to_the_other(old: str, new: str) -> None:
    assert apply_splices(old, splices_between(old, new)) == new


@given(TEXTS)
def test_no_splices_between_equal_texts(same: str) -> None:
    assert splices_between(same, same) == []


@given(TEXTS, TEXTS, TEXTS, TEXTS)
def test_a_splice_holds_only_what_differs(start: str, old: str, new: str, end: str) -> None:
    for _, removed, inserted in splices_between(start + old + end, start + new + end):
        assert removed <= len(old)
        assert len(inserted) <= len(new)


@given(DOCUMENTS, DOCUMENTS)
@example("a", "a\n")
@example("a\n", "a")
@example("", "a")
@example("a\n", "")
@example("", "\n")
def test_a_diff_applied_to_the_old_text_gives_the_new_one(old: str, new: str) -> None:
    assert apply_diff(old, unified_diff(old, splices_between(old, new), "x")) == new


@st.composite
def edited(draw: st.DrawFn) -> tuple[str, list[Splice]]:
    """Draw a text of many lines and splices all over it, as replace_all makes them."""
    old = draw(DOCUMENTS)
    points = sorted(draw(st.lists(st.integers(0, len(old)), max_size=12, unique=True)))
    pairs = zip(points[::2], points[1::2], strict=False)
    return old, [
        (start, end - start, draw(st.sampled_from(["", "x", "y\n", "\n\n"])))
        for start, end in pairs
    ]


@given(edited())
def test_a_diff_of_many_splices_applied_to_the_old_text_gives_the_new_one(
    case: tuple[str, list[Splice]],
) -> None:
    old, splices = case
    assert apply_diff(old, unified_diff(old, splices, "x")) == apply_splices(old, splices)


@given(DOCUMENTS, DOCUMENTS)
def test_a_diff_says_what_difflib_says_of_the_same_region(old: str, new: str) -> None:
    ours = [
        line
        for line in unified_diff(old, splices_between(old, new), "x").split("\n")[2:]
        if line[0] in "+-"
    ]
    theirs = [line for line in difflib.unified_diff(_lines(old), _lines(new)) if line[0] in "+-"][
        2:
    ]
    assert _balance(ours) == _balance(line.removesuffix("\n") for line in theirs)


def _balance(lines: Iterable[str]) -> dict[str, int]:
    """Return added minus removed lines: two diffs may align equal lines differently, but never
    disagree here.
    """
    counts: dict[str, int] = {}
    for line in lines:
        counts[line[1:]] = counts.get(line[1:], 0) + (1 if line[0] == "+" else -1)
    return {line: count for line, count in counts.items() if count}


def test_a_diff_looks_as_people_know_it() -> None:
    old = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n"
    new = old.replace("five", "5")
    assert unified_diff(old, splices_between(old, new), "TASK-0001/description").split("\n") == [
        "--- TASK-0001/description",
        "+++ TASK-0001/description",
        "@@ -4,3 +4,3 @@",
        " four",
        "-five",
        "+5",
        " six",
    ]


def test_a_diff_tells_when_only_the_last_line_end_changed() -> None:
    assert unified_diff("a", splices_between("a", "a\n"), "x").split("\n")[2:] == [
        "@@ -1 +1 @@",
        "-a",
        MISSING_END,
        "+a",
    ]


def test_there_is_no_diff_when_nothing_changed() -> None:
    assert unified_diff("a\nb", [(0, 1, "a")], "x") == ""


def test_changes_far_apart_are_separate_hunks_with_true_line_numbers() -> None:
    old = "".join(f"line {number}\n" for number in range(1, 101))
    splices = [(old.index("line 10\n"), 8, "ten\nand more\n"), (old.index("line 90\n"), 8, "")]
    heads = [line for line in unified_diff(old, splices, "x").split("\n") if line.startswith("@@")]
    assert heads == ["@@ -9,3 +9,4 @@", "@@ -89,3 +90,2 @@"]


def test_a_region_of_very_many_lines_is_shown_as_replaced() -> None:
    old = "".join(f"{number}\n" for number in range(text.MAX_COMPARED_LINES + 1))
    new = old.replace("\n", "!\n")
    diff = unified_diff(old, splices_between(old, new), "x")
    assert apply_diff(old, diff) == new
    assert diff.count("\n@@ ") == 1


def calls_during(work: object) -> int:
    """Return the number of Python and C calls, a measure of work that does not depend on the
    machine.
    """
    count = 0

    def count_call(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    sys.setprofile(count_call)
    try:
        work()  # type: ignore[operator]
    finally:
        sys.setprofile(None)
    return count


def append_and_show(old: str) -> None:
    splices: list[Splice] = [(len(old), 0, "one more line\n")]
    apply_splices(old, splices)
    unified_diff(old, splices, "x")


def test_appending_to_a_long_text_takes_no_more_steps_than_to_a_short_one() -> None:
    short, long = "a line\n" * 20, "a line\n" * 150_000
    assert calls_during(lambda: append_and_show(long)) <= calls_during(
        lambda: append_and_show(short)
    )


def test_finding_what_changed_in_a_long_text_takes_steps_by_its_logarithm() -> None:
    long = "a line\n" * 150_000
    assert calls_during(lambda: splices_between(long, long + "x")) < 200


class CountedText(str):
    """Count the characters that searches in it may have to read."""

    looked_at = 0

    def find(self, wanted: str, start: int = 0, end: int | None = None) -> int:  # type: ignore[override]
        found = super().find(wanted, start, end)
        self.looked_at += (len(self) if found < 0 else found) - start
        return found

    def rfind(self, wanted: str, start: int = 0, end: int | None = None) -> int:  # type: ignore[override]
        found = super().rfind(wanted, start, end)
        self.looked_at += (len(self) if end is None else end) - max(found, start)
        return found

    def count(self, wanted: str, start: int = 0, end: int | None = None) -> int:  # type: ignore[override]
        self.looked_at += (len(self) if end is None else end) - start
        return super().count(wanted, start, end)


def test_a_diff_of_many_replacements_reads_the_text_a_few_times_at_most() -> None:
    for old in (
        CountedText("x " * 2_000),
        CountedText("x\n" * 2_000),
        CountedText(("x" + "\n" * 20) * 200),
    ):
        splices: list[Splice] = [(match.start(), 1, "y") for match in re.finditer("x", old)]
        unified_diff(old, splices, "x")
        assert 0 < old.looked_at < 5 * len(old)


def test_the_nearest_line_is_the_one_that_a_stale_copy_meant() -> None:
    assert nearest_line("# Goal\nShip the login page\n", "Ship the logon page") == (
        2,
        "Ship the login page",
    )


def test_the_nearest_line_is_sought_for_the_line_that_the_text_lacks() -> None:
    assert nearest_line("# Goal\nShip it today\n", "# Goal\nShip it now") == (2, "Ship it today")


def test_the_nearest_line_counts_as_insert_does() -> None:
    assert nearest_line("a\u2028b\fc\nwanted line", "wanted lime") == (2, "wanted line")


def test_there_is_no_nearest_line_when_nothing_is_like_it() -> None:
    assert nearest_line("completely different\n", "xyz") is None
    assert nearest_line("a\n\nb", "  \n ") is None
    assert nearest_line("", "wanted") is None


def test_the_nearest_of_many_long_lines_is_found_without_comparing_them_all() -> None:
    paragraphs = [
        f"{number} " + "the task backlog agent writes and reads. " * 120 for number in range(300)
    ]
    steps = calls_during(
        lambda: nearest_line("\n".join(paragraphs), paragraphs[7].replace("agent", "robot"))
    )
    assert steps < 300 * 10 + 100_000


@given(TEXTS, TEXTS)
def test_the_nearest_line_is_a_line_of_the_text(whole: str, wanted: str) -> None:
    if near := nearest_line(whole, wanted):
        assert whole.split("\n")[near[0] - 1] == near[1]
