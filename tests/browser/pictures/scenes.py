"""Define every page and every open layer, as a path and the actions there."""

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import httpx
from django.test import RequestFactory
from playwright.sync_api import Page, expect
from structlog.contextvars import bound_contextvars

from backlog_site.viewer.failures import server_error
from resources_app.intelligencebank.fake.demo import CLIENT_ID


@dataclass(frozen=True)
class World:
    url: str
    empty: str
    password: str
    token: str


Act = Callable[[Page, World], Any]


def look(page: Page, world: World) -> None:
    """Leave the page unchanged."""


@dataclass(frozen=True)
class Scene:
    name: str
    path: str
    act: Act = look
    who: str = "alice"
    is_empty: bool = False
    is_printed: bool = False


def press(*keys: str) -> Act:
    return lambda page, world: [page.keyboard.press(key) for key in keys]


def shown(selector: str) -> Act:
    return lambda page, world: expect(page.locator(selector).first).to_be_visible()


def then(*acts: Act) -> Act:
    return lambda page, world: [act(page, world) for act in acts]


def _select_some(page: Page, world: World) -> None:
    for row in (0, 1, 2):
        page.locator(".pick input").nth(row).check()


def _search(words: str) -> Act:
    def act(page: Page, world: World) -> None:
        page.keyboard.press("Control+k")
        page.locator("#spot input").fill(words)
        expect(page.locator("#from-server").locator("[role=option], .none").first).to_be_attached()

    return act


def _hover(page: Page, world: World) -> None:
    page.locator(".prose a.ref").first.hover()
    expect(page.locator("#hover")).to_be_visible()


def _menu(page: Page, world: World) -> None:
    page.locator(".card a.t").first.focus()
    page.keyboard.press("s")
    expect(page.locator("#menu")).to_be_visible()


def _write(world: World, uri: str, **operation: Any) -> None:
    """Write as an agent does."""
    headers = {"Authorization": f"Bearer {world.token}"}
    body = {"uri": uri, "operation": operation}
    httpx.post(
        f"{world.url}/api/v1/write/", json=body, headers=headers, trust_env=False
    ).raise_for_status()


def _clash(page: Page, world: World) -> None:
    area = page.locator("textarea[data-body]")
    text, today = area.input_value(), datetime.datetime.now(datetime.UTC).date()
    _write(
        world,
        "mcp://backlog/tasks/TASK-0026/description",
        type="append",
        content=f"\n\nLegal was asked again on {today}.",
    )
    area.fill(text.replace("An asset", "Every asset"))
    page.keyboard.press("Control+Enter")
    expect(page.locator("#dialog .clash")).to_be_visible()


def _drawn(page: Page, world: World) -> None:
    """Wait until every visible image is loaded."""
    for image in page.locator(".thumb img, .asset img").all():
        image.evaluate("image => { image.loading = 'eager'; return image.decode(); }")


def _asset(page: Page, world: World) -> None:
    page.locator("a.thumb").nth(1).click()
    expect(page.locator("#pane .title")).to_be_visible()


def _complete(page: Page, world: World) -> None:
    area = page.locator("textarea[data-body]")
    area.focus()
    page.keyboard.press("Control+End")
    page.keyboard.type("\n\nSee #thumb")
    expect(page.locator("#suggest [role=option]").first).to_be_visible()


def _link(page: Page, world: World) -> None:
    page.click("text=Link my account")
    expect(page.locator("main form")).to_be_visible()


def _into_brand(page: Page, world: World) -> None:
    page.locator(".ibmain .fold", has_text="Brand").click()
    page.locator(".ibmain .fold", has_text="Logos").click()
    expect(page.locator(".ibmain .thumb").first).to_be_visible()


def _pick(page: Page, world: World) -> None:
    page.click("text=Attach an asset")
    for folder in ("Brand", "Logos"):
        page.locator("#dialog .fold", has_text=folder).click()
        expect(page.locator("#dialog [aria-current]")).to_have_text(folder)
    page.locator("#dialog .thumb input").first.check()


def _tray(page: Page, world: World) -> None:
    _into_brand(page, world)
    for place in (0, 1, 2):
        page.locator(".cell input").nth(place).check(force=True)
    expect(page.locator("#tray")).to_contain_text("3 picked")


def _consent(page: Page, world: World) -> None:
    metadata = {"client_name": "Cursor", "redirect_uris": ["http://127.0.0.1:8123/callback"]}
    known = (
        httpx.post(f"{world.url}/o/register/", json=metadata, trust_env=False)
        .raise_for_status()
        .json()
    )
    question = {
        "response_type": "code",
        "client_id": known["client_id"],
        "redirect_uri": metadata["redirect_uris"][0],
    }
    question |= {
        "code_challenge": "E" * 43,
        "code_challenge_method": "S256",
        "scope": "write",
        "state": "1",
    }
    page.goto(f"/o/authorize/?{urlencode(question)}")
    expect(page.locator(".consent fieldset")).to_be_visible()


