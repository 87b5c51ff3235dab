"""Test a day with the viewer: create, move, edit, conflict, comment, find, read beside, copy, see
an agent write.
"""

import re

from playwright.sync_api import Page, expect

from tests.browser.conftest import Filled, Visit, expect_copied
from tests.mcp.clients import call, session

# The name of the test client.
AGENT = "plain"


def open_in_pane(page: Page, ref: str) -> None:
    page.locator(f"#{ref} a.t").focus()
    page.keyboard.press("Enter")
    expect(page.locator(f"#pane .item[data-ref={ref}]")).to_be_visible()


def test_from_an_idea_to_an_agents_answer(filled: Filled, visit: Visit) -> None:
    watched = visit("/board/")
    page = watched.page
    expect(page.locator(".live")).to_have_attribute("data-on", "1")

    page.keyboard.press("c")
    page.fill("#dialog [name=title]", "Driven by keys alone")
    page.fill("#dialog [name=description]", "One\n\nTwo\n\n- [ ] tick me\n\nThree")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#pane .title")).to_have_text("Driven by keys alone")
    ref = page.locator("#pane .item").get_attribute("data-ref") or ""
    expect(page.locator(f"[data-col=open] #{ref}")).to_be_visible()
    page.locator("#pane .tick").check()
    expect(page.locator("#pane .tl")).to_contain_text("description")
    page.keyboard.press("Escape")
    expect(page.locator("#pane")).to_be_hidden()

    page.locator(f"#{ref} a.t").focus()
    page.keyboard.press("Shift+ArrowRight")
    expect(page.locator(f"[data-col=in_progress] #{ref}")).to_be_visible()
    expect(page.locator(f"#{ref} a.t")).to_be_focused()
    expect(page.locator("#said")).to_have_text(f"{ref} moved to In progress")
    page.keyboard.press("z")
    expect(page.locator(f"[data-col=open] #{ref}")).to_be_visible()
    expect(page.locator("#said")).to_have_text(f"{ref} moved to Open")
    page.locator(f"#{ref} a.t").focus()
    page.keyboard.press("s")
    page.keyboard.press("3")
    expect(page.locator(f"[data-col=blocked] #{ref}")).to_be_visible()

    open_in_pane(page, ref)
    page.keyboard.press("e")
    area = page.locator("#pane textarea[data-body]")
    text = area.input_value()
    assert "- [x] tick me" in text
    with session(filled.site, filled.token) as http:
        said = {"type": "str_replace", "old_str": "One", "new_str": "One, says the agent"}
        call(
            filled.site,
            http,
            "write_resource",
            uri=f"mcp://backlog/tasks/{ref}/description",
            operation=said,
        )
        expect(page.locator("#pane .changed")).to_contain_text(AGENT)
        area.fill(text.replace("Three", "Three, says alice"))
        page.keyboard.press("Control+Enter")
        dialog = page.locator("#dialog .clash")
        expect(dialog).to_contain_text(AGENT)
        merged = dialog.locator("textarea").input_value()
        assert "One, says the agent" in merged
        assert "Three, says alice" in merged
        page.click("text=Save merge")
        expect(page.locator("#pane .prose").first).to_contain_text("says alice")
        expect(page.locator("#pane .prose").first).to_contain_text("says the agent")

        page.fill("#pane .say textarea", "Seen **here**")
        page.click("#pane .say button")
        expect(page.locator("#pane .comments strong")).to_have_text("here")

        call(filled.site, http, "backlog_update", id=ref, title="Renamed by an agent")
        expect(page.locator(f"#{ref} a.t")).to_have_text("Renamed by an agent")
        expect(page.locator(f"#{ref}")).to_have_attribute("data-by", AGENT)
        expect(page.locator("#pane .title")).to_have_text("Renamed by an agent")

    page.keyboard.press("Escape")
    page.keyboard.press("Control+k")
    page.keyboard.type("renames")
    hit = page.locator("#from-server [role=option]", has_text="notes.md")
    expect(hit.locator("mark").first).to_have_text(re.compile("renames", re.IGNORECASE))
    hit.click()
    expect(page.locator("#pane .prose")).to_contain_text("keeps the old path")
    page.keyboard.press("y")
    expect(page.locator(".toast").last).to_contain_text("mcp://backlog/resources/docs/notes.md")
    expect_copied(page, "^mcp://backlog/resources/docs/notes.md$")

    page.locator("#pane .prose a.uri").click()
    expect(page.locator("#pane .codeview")).to_contain_text("def answer")
    page.go_back()
    page.go_back()
    expect(page.locator("#pane")).to_be_hidden()
    refused = [line for line in watched.complaints if "409" not in line]
    assert refused == []


