"""Represent text edits as splices, which are applied, stored in the history and shown as diffs.

Pure; offsets count code points.
"""

import difflib
import heapq
from collections.abc import Iterable, Sequence

# (position, characters removed, text inserted), ascending and non-overlapping, in offsets of the
# old text.
Splice = tuple[int, int, str]

# One line is enough to locate the change. Agents would pay for every further line in each edit.
CONTEXT_LINES = 1
# difflib is quadratic in the worst case. A changed region with more lines than this is shown as
# replaced whole.
MAX_COMPARED_LINES = 2000
# Bounds for the nearest-line search: difflib takes seconds for a few long paragraphs.
COMPARED_LENGTH = 200
COMPARED_CANDIDATES = 10


def apply_splices(text: str, splices: Iterable[Sequence[int | str]]) -> str:
    parts: list[str] = []
    position = 0
    for start, removed, inserted in splices:
        assert isinstance(start, int) and isinstance(removed, int)  # noqa: S101  JSON returns plain lists
        parts += (text[position:start], str(inserted))
        position = start + removed
    parts.append(text[position:])
    return "".join(parts)


def splices_between(old: str, new: str) -> list[Splice]:
    """Return the one region that differs.

    Common ends are found by binary search, so string comparison dominates the cost.
    """
    if old == new:
        return []
    start = _common_prefix(old, new)
    end = _common_suffix(old[start:], new[start:])
    return [(start, len(old) - end - start, new[start : len(new) - end])]


def unified_diff(old: str, splices: Sequence[Splice], label: str) -> str:
    """Return a unified diff built from the lines around the splices.

    Its cost depends on the edit, not on the text.
    """
    counted = old_line = new_line_shift = 0
    hunks: list[str] = []
    for start, end, group in _neighbourhoods(old, splices):
        before = old[start:end]
        after = apply_splices(
            before, [(at - start, removed, inserted) for at, removed, inserted in group]
        )
        old_line += old.count("\n", counted, start)
        counted = start
        hunks += _hunks(before, after, old_line, old_line + new_line_shift)
        new_line_shift += after.count("\n") - before.count("\n")
    return "\n".join([f"--- {label}", f"+++ {label}", *hunks]) if hunks else ""


def nearest_line(text: str, wanted: str) -> tuple[int, str] | None:
    """Return the number and text of the line most similar to the first line of `wanted` that is
    missing from the text.

    That line was probably changed.
    """
    sought = [line for line in wanted.split("\n") if line.strip()]
    if not sought:
        return None
    needle = next((line for line in sought if line not in text), sought[0])[:COMPARED_LENGTH]
    lines = text.split("\n")[:MAX_COMPARED_LINES]
    shortened = [line[:COMPARED_LENGTH] for line in lines]
    triples = _triples(needle)
    likely = heapq.nlargest(
        COMPARED_CANDIDATES, set(shortened), key=lambda line: (len(triples & _triples(line)), line)
    )
    close = difflib.get_close_matches(needle, likely, n=1, cutoff=0.5)
    if not close:
        return None
    number = shortened.index(close[0])
    return number + 1, lines[number]


def _triples(line: str) -> set[str]:
    return {line[at : at + 3] for at in range(max(len(line) - 2, 1))}


def _common_prefix(a: str, b: str) -> int:
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _common_suffix(a: str, b: str) -> int:
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[len(a) - middle : len(a) - low] == b[len(b) - middle : len(b) - low]:
            low = middle
        else:
            high = middle - 1
    return low


def _neighbourhoods(old: str, splices: Sequence[Splice]) -> list[tuple[int, int, list[Splice]]]:
    """Return the regions of whole lines around the splices, merged where they touch."""
    groups: list[list[Splice]] = []
    position = 0
    for splice in splices:
        if groups and old.count("\n", position, splice[0]) <= 2 * CONTEXT_LINES + 1:
            groups[-1].append(splice)
        else:
            groups.append([splice])
        position = splice[0] + splice[1]
    return [
        (_line_start(old, group[0][0]), _line_end(old, group[-1][0] + group[-1][1]), group)
        for group in groups
    ]


def _line_start(text: str, position: int) -> int:
    start = text.rfind("\n", 0, position) + 1
    for _ in range(CONTEXT_LINES):
        if start == 0:
            break
        start = text.rfind("\n", 0, start - 1) + 1
    return start


def _line_end(text: str, position: int) -> int:
    end = position
    for _ in range(CONTEXT_LINES + 1):
        found = text.find("\n", end)
        if found < 0:
            return len(text)
        end = found + 1
    return end


def _hunks(before: str, after: str, old_line: int, new_line: int) -> list[str]:
    """Run difflib on a small region and shift the line numbers to the region's place in the
    text.
    """
    old_lines, new_lines = _lines(before), _lines(after)
    if max(len(old_lines), len(new_lines)) > MAX_COMPARED_LINES:
        groups = [[("replace", 0, len(old_lines), 0, len(new_lines))]]
    else:
        matcher = difflib.SequenceMatcher(None, old_lines, new_lines, autojunk=False)
        groups = [list(group) for group in matcher.get_grouped_opcodes(CONTEXT_LINES)]
    rendered: list[str] = []
    for group in groups:
        rendered.append(_hunk_head(group, old_line, new_line))
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                rendered += [_shown(" ", line) for line in old_lines[i1:i2]]
            else:
                rendered += [_shown("-", line) for line in old_lines[i1:i2]]
                rendered += [_shown("+", line) for line in new_lines[j1:j2]]
    return rendered


def _lines(text: str) -> list[str]:
    """Split at \\n only: splitlines() would also break at form feeds and Unicode separators inside
    a line.
    """
    *whole, rest = text.split("\n")
    return [f"{line}\n" for line in whole] + ([rest] if rest else [])


def _shown(mark: str, line: str) -> str:
    """Format a line like diff(1), which marks a last line without a newline."""
    return mark + (line[:-1] if line.endswith("\n") else f"{line}\n\\ No newline at end of file")


def _hunk_head(
    group: Sequence[tuple[str, int, int, int, int]], old_line: int, new_line: int
) -> str:
    _, old_start, _, new_start, _ = group[0]
    _, _, old_end, _, new_end = group[-1]
    old_range = _range(old_line + old_start, old_end - old_start)
    return f"@@ -{old_range} +{_range(new_line + new_start, new_end - new_start)} @@"


def _range(start: int, length: int) -> str:
    """Format a range like diff(1), where an empty range names the line before it."""
    return (
        f"{start + 1 if length else start}"
        if length == 1
        else f"{start + 1 if length else start},{length}"
    )
