"""Test that times use the reader's zone, shortcuts the reader's platform, and tables agree with
their charts.
"""

import datetime
import re

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from resources_app.models import Change
from resources_app.writing import write_path
from tests.factories import as_actor, make_task, task_uri
from tests.viewer.browsing import fragment, signed_in, text_of

# Wednesday in UTC, still Tuesday in Los Angeles.
MOMENT = datetime.datetime(2026, 11, 18, 0, 57, tzinfo=datetime.UTC)


@pytest.fixture
def written(carol: User) -> None:
    make_task(title="A piece of work")
    Change.objects.update(created_at=MOMENT)


@pytest.mark.parametrize("view", ["", "?view=journal"])
@pytest.mark.parametrize(
    ("zone", "day", "time"),
    [
        ("America/Los_Angeles", "Tuesday 17 November", "16:57"),
        ("Asia/Tokyo", "Wednesday 18 November", "09:57"),
        ("", "Wednesday 18 November", "00:57"),
        ("Mars/Olympus_Mons", "Wednesday 18 November", "00:57"),
        ("../../etc/passwd", "Wednesday 18 November", "00:57"),
    ],
)
def test_activity_is_in_the_zone_of_the_browser(
    written: None, alice: User, zone: str, day: str, time: str, view: str
) -> None:
    client = signed_in(alice)
    client.cookies["timezone"] = zone
    shown = text_of(client.get(f"/activity/{view}"))
    assert day in shown
    assert f'<time datetime="2026-11-18T00:57:00+00:00">{time}</time>' in shown
    assert (
        f"Times are in {zone if zone in ('America/Los_Angeles', 'Asia/Tokyo') else 'UTC'}." in shown
    )


def test_an_exact_time_names_its_zone(written: None, alice: User) -> None:
    client = signed_in(alice)
    client.cookies["timezone"] = "America/Los_Angeles"
    shown = text_of(client.get("/t/TASK-0001/"))
    assert '<time datetime="2026-11-18T00:57:00+00:00" title="2026-11-17 16:57 PST">' in shown


def test_answers_for_programs_stay_in_utc(alice: User) -> None:
    task = make_task(title="T")
    client = signed_in(alice)
    client.cookies["timezone"] = "Asia/Tokyo"
    for path in (f"/api/v1/tasks/{task.ref}/", f"/api/v1/resource/?uri={task_uri(task)}/versions"):
        assert "+00:00" in text_of(client.get(path)) and "+09:00" not in text_of(client.get(path))


def test_a_card_is_late_by_the_readers_calendar(alice: User) -> None:
    east, west = (
        timezone.localdate(timezone=datetime.timezone(datetime.timedelta(hours=hours)))
        for hours in (14, -12)
    )
    assert east > west
    make_task(title="Due", due_date=west.isoformat())
    client = signed_in(alice)
    for zone, is_late in (("Pacific/Kiritimati", True), ("Etc/GMT+12", False)):
        client.cookies["timezone"] = zone
        assert (" late" in text_of(fragment(client, "/list/"))) is is_late, zone


@pytest.mark.parametrize("days", [30, 60, 90])
def test_the_table_of_insights_adds_up_to_its_chart(alice: User, carol: User, days: int) -> None:
    for back in range(days):
        task = make_task(title=f"{back} days ago")
        write_path.write(
            as_actor(carol), task_uri(task, "status"), {"type": "set", "value": "done"}
        )
        Change.objects.filter(object_id=task.pk).update(
            created_at=timezone.now() - datetime.timedelta(days=back)
        )
    shown = text_of(signed_in(alice).get(f"/insights/?days={days}"))
    columns = re.findall(r"<title>\d+ \w+: (\d+), \d+ by agents</title>", shown)
    assert sum(map(int, columns)) == 2 * days, "each column has a part inside it"
    table = shown.split("Completed that week")[1].split("</table>")[0]
    weeks = [
        int(cells[-1])
        for cells in (re.findall(r"<td>(\d+)</td>", row) for row in table.split("<tr>"))
        if cells
    ]
    assert sum(weeks) == days
    assert weeks[0] == 7


@pytest.mark.parametrize(
    ("agent", "shown", "hidden"),
    [
        (
            "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/140.0 Safari/537.36",
            "Ctrl K",
            "⌘",
        ),
        (
            "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/140.0",
            "Ctrl K",
            "⌘",
        ),
        (
            "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 Safari/605.1.15",
            "⌘K",
            "Ctrl",
        ),
    ],
)
def test_shortcuts_are_those_of_the_platform(
    alice: User, agent: str, shown: str, hidden: str
) -> None:
    make_task(title="T")
    client = signed_in(alice)
    for path in ("/board/", "/t/TASK-0001/", "/t/TASK-0001/edit/", "/new/"):
        page = text_of(client.get(path, headers={"User-Agent": agent}))
        assert shown in page and hidden not in page, path
