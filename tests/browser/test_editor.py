"""Test that the editor loses nothing: one save for both fields, drafts of both, and a prompt before
unsaved text is dropped.
"""

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Filled, Visit


@pytest.fixture
def ref(filled: Filled) -> str:
    return api(filled, "POST", "/tasks/", title="Before", description="First\n\nSecond")["id"]


def api(filled: Filled, method: str, path: str, **body: str) -> dict[str, str]:
    headers = {"Authorization": f"Bearer {filled.token}"}
    answer = httpx.request(
        method, f"{filled.url}/api/v1{path}", json=body or None, headers=headers, trust_env=False
    )
    answer.raise_for_status()
    found: dict[str, str] = answer.json()
    return found


def saved(filled: Filled, ref: str) -> tuple[str, str]:
    task = api(filled, "GET", f"/tasks/{ref}/")
    return task["title"], task["description"]


def open_editor(visit: Visit, ref: str) -> Page:
    """Open the editor in the pane, beside the board."""
    page = visit(f"/board/?open=/t/{ref}/").page
    expect(page.locator("#pane .title")).to_be_visible()
    page.keyboard.press("e")
    expect(page.locator("#pane [name=title]")).to_be_visible()
    return page


@pytest.mark.parametrize("field", ["title", "description"])
@pytest.mark.parametrize("width", [1440, 390])
def test_both_fields_are_saved_wherever_the_key_is_pressed(
    filled: Filled, visit: Visit, ref: str, field: str, width: int
) -> None:
    page = visit(f"/t/{ref}/edit/", width=width).page
    page.fill("[name=title]", "After")
    page.fill("[name=description]", "Rewritten")
    page.locator(f"[name={field}]").press("Control+Enter")
    expect(page.locator("main .title")).to_have_text("After")
    expect(page.locator("main .prose").first).to_have_text("Rewritten")
    assert saved(filled, ref) == ("After", "Rewritten")


def test_the_button_saves_both_fields(filled: Filled, visit: Visit, ref: str) -> None:
    page = open_editor(visit, ref)
    page.fill("#pane [name=title]", "After")
    page.fill("#pane [name=description]", "Rewritten")
    page.click("#pane .edit .primary")
    expect(page.locator("#pane .title")).to_have_text("After")
    assert saved(filled, ref) == ("After", "Rewritten")


def test_a_draft_of_both_fields_comes_back_and_goes_when_it_is_saved(
    filled: Filled, visit: Visit, ref: str
) -> None:
    page = open_editor(visit, ref)
    page.fill("#pane [name=title]", "After")
    page.fill("#pane [name=description]", "Rewritten")
    page.click("#pane >> text=Preview")
    expect(page.locator("#pane .preview")).to_have_text("Rewritten")
    page.goto(f"/t/{ref}/edit/")
    expect(page.locator(".toast")).to_contain_text("draft")
    expect(page.locator("[name=title]")).to_have_value("After")
    expect(page.locator("[name=description]")).to_have_value("Rewritten")
    page.click("main .edit .primary")
    expect(page.locator("main .title")).to_have_text("After")
    assert (
        page.evaluate("() => Object.keys(localStorage).filter(name => name.startsWith('draft:'))")
        == []
    )


def test_a_draft_older_than_the_saved_text_is_merged_with_it(
    filled: Filled, visit: Visit, ref: str
) -> None:
    page = visit(f"/t/{ref}/edit/").page
    page.fill("[name=description]", "First\n\nSecond, says alice")
    api(filled, "PATCH", f"/tasks/{ref}/", description="First, says an agent\n\nSecond")
    page.goto(f"/t/{ref}/edit/")
    expect(page.locator("[name=description]")).to_have_value("First\n\nSecond, says alice")
    page.click("main .edit .primary")
    expect(page.locator("#dialog .clash")).to_be_visible()
    page.click("text=Save merge")
    expect(page.locator("main .prose").first).to_contain_text("Second, says alice")
    assert saved(filled, ref)[1] == "First, says an agent\n\nSecond, says alice"


def test_a_conflict_shows_title_and_description_and_saves_both(
    filled: Filled, visit: Visit, ref: str
) -> None:
    page = open_editor(visit, ref)
    api(filled, "PATCH", f"/tasks/{ref}/", title="Theirs")
    page.fill("#pane [name=title]", "Mine")
    page.fill("#pane [name=description]", "Rewritten")
    page.keyboard.press("Control+Enter")
    dialog = page.locator("#dialog .clash")
    expect(dialog).to_contain_text("Theirs")
    expect(dialog).to_contain_text("Rewritten")
    page.click("#dialog >> text=Use mine")
    expect(page.locator("#pane .title")).to_have_text("Mine")
    assert saved(filled, ref) == ("Mine", "Rewritten")


def test_escape_asks_before_it_drops_what_was_typed(filled: Filled, visit: Visit, ref: str) -> None:
    page = open_editor(visit, ref)
    page.fill("#pane [name=title]", "After")
    page.keyboard.press("Escape")
    expect(page.locator("#ask")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#ask")).to_be_hidden()
    expect(page.locator("#pane [name=title]")).to_have_value("After")
    page.click("#pane [data-act=close]")
    page.click("#ask >> text=Keep editing")
    expect(page.locator("#pane [name=title]")).to_have_value("After")
    page.click("#pane [data-cancel]")
    page.click("#ask >> text=Discard changes")
    expect(page.locator("#pane .title")).to_have_text("Before")
    page.keyboard.press("e")
    expect(page.locator("#pane [name=title]")).to_have_value("Before")
    page.locator("#pane [name=title]").press("Escape")
    expect(page.locator("#pane .title")).to_have_text("Before")
    expect(page.locator("#ask")).to_be_hidden()
    assert saved(filled, ref) == ("Before", "First\n\nSecond")


def test_a_new_task_is_not_dropped_without_a_question(visit: Visit) -> None:
    page = visit("/board/").page
    page.keyboard.press("c")
    page.fill("#dialog [name=title]", "Half a thought")
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    expect(page.locator("#ask")).to_be_hidden()
    expect(page.locator("#dialog [name=title]")).to_have_value("Half a thought")
    page.click("#dialog [data-act=dismiss]")
    page.click("#ask >> text=Discard changes")
    expect(page.locator("#dialog")).to_be_hidden()
    page.keyboard.press("c")
    expect(page.locator("#dialog [name=title]")).to_have_value("")
    page.keyboard.press("Escape")
    expect(page.locator("#dialog")).to_be_hidden()
