"""Test board and list: URL filters, pages of a column, bulk edits."""

import re
from urllib.parse import quote

import pytest
from django.contrib.auth.models import User

from backlog_site.viewer.queries import boards
from resources_app.identity.roles import Actor
from resources_app.models import Task
from resources_app.writing import write_path
from tests.factories import make_epic, make_task
from tests.viewer.browsing import folded, fragment, signed_in, text_of


@pytest.fixture
def tasks(carol: User) -> list[Task]:
    epic = make_epic(title="Search")
    return [
        make_task(
            title="Alpha", status="open", priority="urgent", labels=["api"], epic_id=epic.ref
        ),
        make_task(title="Beta", status="done", assignee="carol"),
        make_task(title="Gamma", status="open", description="- [x] a\n- [ ] b"),
    ]


def test_filters_come_from_the_address(tasks: list[Task], alice: User) -> None:
    client = signed_in(alice)
    for query, shown, hidden in (
        ("priority=urgent", "Alpha", "Beta"),
        ("assignee=carol", "Beta", "Alpha"),
        ("assignee=none", "Gamma", "Beta"),
        ("label=api", "Alpha", "Gamma"),
        ("epic_id=EPIC-0001", "Alpha", "Beta"),
        ("epic_id=none", "Beta", "Alpha"),
        ("search=gamma", "Gamma", "Alpha"),
        ("priority=&search=&label=api", "Alpha", "Beta"),
    ):
        page = text_of(client.get(f"/board/?{query}"))
        assert f">{shown}</a>" in page, query
        assert f">{hidden}</a>" not in page, query


def test_a_filter_that_matches_nothing_says_so(tasks: list[Task], alice: User) -> None:
    assert "No task matches" in text_of(signed_in(alice).get("/board/?search=nowhere"))


def test_an_unknown_status_in_the_address_is_refused_kindly(alice: User) -> None:
    assert signed_in(alice).get("/board/?status=sleeping").status_code == 400


def test_columns_are_paged_and_their_counts_true(alice: User, carol: User) -> None:
    for number in range(7):
        make_task(title=f"Task {number}")
    found = boards.sections(alice, [], "status", 3)
    opened = next(section for section in found if section.key == "open")
    assert (opened.total, len(opened.cards)) == (7, 3)
    seen = [card.ref for card in opened.cards]
    cursor = opened.next_cursor
    while cursor:
        page = boards.more(alice, [], "status", "open", cursor, 3)
        seen += [card.ref for card in page.cards]
        cursor = page.next_cursor
    assert sorted(seen) == [f"TASK-{number:04d}" for number in range(1, 8)]
    assert len(seen) == 7


def test_the_number_of_queries_does_not_grow_with_the_cards(
    alice: User, carol: User, django_assert_max_num_queries
) -> None:
    epic = make_epic()
    for number in range(20):
        make_task(title=f"Task {number}", epic_id=epic.ref, assignee="carol", labels=["a", "b"])
    with django_assert_max_num_queries(8):
        boards.sections(alice, [], "status", 50)