def _broken(page: Page, world: World) -> None:
    with bound_contextvars(request_id="7f3c9a52-0b1e-4d6f-8f0a-2c9d1e5b7a34"):
        html = server_error(RequestFactory().get("/broken/")).content
    page.route("**/broken/", lambda route: route.fulfill(body=html))
    page.goto("/broken/")


def _away(page: Page, world: World) -> None:
    """Move a card while the server does not answer."""
    for path in ("**/api/v1/events/**", "**/move/"):
        page.route(path, lambda route: route.abort())
    page.reload()
    expect(page.locator(".live")).to_have_attribute("data-on", "0")
    page.locator(".card a.t").first.focus()
    page.keyboard.press("Shift+ArrowRight")
    expect(page.locator(".toast")).to_contain_text("was put back")


TASK, ADR = "/t/TASK-0023/", "mcp://backlog/resources/docs/adr/0004-mirror-folders-not-files.md"
LIBRARY = f"/ib/{CLIENT_ID}/root/"
SCENES = (
    Scene("login", "/login/", who=""),
    Scene("desk", "/"),
    Scene("board", "/board/"),
    Scene("board-pane", f"/board/?open={TASK}", shown("#pane .title")),
    Scene("lanes", "/board/?group=epic_id"),
    Scene("status-menu", "/board/", _menu),
    Scene("empty", "/board/?search=zzzzz"),
    Scene("list", "/list/?group=epic_id", _select_some),
    Scene("task", f"{TASK}?open=/open/?uri={ADR}", shown("#pane .title")),
    Scene("task-page", TASK),
    Scene("hover", "/t/TASK-0026/", _hover),
    Scene("edit", "/t/TASK-0026/edit/"),
    Scene("completing", "/t/TASK-0026/edit/", _complete),
    Scene("conflict", "/t/TASK-0026/edit/", _clash),
    Scene("create", "/board/", then(press("c"), shown("#dialog [name=title]"))),
    Scene("search", "/board/", _search("folder")),
    Scene("keys", "/board/", press("?")),
    Scene("epics", "/epics/"),
    Scene("epic", "/t/EPIC-0003/"),
    Scene("insights", "/insights/"),
    Scene("activity", "/activity/"),
    Scene("journal", "/activity/?view=journal"),
    Scene("resources", "/files/resources/docs/adr"),
    Scene("resource", f"/open/?uri={ADR}"),
    Scene("source", "/open/?uri=mcp://backlog/resources/demo/sync.py"),
    Scene("picture", "/open/?uri=mcp://backlog/resources/demo/mirror.svg"),
    Scene("table", "/open/?uri=mcp://backlog/artifacts/task-0033/upload-load-test.csv"),
    Scene("missing", "/open/?uri=file:///home/alice/notes.md"),
    Scene("intelligencebank", LIBRARY, who="admin"),
    Scene("folder", LIBRARY, then(_tray, _drawn), who="admin"),
    Scene("folder-list", f"{LIBRARY}?view=list", then(_into_brand, _drawn), who="admin"),
    Scene("found-assets", f"{LIBRARY}?search=logo", _drawn, who="admin"),
    Scene("unlinked", LIBRARY, who="erin"),
    Scene("link", LIBRARY, _link, who="erin"),
    Scene("asset", LIBRARY, then(_into_brand, _asset, _drawn), who="admin"),
    Scene("picker", TASK, then(_pick, _drawn)),
    Scene("sync", "/sync/", lambda page, world: page.click(".plan summary"), who="admin"),
    Scene("connect", "/connect/"),
    Scene("profile", "/profile/"),
    Scene("consent", "/profile/", _consent),
    Scene("no-role", "/", who="mallory"),
    Scene("not-found", "/nosuchpage/", who=""),
    Scene("error", "/login/", _broken, who=""),
    Scene("offline", "/board/", _away),
    Scene("empty-desk", "/", is_empty=True),
    Scene("empty-board", "/board/", is_empty=True),
    Scene("empty-epics", "/epics/", is_empty=True),
    Scene("empty-insights", "/insights/", is_empty=True),
    Scene("empty-activity", "/activity/", is_empty=True),
    Scene("empty-resources", "/files/artifacts", is_empty=True),
    Scene("empty-library", "/ib/", is_empty=True, who="admin"),
    Scene("empty-sync", "/sync/", is_empty=True, who="admin"),
    Scene("print", TASK, is_printed=True),
)  # fmt: skip
