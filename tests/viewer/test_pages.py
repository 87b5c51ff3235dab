"""Test every page for every user: what is shown, to whom, and under which policy."""

import itertools

import pytest
from django.contrib.auth.models import User
from django.test import Client

from resources_app.writing import stored_files, write_path
from tests.factories import as_actor, make_epic, make_task
from tests.viewer.browsing import folded, fragment, signed_in, text_of

PAGES = [
    "/", "/board/", "/list/", "/list/?group=epic_id", "/list/?group=assignee", "/list/?group=priority", "/list/?group=none",
    "/epics/", "/insights/", "/activity/", "/activity/?view=journal", "/activity/?source=agents", "/files/", "/files/artifacts",
    "/connect/", "/profile/", "/sync/", "/t/TASK-0001/", "/t/EPIC-0001/", "/open/?uri=mcp://backlog/resources/notes.md",
    "/open/?uri=mcp://backlog/tasks/TASK-0001", "/open/?uri=mcp://backlog/tasks/TASK-0001/status",
]  # fmt: skip
WRITING = ["/new/", "/t/TASK-0001/edit/"]


@pytest.fixture
def backlog(carol: User) -> None:
    epic = make_epic(title="Epic of the tests")
    make_task(
        title="Visible to the team",
        epic_id=epic.ref,
        labels=["api"],
        description="- [ ] one\n- [x] two",
    )
    make_task(title="Only for the board", groups=["admin"])
    stored_files.create_resource(as_actor(carol), "resources/notes.md", "# Notes\n\nSee TASK-0001.")


def test_everybody_with_a_role_sees_every_page(backlog: None, alice: User, bob: User) -> None:
    browsers = [signed_in(reader) for reader in (alice, bob)]
    for path, browser in itertools.product([*PAGES, *WRITING], browsers):
        response = browser.get(path)
        assert response.status_code == 200, (path, text_of(response)[:2000])
        assert "default-src 'none'" in response["Content-Security-Policy"]
        assert "unsafe" not in response["Content-Security-Policy"]
        assert "<script>" not in text_of(response)


def test_without_a_role_nothing_is_seen(backlog: None, mallory: User) -> None:
    browser = signed_in(mallory)
    for path in PAGES:
        response = browser.get(path)
        assert response.status_code == 403, path
        assert "Visible to the team" not in text_of(response), path


def test_nobody_is_sent_to_the_login_page(backlog: None) -> None:
    for path in PAGES:
        response = Client().get(path)
        assert response.status_code == 302, path
        assert response["Location"].startswith("/login/?next="), path


def test_what_is_for_others_is_on_no_page(backlog: None, alice: User, carol: User) -> None:
    theirs, mine = signed_in(carol), signed_in(alice)
    for path in ("/board/", "/list/", "/activity/", "/spotlight/titles.json"):
        assert "Only for the board" in text_of(theirs.get(path)), path
        assert "Only for the board" not in text_of(mine.get(path)), path


def test_what_is_for_others_is_not_found_by_its_name_either(
    backlog: None, alice: User, carol: User
) -> None:
    assert signed_in(carol).get("/t/TASK-0002/").status_code == 200
    for path in (
        "/t/TASK-0002/",
        "/hover/TASK-0002/",
        "/t/TASK-0002/links/",
        "/open/?uri=mcp://backlog/tasks/TASK-0002",
    ):
        response = fragment(signed_in(alice), path)
        assert "Only for the board" not in text_of(response)
    assert "TASK-0002" not in text_of(fragment(signed_in(alice), "/cards/?ids=TASK-0001,TASK-0002"))


def test_a_reader_is_offered_no_edit(backlog: None, bob: User) -> None:
    page = text_of(signed_in(bob).get("/t/TASK-0001/"))
    assert "/t/TASK-0001/set/" not in page
    assert "/new/" not in page


def test_what_does_not_exist_says_so(backlog: None, alice: User) -> None:
    client = signed_in(alice)
    assert client.get("/t/TASK-9999/").status_code == 404
    assert client.get("/t/nonsense/").status_code == 404
    missing = client.get("/open/?uri=file:///home/somebody/notes.md")
    assert missing.status_code == 404
    assert "BACKLOG_RESOURCE_ROOTS" in text_of(missing)


@pytest.mark.parametrize(
    "address", ["/t/TASK-0001/pick/?client=x%00", "/board/?assignee=%00", "/suggest/?q=%23a%00"]
)
def test_what_no_database_takes_is_refused(backlog: None, alice: User, address: str) -> None:
    answer = signed_in(alice).get(address)
    assert (answer.status_code, "NUL" in text_of(answer)) == (400, True)


