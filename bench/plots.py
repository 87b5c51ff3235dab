"""Draw small multiples as SVG: a panel for each row, a line for each database, the number of tasks
along the bottom.

They include a background, so that they are readable on light and dark pages.
"""

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

COLUMNS = 4
WIDTH, HEIGHT = 210, 150
LEFT, RIGHT, TOP, BOTTOM = 44, 14, 34, 24
HEAD = 34
_STYLE = """
text { font: 11px system-ui, sans-serif; fill: #57606a }
.name { font-weight: 600; fill: #1f2328 }
.paper { fill: #ffffff }
.grid { stroke: #d0d7de; stroke-width: 1 }
.line { fill: none; stroke-width: 2 }
.sqlite { stroke: #0969da } .postgres { stroke: #bc4c00 }
circle.sqlite, .key.sqlite { fill: #0969da } circle.postgres, .key.postgres { fill: #bc4c00 }
@media (prefers-color-scheme: dark) {
text { fill: #9198a1 } .name { fill: #f0f6fc } .paper { fill: #0d1117 } .grid { stroke: #3d444d }
.sqlite { stroke: #4493f8 } .postgres { stroke: #f0883e }
circle.sqlite, .key.sqlite { fill: #4493f8 } circle.postgres, .key.postgres { fill: #f0883e }
}
"""

Rows = Sequence[dict[str, Any]]


def panels(rows: Rows, figure: str, title: str) -> str:
    names = list(dict.fromkeys(row["name"] for row in rows))
    width, height = COLUMNS * WIDTH, HEAD + -(-len(names) // COLUMNS) * HEIGHT
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"'
            f' aria-label="{escape(title)}">'
        ),
        f'<style>{_STYLE}</style><rect class="paper" width="{width}" height="{height}"/>',
        f'<text class="name" x="10" y="21">{escape(title)}</text>',
        *_legend(rows, width),
    ]
    for at, name in enumerate(names):
        x, y = at % COLUMNS * WIDTH, HEAD + at // COLUMNS * HEIGHT
        own = [row for row in rows if row["name"] == name]
        parts.append(f'<g transform="translate({x} {y})">{"".join(_panel(name, own, figure))}</g>')
    return "\n".join([*parts, "</svg>", ""])


def _legend(rows: Rows, width: int) -> Iterator[str]:
    for at, database in enumerate(dict.fromkeys(row["db"] for row in rows)):
        x = width - 180 + at * 90
        yield f'<rect class="key {database}" x="{x}" y="12" width="10" height="10"/>'
        yield f'<text x="{x + 15}" y="21">{database}</text>'


def _panel(name: str, rows: Rows, figure: str) -> Iterator[str]:
    sizes = sorted({row["tasks"] for row in rows})
    most = _round_up(max(row[figure] for row in rows))
    yield f'<text class="name" x="{LEFT}" y="22">{escape(name)}</text>'
    for value in (0, most / 2, most):
        y = _y(value, most)
        yield f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>'
    for at, size in enumerate(sizes):
        yield (
            f'<text x="{_x(at, sizes):.1f}" y="{HEIGHT - 8}"'
            f' text-anchor="middle">{_short(size)}</text>'
        )
    for database in dict.fromkeys(row["db"] for row in rows):
        own = sorted((row for row in rows if row["db"] == database), key=lambda row: row["tasks"])
        yield from _line(
            database,
            [(_x(at, sizes), _y(row[figure], most), row[figure]) for at, row in enumerate(own)],
        )


def _line(database: str, points: list[tuple[float, float, float]]) -> Iterator[str]:
    drawn = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in points)
    yield f'<polyline class="line {database}" points="{drawn}"/>'
    for x, y, value in points:
        yield (
            f'<circle class="{database}" cx="{x:.1f}" cy="{y:.1f}" r="3"><title>{database}:'
            f" {value:g}</title></circle>"
        )


def _x(at: int, sizes: Sequence[int]) -> float:
    return LEFT + 8 + (WIDTH - LEFT - RIGHT - 16) * at / max(1, len(sizes) - 1)


def _y(value: float, most: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / most


def _round_up(value: float) -> float:
    """Round up to 1, 2, 4, 6 or 8 times a power of ten, which halve well."""
    power = 0.01
    while value > 10 * power:
        power *= 10
    return next(round(step * power, 2) for step in (1, 2, 4, 6, 8, 10) if step * power >= value)


def _short(size: int) -> str:
    return f"{size // 1000}k" if size >= 1000 else str(size)