def test_a_move_that_somebody_overtook_is_put_back(filled: Filled, visit: Visit) -> None:
    page = visit("/board/?priority=urgent").page
    card = page.locator("[data-col=open] .card").first
    ref = card.get_attribute("id") or ""
    page.evaluate("() => document.querySelector('.live').remove()")
    page.evaluate("ref => { document.getElementById(ref).dataset.e = '1-0123456789ab'; }", ref)
    card.locator("a.t").focus()
    page.keyboard.press("Shift+ArrowRight")
    expect(page.locator(".toast")).to_contain_text("was put back")
    expect(page.locator(f"[data-col=open] #{ref}")).to_be_visible()


def test_filters_are_in_the_address_and_back_undoes_them(visit: Visit) -> None:
    page = visit("/board/").page
    page.select_option("[name=priority]", "urgent")
    expect(page).to_have_url(re.compile(r"priority=urgent"))
    expect(page.locator("#total")).to_have_text("60 tasks")
    page.go_back()
    expect(page.locator("#total")).not_to_have_text("60 tasks")
    expect(page.locator("[name=priority]")).to_have_value("")


def test_cards_are_dragged(visit: Visit) -> None:
    page = visit("/board/?search=part").page
    card = page.locator("[data-col=blocked] .card").first
    ref = card.get_attribute("id")
    card.drag_to(page.locator("[data-col=in_progress] ol"))
    expect(page.locator(f"[data-col=in_progress] #{ref}")).to_be_visible()
    expect(page.locator(".toast")).to_contain_text("In progress")


def test_many_are_edited_at_once_and_undone(visit: Visit) -> None:
    page = visit("/list/?label=viewer").page
    for row in (0, 1, 2):
        page.locator(".pick input").nth(row).check()
    expect(page.locator("#bulk")).to_contain_text("3 selected")
    refs = [page.locator(".card").nth(row).get_attribute("id") for row in (0, 1, 2)]
    page.select_option("#bulk [name=status]", "cancelled")
    expect(page.locator(".toast")).to_contain_text("3 of 3 changed")
    for ref in refs:
        expect(page.locator(f"[data-col=cancelled] #{ref}")).to_have_count(1)
    page.click(".toast button")
    for ref in refs:
        expect(page.locator(f"[data-col=cancelled] #{ref}")).to_have_count(0)


def test_priority_and_assignee_are_set_by_keys_and_undone(visit: Visit) -> None:
    page = visit("/board/?search=part").page
    card = page.locator("[data-col=open] .card:not(:has(.av))").first
    ref = card.get_attribute("id")
    page.locator(f"#{ref} a.t").focus()
    page.keyboard.press("i")
    expect(page.locator(f"#{ref} .av")).to_have_text("AL")
    expect(page.locator(".toast")).to_contain_text(ref)
    page.keyboard.press("z")
    expect(page.locator(f"#{ref} .av")).to_have_count(0)
    page.locator(f"#{ref} a.t").focus()
    page.keyboard.press("p")
    page.keyboard.press("5")
    expect(page.locator(f"#{ref} .p4")).to_be_visible()


