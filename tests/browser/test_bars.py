"""Test the viewer's budgets: bytes, requests, connections, and not one request to another host."""

import time

import httpx
from playwright.sync_api import expect

from tests.browser.conftest import Filled, Visit

PAGES = (
    "/", "/board/", "/list/", "/epics/", "/insights/", "/activity/", "/files/resources", "/connect/", "/profile/", "/sync/",
    "/t/TASK-0002/", "/open/?uri=mcp://backlog/resources/docs/notes.md",
)  # fmt: skip


def test_a_board_of_three_hundred_tasks_is_light(filled: Filled, visit: Visit) -> None:
    watched = visit("about:blank", ready=False)
    wire = watched.page.context.new_cdp_session(watched.page)
    wire.send("Network.enable")
    received: list[float] = []
    wire.on("Network.loadingFinished", lambda told: received.append(told["encodedDataLength"]))
    watched.page.goto("/board/")
    expect(watched.page.locator(".live")).to_have_attribute("data-on", "1")
    watched.page.wait_for_load_state("load")
    asked = [url for url in watched.requests if url.startswith("http")]
    kilobytes = sum(received) / 1024
    print(f"\nboard of 300 tasks, cold: {kilobytes:.1f} KB in {len(asked)} requests")
    assert watched.page.locator(".card").count() > 200
    assert kilobytes <= 80
    assert len(asked) <= 8, asked
    assert watched.complaints == []


def test_no_page_asks_another_host_or_breaks_its_policy(filled: Filled, visit: Visit) -> None:
    watched = visit("/", name="carol")
    for path in PAGES:
        watched.page.goto(path)
        expect(watched.page.locator("html[data-ready='2']")).to_have_count(1)
    assert watched.complaints == []
    for path in ("/admin/", "/admin/resources_app/task/", "/api/docs/"):
        watched.page.goto(path)
        watched.page.wait_for_load_state("networkidle")
    assert [
        url for url in watched.requests if not url.startswith((filled.url, "data:", "blob:"))
    ] == []


def test_a_burst_of_writes_costs_few_requests(filled: Filled, visit: Visit) -> None:
    watched = visit("/board/")
    expect(watched.page.locator(".live")).to_have_attribute("data-on", "1")
    refs = [f"TASK-{number:04d}" for number in range(1, 201)]
    operations = [
        {
            "uri": f"mcp://backlog/tasks/{ref}/labels",
            "operation": {"type": "array_append", "value": "burst"},
        }
        for ref in refs
    ]
    watched.requests.clear()
    began = time.monotonic()
    headers = {"Authorization": f"Bearer {filled.token}"}
    with httpx.Client(base_url=filled.url, headers=headers, timeout=60, trust_env=False) as http:
        for start in range(0, 200, 50):
            assert (
                http.post(
                    "/api/v1/write_batch/", json={"operations": operations[start : start + 50]}
                ).status_code
                == 200
            )
    # Including those below the fold of a long column: recently changed cards move to its top.
    expect(watched.page.locator(".card:has(.chip:text-is('burst'))")).to_have_count(len(refs))
    seconds = time.monotonic() - began
    asked = [url for url in watched.requests if "/cards/" in url]
    print(f"\n200 writes: {len(asked)} fragment requests in {seconds:.1f} s")
    # Five; where writing itself is slow, one each time the board collects changes.
    assert len(asked) <= max(5, 2 + seconds / 0.8)


def test_ten_tabs_share_one_connection(filled: Filled, visit: Visit) -> None:
    first = visit("/board/")
    tabs = [first, *(visit("/board/", context=first.page.context) for _ in range(9))]
    expect(tabs[-1].page.locator(".live")).to_have_attribute("data-on", "1")
    streams = [url for tab in tabs for url in tab.requests if "/api/v1/events/" in url]
    assert len(streams) == 1
    first.page.close()
    headers = {"Authorization": f"Bearer {filled.token}"}
    body = {
        "uri": "mcp://backlog/tasks/TASK-0003/title",
        "operation": {"type": "set", "value": f"New at {time.time()}"},
    }
    assert (
        httpx.post(
            f"{filled.url}/api/v1/write/", json=body, headers=headers, trust_env=False
        ).status_code
        == 200
    )
    for tab in tabs[1:]:
        expect(tab.page.locator("#TASK-0003 a.t")).to_have_text(body["operation"]["value"])
    streams = [url for tab in tabs[1:] for url in tab.requests if "/api/v1/events/" in url]
    assert len(streams) == 1


def test_the_search_box_answers_while_one_types(visit: Visit) -> None:
    page = visit("/board/").page
    page.keyboard.press("Control+k")
    for word in ("paginate", "thumbnails", "part 12", "renames", "folders"):
        page.locator("#spot input").fill(word)
        expect(page.locator("#from-server").locator("[role=option], .none").first).to_be_attached()
    measured = page.evaluate(
        "() => performance.getEntriesByType('measure').map(one => [one.name, one.duration])"
    )
    for tier in ("spotlight:local", "spotlight:server"):
        times = sorted(duration for name, duration in measured if name == tier)
        print(f"\n{tier}: median {times[len(times) // 2]:.0f} ms, worst {times[-1]:.0f} ms")