def test_signing_in_leads_back_to_where_one_was(alice: User) -> None:
    alice.set_password("a long password")
    alice.save()
    client = Client()
    answer = client.post(
        "/login/?next=/board/",
        {"username": "alice", "password": "a long password", "next": "/board/"},
    )
    assert answer["Location"] == "/board/"
    assert "this one" in text_of(client.get("/profile/"))


def test_signing_out_everywhere_else_leaves_this_browser(alice: User) -> None:
    here, there = signed_in(alice), signed_in(alice)
    assert here.post("/profile/").status_code == 200
    assert here.get("/board/").status_code == 200
    assert there.get("/board/").status_code == 302


def test_a_token_is_shown_once_and_can_be_revoked(alice: User, bob: User) -> None:
    client = signed_in(alice)
    made = text_of(client.post("/connect/", {"name": "laptop", "scope": "write", "days": "30"}))
    assert "bl_" in made
    assert "bl_" not in text_of(client.get("/connect/"))
    token = alice.api_tokens.get()
    assert signed_in(bob).post("/connect/revoke/", {"token": token.pk}).status_code == 404
    assert client.post("/connect/revoke/", {"token": token.pk}).status_code == 302
    token.refresh_from_db()
    assert token.revoked_at


def test_background_work_is_started_by_admins_alone(alice: User, carol: User) -> None:
    assert signed_in(alice).post("/sync/", {"kind": "scan_resources"}).status_code == 403
    assert "scan_resources" in text_of(signed_in(carol).post("/sync/", {"kind": "scan_resources"}))
    assert signed_in(carol).post("/sync/", {"kind": "format_disk"}).status_code == 400


def test_the_schedule_says_what_is_due(carol: User) -> None:
    client = signed_in(carol)
    shown = folded(client.get("/sync/"))
    assert "<td>Scan of the mirrored folders</td><td>–</td>" in shown
    assert "IntelligenceBank: what changed" not in shown, "there is no library to sync"
    client.post("/sync/", {"kind": "scan_resources"})
    row = (
        text_of(client.get("/sync/"))
        .split("<td>Scan of the mirrored folders</td>")[1]
        .partition("</tr>")[0]
    )
    assert "minutes from now" in row.replace("\xa0", " ")


def test_without_a_connection_the_library_says_what_to_do(alice: User, carol: User) -> None:
    assert "Ask an administrator" in text_of(signed_in(alice).get("/ib/"))
    assert "/admin/resources_app/ibconnection/add/" in text_of(signed_in(carol).get("/ib/"))
    assert signed_in(alice).get("/ib/NOWHERE/root/").status_code == 404


def test_a_page_that_is_not_there_is_told_in_words(alice: User) -> None:
    answer = signed_in(alice).get("/nowhere/")
    assert answer.status_code == 404
    assert "There is no such page" in text_of(answer)


def test_the_activity_says_where_a_task_was_moved(backlog: None, alice: User) -> None:
    write_path.write(
        as_actor(alice), "mcp://backlog/tasks/TASK-0001/status", {"type": "set", "value": "done"}
    )
    shown = " ".join(text_of(signed_in(alice).get("/activity/")).split())
    assert 'moved <a class="ref" data-ref="TASK-0001"' in shown
    assert '→ <span class="s-done">Done</span>' in shown


def test_a_table_is_shown_as_one_and_its_cells_stay_text(alice: User, carol: User) -> None:
    stored_files.create_resource(
        as_actor(carol), "artifacts/load.csv", 'users,p95\n10,"<b>84</b>"\n'
    )
    shown = text_of(fragment(signed_in(alice), "/open/?uri=mcp://backlog/artifacts/load.csv"))
    assert '<th scope="col">users</th>' in shown
    assert "<td>&lt;b&gt;84&lt;/b&gt;</td>" in shown


def test_the_tree_beside_a_folder_shows_the_way_to_it(alice: User, carol: User) -> None:
    for path in (
        "resources/docs/adr/1.md",
        "resources/docs/notes/1.md",
        "resources/src/lib/a.py",
        "artifacts/run/1.txt",
    ):
        stored_files.create_resource(as_actor(carol), path, "x")
    shown = folded(signed_in(alice).get("/files/resources/docs"))
    assert '<a href="/files/resources/docs" aria-current="page">docs</a>' in shown
    for path in (
        "resources",
        "artifacts",
        "artifacts/run",
        "resources/docs/adr",
        "resources/docs/notes",
        "resources/src",
    ):
        assert f'<a href="/files/{path}"' in shown, path
    assert "/files/resources/src/lib" not in shown