def test_a_comment_is_said_better_by_its_author_alone(visit: Visit) -> None:
    page = visit("/t/TASK-0011/").page
    page.fill(".say textarea", "Frist words")
    page.click(".say button")
    page.locator(".reword summary").click()
    page.fill(".reword textarea", "First words")
    page.click(".reword >> text=Save")
    expect(page.locator(".comments .prose")).to_have_text("First words")
    expect(page.locator(".comments .by")).to_contain_text("edited")
    theirs = visit("/t/TASK-0011/", name="bob").page
    expect(theirs.locator(".comments .prose")).to_have_text("First words")
    expect(theirs.locator(".reword")).to_have_count(0)


def test_an_empty_board_says_so_where_one_looks_and_fills_when_a_task_comes(visit: Visit) -> None:
    page = visit("/board/?label=unheard-of").page
    expect(page.locator("#board .empty h2")).to_be_in_viewport()
    page.keyboard.press("c")
    page.fill("#dialog [name=title]", "The first of its label")
    page.fill("#dialog [name=labels]", "unheard-of")
    page.keyboard.press("Control+Enter")
    expect(page.locator("[data-col=open] .card")).to_have_count(1)


def test_assets_are_chosen_in_several_folders_and_attached_at_once(visit: Visit) -> None:
    page = visit("/t/TASK-0012/").page
    page.click("text=Attach an asset")
    page.locator("#dialog .fold", has_text="Marketing").click()
    page.locator("#dialog .fold", has_text="Logos").click()
    page.locator("#dialog .thumb input").first.check()
    page.locator("#dialog .crumbs a", has_text="Marketing").click()
    page.locator("#dialog .fold", has_text="Photos").click()
    page.locator("#dialog .thumb input").first.check()
    expect(page.locator("#dialog")).to_contain_text("1 chosen in other folders")
    page.click("#dialog .btn.primary")
    expect(page.locator("main .lines a[data-uri^='ib://']")).to_have_count(2)


def test_a_link_shows_what_it_leads_to(visit: Visit) -> None:
    page = visit("/t/TASK-0005/").page
    page.locator(".prose a.ref").first.hover()
    expect(page.locator("#hover")).to_contain_text("TASK-0004")
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_contain_text("Copy MCP URI")
    page.keyboard.press("Escape")
    page.locator(".prose a.ref").first.click()
    expect(page.locator("#pane .item")).to_have_attribute("data-ref", "TASK-0004")
    expect(page.locator("main .item")).to_have_attribute("data-ref", "TASK-0005")


def test_without_javascript_everything_can_be_read(visit: Visit) -> None:
    watched = visit("/board/?priority=urgent", ready=False, java_script_enabled=False)
    page = watched.page
    page.locator(".card a.t").first.click()
    expect(page.locator("main .item .prose").first).to_contain_text("Walk every page once")
    for path in ("/list/", "/epics/", "/activity/", "/insights/", "/files/", "/"):
        page.goto(path)
        expect(page.locator("h1")).to_be_visible()
    page.goto("/t/TASK-0007/edit/")
    page.locator("textarea").fill("Written without a script")
    page.click("main >> text=Save")
    expect(page.locator("main .prose").first).to_have_text("Written without a script")


def test_a_diagram_is_drawn_in_a_frame_of_its_own(visit: Visit) -> None:
    watched = visit("/open/?uri=mcp://backlog/resources/docs/notes.md")
    frame = watched.page.frame_locator(".mermaid-src iframe")
    expect(frame.locator("svg .node")).to_have_count(2)
    drawn, room = (
        frame.locator("svg").bounding_box(),
        watched.page.locator(".mermaid-src iframe").bounding_box(),
    )
    assert drawn and room and room["height"] >= drawn["height"]
    expect(watched.page.locator(".mermaid-src details")).to_contain_text("graph LR")
    assert watched.complaints == []
