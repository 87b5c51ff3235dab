"""Draw charts as SVG on the server: no script, no library, accessible to screen readers through
their table.
"""

import datetime
from collections.abc import Sequence

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

WIDTH, HEIGHT = 720, 300
LEFT, RIGHT, TOP, BOTTOM = 44, 24, 14, 40

Series = Sequence[tuple[str, str, Sequence[int]]]


def stacked(days: Sequence[datetime.date], series: Series, label: str) -> SafeString:
    """Draw stacked areas, the first at the bottom. Each series is (class, name, values)."""
    most = max((sum(values[at] for _, _, values in series) for at in range(len(days))), default=0)
    below = [0] * len(days)
    areas = []
    for css, name, values in series:
        above = [low + value for low, value in zip(below, values, strict=True)]
        points = [*_points(above, most), *reversed(_points(below, most))]
        areas.append((css, " ".join(points), f"{name}: {values[-1]} now"))
        below = above
    drawn = format_html_join(
        "", '<polygon class="area s-{}" points="{}"><title>{}</title></polygon>', areas
    )
    return _chart(label, _axes(days, most), drawn)


def lines(days: Sequence[datetime.date], series: Series, label: str) -> SafeString:
    most = max((max(values) for _, _, values in series), default=0)
    drawn = format_html_join(
        "",
        '<polyline class="line {}" points="{}"><title>{}</title></polyline>',
        (
            (css, " ".join(_points(values, most)), f"{name}: {values[-1]} now")
            for css, name, values in series
        ),
    )
    return _chart(label, _axes(days, most), drawn)


def columns(
    days: Sequence[datetime.date], whole: Sequence[int], part: Sequence[int], label: str
) -> SafeString:
    """Draw a column per day with `part` inside it, from the bottom."""
    most = max(whole, default=0)
    width = max(2.0, (WIDTH - LEFT - RIGHT) / max(1, len(days)) - 2)
    drawn = []
    for at, day in enumerate(days):
        if whole[at]:
            title = f"{day:%-d %b}: {whole[at]}, {part[at]} by agents"
            drawn.append(_column(at, len(days), width, whole[at], most, "", title))
            drawn.append(_column(at, len(days), width, part[at], most, "agent", title))
    return _chart(label, _axes(days, most), mark_safe("".join(drawn)), "columns")  # noqa: S308  parts are escaped


def _column(
    at: int, count: int, width: float, value: int, most: int, css: str, title: str
) -> SafeString:
    x, top = _x(at, count) - width / 2, _y(value, most)
    return format_html(
        '<rect class="{}" x="{}" y="{}" width="{}" height="{}"><title>{}</title></rect>',
        css,
        f"{x:.1f}",
        f"{top:.1f}",
        f"{width:.1f}",
        f"{HEIGHT - BOTTOM - top:.1f}",
        title,
    )


def _chart(label: str, axes: SafeString, drawn: SafeString, css: str = "") -> SafeString:
    return format_html(
        '<svg class="chart {}" viewBox="0 0 {} {}" role="img" aria-label="{}">{}{}</svg>',
        css,
        WIDTH,
        HEIGHT,
        label,
        axes,
        drawn,
    )


def _axes(days: Sequence[datetime.date], most: int) -> SafeString:
    step = _round_step(most / 4)
    grid = format_html_join(
        "",
        '<line class="grid" x1="{}" x2="{}" y1="{}" y2="{}"/><text class="tick" x="{}" y="{}"'
        ' text-anchor="end">{}</text>',
        (
            (
                LEFT,
                WIDTH - RIGHT,
                f"{_y(value, most):.1f}",
                f"{_y(value, most):.1f}",
                LEFT - 8,
                f"{_y(value, most) + 5:.1f}",
                value,
            )
            for value in range(0, most + 1, step)
        ),
    )
    named = range(0, len(days), max(1, len(days) // 6))
    dates = format_html_join(
        "",
        '<text class="tick" x="{}" y="{}" text-anchor="middle">{}</text>',
        ((f"{_x(at, len(days)):.1f}", HEIGHT - 8, f"{days[at]:%-d %b}") for at in named),
    )
    return format_html("{}{}", grid, dates)


def _round_step(rough: float) -> int:
    """Return a step of 1, 2 or 5 times a power of ten."""
    power = 1
    while rough > 10 * power:
        power *= 10
    return next((step * power for step in (1, 2, 5, 10) if step * power >= rough), 1)


def _points(values: Sequence[int], most: int) -> list[str]:
    return [f"{_x(at, len(values)):.1f},{_y(value, most):.1f}" for at, value in enumerate(values)]


def _x(at: int, count: int) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * at / max(1, count - 1)


def _y(value: float, most: int) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / max(1, most)
