"""Test saved views, lanes, typed filters, the tray of the library, and items put off from the
desk.
"""

from playwright.sync_api import expect

from tests.browser.conftest import Filled, Visit, expect_copied
from tests.browser.filling import LIBRARY


def test_filters_become_a_view_with_a_name(visit: Visit) -> None:
    page = visit("/board/?priority=urgent&label=sync").page
    page.click("#views summary")
    page.fill("#views [name=name]", "Urgent sync")
    page.click("#views >> text=Save >> nth=1")
    saved = page.locator("#views a", has_text="Urgent sync")
    expect(saved).to_have_attribute("aria-current", "page")
    total = page.locator("#total").inner_text()
    page.goto("/list/")
    saved.click()
    expect(page.locator("#total")).to_have_text(total)
    expect(page.locator("[name=label]")).to_have_value("sync")
    page.click("#views [aria-label='Forget the view Urgent sync']")
    expect(saved).to_have_count(0)


def test_lanes_keep_a_card_in_its_epic_and_dragging_changes_it(visit: Visit) -> None:
    page = visit(
        "/board/?label=viewer&priority=urgent"
    ).page  # few enough for both lanes to be visible
    page.select_option("[name=group]", "epic_id")
    expect(page.locator(".lane")).to_have_count(2)
    first, second = page.locator(".lane").all()
    card = first.locator("[data-col=open] .card").first
    ref = card.get_attribute("id")
    page.locator(f"#{ref} a.t").focus()
    page.keyboard.press("Shift+ArrowRight")
    expect(first.locator(f"[data-col=in_progress] #{ref}")).to_be_visible()
    expect(page.locator(".toast").last).to_contain_text("In progress")
    writes: list[str] = []
    page.on("request", lambda request: request.method == "POST" and writes.append(request.url))
    page.locator(f"#{ref}").drag_to(second.locator("[data-col=blocked] ol"))
    expect(page.locator("#said")).to_contain_text(f"{ref} moved to Blocked, Epic number")
    page.reload()
    expect(page.locator(".lane").nth(1).locator(f"[data-col=blocked] #{ref}")).to_be_visible()
    assert [url.rpartition("/t/")[2] for url in writes] == [f"{ref}/move/"]
    page.locator(f"#{ref} a.t").focus()
    page.keyboard.press("Shift+ArrowUp")
    expect(first.locator(f"[data-col=blocked] #{ref}")).to_be_visible()
    expect(page.locator(f"#{ref} a.t")).to_be_focused()
    expect(page.locator("#said")).to_contain_text(f"{ref} moved to Epic number")
    page.keyboard.press("z")
    expect(second.locator(f"[data-col=blocked] #{ref}")).to_be_visible()


def test_a_card_overtaken_on_its_way_to_another_lane_keeps_status_and_epic(visit: Visit) -> None:
    page = visit("/board/?label=viewer&priority=urgent&group=epic_id").page
    first, second = page.locator(".lane").all()
    card = first.locator("[data-col=open] .card").first
    ref = card.get_attribute("id")
    page.evaluate("ref => { document.getElementById(ref).dataset.x = '1-0123456789ab'; }", ref)
    card.drag_to(second.locator("[data-col=blocked] ol"))
    expect(page.locator(".toast")).to_contain_text("was put back")
    expect(first.locator(f"[data-col=open] #{ref}")).to_be_visible()
    page.reload()
    expect(first.locator(f"[data-col=open] #{ref}")).to_be_visible()


def test_filters_are_typed_where_one_searches(visit: Visit) -> None:
    page = visit("/board/").page
    page.keyboard.press("Control+k")
    page.keyboard.type("@me status:blo")
    expect(page.locator("#from-server [role=option] .s-blocked").first).to_be_visible()
    expect(page.locator("#from-server [role=option] :is(.s-open, .s-done)")).to_have_count(0)
    page.keyboard.press("Escape")
    page.fill("[name=search]", "@nobody priority:urgent")
    expect(page.locator("#total")).not_to_have_text("310 tasks")
    expect(page.locator(".card .av")).to_have_count(0)
    expect(page.locator(".card .p4").first).to_be_visible()


def test_assets_of_several_folders_wait_in_a_tray(filled: Filled, visit: Visit) -> None:
    page = visit(f"/ib/{LIBRARY}/{filled.folders['Logos']}/").page
    page.locator(".cell a").first.focus()
    page.keyboard.press("x")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("x")
    expect(page.locator("#tray")).to_contain_text("2 picked")
    page.goto(f"/ib/{LIBRARY}/{filled.folders['Photos']}/")
    expect(page.locator("#tray")).to_contain_text("2 picked")
    page.locator(".cell a").first.focus()
    page.keyboard.press("x")
    page.click("#tray >> text=Copy URIs")
    expect_copied(page, r"^(ib://\S+\n){2}ib://\S+\n?$")
    page.fill("#tray [name=ref]", "task-0014")
    page.keyboard.press("Enter")
    expect(page.locator("#pane .lines a[data-uri^='ib://']")).to_have_count(3)
    expect(page.locator("#tray")).to_be_hidden()


def test_a_folder_is_searched_and_listed_without_javascript(filled: Filled, visit: Visit) -> None:
    page = visit(
        f"/ib/{LIBRARY}/{filled.folders['Logos']}/", ready=False, java_script_enabled=False
    ).page
    page.click("[aria-label='As a list']")
    page.select_option("[name=sort]", "changed")
    page.fill("[name=search]", "logo")
    page.press("[name=search]", "Enter")
    expect(page.locator(".rows .cell")).to_have_count(2)
    expect(page.locator(".rows .cell").first).to_contain_text("Logo 28")
    expect(page.locator("[name=search]")).to_have_value("logo")


def test_a_task_is_copied_as_what_one_needs(visit: Visit) -> None:
    page = visit("/t/TASK-0005/").page
    page.click(".copies summary")
    page.click("text=Prompt for an agent")
    expect_copied(page, "Read mcp://backlog/tasks/TASK-0005 first")
    expect(page.locator(".copies .menu")).to_be_hidden()


def test_what_is_done_for_today_leaves_the_desk(visit: Visit) -> None:
    page = visit("/").page
    row = page.locator(".deskrow").first
    ref = row.locator("a[data-ref]").get_attribute("data-ref")
    row.locator("[title='Done for today']").click()
    expect(page.locator(f".deskrow a[data-ref={ref}]")).to_have_count(0)
    expect(page.locator(".deskrow").first).to_be_visible()