def test_a_conflict_about_the_epic_leaves_the_status_as_it_was(
    tasks: list[Task], alice: User
) -> None:
    client, other = signed_in(alice), make_epic(title="Another")
    [card] = boards.cards(alice, [], ["TASK-0001"])
    write_path.write(
        Actor(alice, "web"), "mcp://backlog/tasks/TASK-0001/epic_id", {"type": "set", "value": None}
    )
    body = {
        "status": "done",
        "status_etag": card.etag,
        "epic_id": other.ref,
        "epic_id_etag": card.epic_etag,
    }
    answer = client.post("/t/TASK-0001/move/", body, headers={"Accept": "application/json"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "conflict")
    [card] = boards.cards(alice, [], ["TASK-0001"])
    assert (card.status, card.epic) == ("open", None)
    moved = client.post("/t/TASK-0001/move/", body | {"epic_id_etag": card.epic_etag})
    assert moved.status_code == 200
    [card] = boards.cards(alice, [], ["TASK-0001"])
    assert card.epic is not None and (card.status, card.epic.ref) == ("done", other.ref)


def test_a_card_says_what_is_ticked_and_who_wrote_last(tasks: list[Task], alice: User) -> None:
    found = boards.cards(alice, [], ["TASK-0003"])
    assert (found[0].ticked, found[0].boxes) == (1, 2)
    write_path.write(
        Actor(alice, "mcp", "claude-code"),
        "mcp://backlog/tasks/TASK-0003/priority",
        {"type": "set", "value": "low"},
    )
    assert boards.cards(alice, [], ["TASK-0003"])[0].agent == "claude-code"


def test_changed_cards_come_only_when_they_match(tasks: list[Task], alice: User) -> None:
    page = text_of(fragment(signed_in(alice), "/cards/?ids=TASK-0001,TASK-0002&label=api"))
    assert 'id="TASK-0001"' in page
    assert 'id="TASK-0002"' not in page
    assert "&quot;open&quot;: 1" in page


def test_many_are_edited_and_undone_as_one(tasks: list[Task], alice: User) -> None:
    client = signed_in(alice)
    body = {"field": "status", "value": "blocked", "ids": "TASK-0001,TASK-0003"}
    answer = client.post("/bulk/", body).json()
    assert answer["failed"] == 0
    assert set(Task.objects.filter(status=3).values_list("number", flat=True)) == {1, 3}
    client.post("/undo/", {"batch": answer["batch"]})
    assert not Task.objects.filter(status=3).exists()


def test_the_list_groups_by_what_is_asked(tasks: list[Task], alice: User) -> None:
    client = signed_in(alice)
    assert "Search</h2>" in folded(client.get("/list/?group=epic_id"))
    assert "Unassigned</h2>" in folded(client.get("/list/?group=assignee"))
    for path in ("/list/", "/cards/", "/more/"):
        assert client.get(f"{path}?group=colour").status_code == 400, path


def test_the_search_box_gets_titles_and_marked_snippets(tasks: list[Task], alice: User) -> None:
    client = signed_in(alice)
    assert ["TASK-0001", "Alpha", "open"] in client.get("/spotlight/titles.json").json()["items"]
    assert "<mark>Gamma</mark>" in text_of(fragment(client, "/spotlight/?q=gamm"))


def test_filters_can_be_typed_between_the_words(
    tasks: list[Task], alice: User, carol: User
) -> None:
    for query, shown, hidden in (
        ("status:do", "Beta", "Alpha"),
        ("@me", "Beta", "Gamma"),
        ("@caro", "Beta", "Gamma"),
        ("@nobody gam", "Gamma", "Beta"),
        ("epic:epic-0001 PRIORITY:urgent", "Alpha", "Gamma"),
        ("label:api alpha", "Alpha", "Beta"),
    ):
        page = text_of(signed_in(carol).get("/board/", {"search": query}))
        assert f">{shown}</a>" in page, query
        assert f">{hidden}</a>" not in page, query
    assert "No task matches" in text_of(
        signed_in(alice).get("/board/", {"search": "@stranger status:asleep"})
    )


def test_the_search_box_takes_the_same_filters(tasks: list[Task], carol: User) -> None:
    client = signed_in(carol)
    for query, shown, hidden in (
        ("status:done", "Beta", "Gamma"),
        ("@me be", "Beta", "Alpha"),
        ("label:api", "Alpha", "Beta"),
        ("@nobody status:open", "Gamma", "Beta"),
    ):
        found = text_of(fragment(client, f"/spotlight/?q={quote(query)}"))
        assert shown in re.sub("</?mark>", "", found), query
        assert hidden not in found, query


def test_filters_alone_list_what_has_the_chosen_type(tasks: list[Task], carol: User) -> None:
    client = signed_in(carol)
    for kind, shown, hidden in (
        ("epic", "EPIC-0001", "TASK"),
        ("task", "TASK-0001", "EPIC"),
        ("resource", "No text", "-0001"),
    ):
        found = text_of(fragment(client, f"/spotlight/?q=status:open&type={kind}"))
        assert shown in found, kind
        assert hidden not in found, kind
    assert "No text" in text_of(fragment(client, "/spotlight/?q=epic:EPIC-0001&type=epic"))
