"""Test edits from the page: each field with its ETag, conflicts that lose nothing, lists, boxes,
comments, versions.
"""

import pytest
from django.contrib.auth.models import User

from backlog_site.viewer.queries.items import item_page
from resources_app.identity.roles import Actor
from resources_app.models import Task
from resources_app.writing import write_path
from tests.factories import make_epic, make_task, task_uri
from tests.viewer.browsing import fragment, signed_in, text_of

BASE = "First line\n\nSecond line\n\nThird line"


@pytest.fixture
def task(carol: User) -> Task:
    return make_task(title="Merge me", description=BASE)


def etag(user: User, task: Task, field: str) -> str:
    return item_page(Actor(user, "web"), task.ref).etags[field]


def stored(task: Task) -> Task:
    return Task.objects.get(pk=task.pk)


def test_a_field_is_set_in_place(alice: User, task: Task) -> None:
    body = {"field": "priority", "value": "urgent", "etag": etag(alice, task, "priority")}
    answer = fragment(signed_in(alice), f"/t/{task.ref}/set/", body)
    assert answer.status_code == 200
    assert '<option value="urgent" selected>' in text_of(answer)
    assert stored(task).get_priority_display() == "urgent"


def test_an_empty_choice_takes_the_value_away(alice: User, task: Task) -> None:
    write_path.write(
        Actor(alice, "web"), task_uri(task, "assignee"), {"type": "set", "value": "alice"}
    )
    fragment(signed_in(alice), f"/t/{task.ref}/set/", {"field": "assignee", "value": ""})
    assert stored(task).assignee is None


def test_without_javascript_an_edit_leads_back_to_the_page(alice: User, task: Task) -> None:
    answer = signed_in(alice).post(f"/t/{task.ref}/set/", {"field": "status", "value": "done"})
    assert answer["Location"] == f"/t/{task.ref}/"


def test_a_conflict_shows_both_versions_and_their_merge(
    alice: User, carol: User, task: Task
) -> None:
    seen = etag(alice, task, "description")
    theirs = {"type": "str_replace", "old_str": "First", "new_str": "Their first"}
    write_path.write(Actor(carol, "mcp", "claude-code"), task_uri(task, "description"), theirs)
    mine = BASE.replace("Third", "My third")
    body = {"field": "description", "value": mine.replace("\n", "\r\n"), "etag": seen}
    answer = fragment(signed_in(alice), f"/t/{task.ref}/set/", body)
    assert answer.status_code == 409
    assert answer["HX-Retarget"] == "#dialog .dialog-body"
    shown = text_of(answer)
    assert "Their first line\n\nSecond line\n\nMy third line" in shown
    assert "claude-code" in shown
    assert stored(task).description == BASE.replace("First", "Their first")


def test_the_merge_is_saved_with_the_tag_the_dialog_carries(
    alice: User, carol: User, task: Task
) -> None:
    seen = etag(alice, task, "description")
    write_path.write(
        Actor(carol, "mcp"),
        task_uri(task, "description"),
        {"type": "append", "content": "\nTheirs"},
    )
    client = signed_in(alice)
    dialog = fragment(
        client,
        f"/t/{task.ref}/set/",
        {"field": "description", "value": "Mine\n" + BASE, "etag": seen},
    )
    fresh = text_of(dialog).split('name="description_etag" value="')[1].split('"')[0]
    merged = f"Mine\n{BASE}\nTheirs"
    saved = fragment(
        client, f"/t/{task.ref}/edit/", {"description": merged, "description_etag": fresh}
    )
    assert saved.status_code == 200
    assert stored(task).description == merged


def test_a_move_with_a_stale_tag_is_told_as_a_conflict(
    alice: User, carol: User, task: Task
) -> None:
    seen = etag(alice, task, "status")
    write_path.write(
        Actor(carol, "web"), task_uri(task, "status"), {"type": "set", "value": "blocked"}
    )
    body = {"field": "status", "value": "done", "etag": seen}
    answer = signed_in(alice).post(
        f"/t/{task.ref}/set/", body, headers={"Accept": "application/json"}
    )
    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "conflict"


def test_a_refused_edit_leaves_the_page_as_it_is_and_says_why(alice: User, task: Task) -> None:
    answer = fragment(
        signed_in(alice), f"/t/{task.ref}/set/", {"field": "status", "value": "sleeping"}
    )
    assert answer.status_code == 400
    assert answer["HX-Reswap"] == "none"
    assert "refused" in answer["HX-Trigger"]


def test_a_reader_cannot_write(bob: User, task: Task) -> None:
    for path, body in {
        "set": {"field": "status", "value": "done"},
        "comment": {"body": "hello"},
        "tick": {"line": "0", "label": "x"},
        "archive": {},
        "list": {"field": "labels", "value": "x"},
    }.items():
        assert signed_in(bob).post(f"/t/{task.ref}/{path}/", body).status_code in (403, 409), path
    assert signed_in(bob).post("/new/", {"title": "No"}).status_code == 403
    assert stored(task).version == 1


def test_lists_grow_and_shrink(alice: User, task: Task) -> None:
    client = signed_in(alice)
    for value in ("api", "docs"):
        fragment(client, f"/t/{task.ref}/list/", {"field": "labels", "value": value})
    assert stored(task).labels == ["api", "docs"]
    body = {"field": "labels", "index": "0", "etag": etag(alice, task, "labels")}
    fragment(client, f"/t/{task.ref}/list/", body)
    assert stored(task).labels == ["docs"]
    url = "mcp://backlog/resources/a.md"
    page = text_of(
        fragment(
            client, f"/t/{task.ref}/list/", {"field": "references", "value": url, "title": "A"}
        )
    )
    assert stored(task).references == [{"url": url, "title": "A"}]
    assert f'data-uri="{url}"' in page


def test_a_box_is_ticked_by_its_line(alice: User) -> None:
    task = make_task(description="- [ ] same\n- [ ] same\n- [ ] **other** `one`")
    client = signed_in(alice)
    fragment(client, f"/t/{task.ref}/tick/", {"line": "1", "label": "same", "checked": "true"})
    fragment(
        client, f"/t/{task.ref}/tick/", {"line": "2", "label": "**other** `one`", "checked": "true"}
    )
    assert stored(task).description == "- [ ] same\n- [x] same\n- [x] **other** `one`"


def test_a_box_that_moved_meanwhile_is_not_ticked(alice: User, carol: User) -> None:
    task = make_task(description="- [ ] one\n- [ ] two")
    write_path.write(
        Actor(carol, "mcp"),
        task_uri(task, "description"),
        {"type": "prepend", "content": "- [ ] zero\n"},
    )
    answer = fragment(
        signed_in(alice), f"/t/{task.ref}/tick/", {"line": "0", "label": "one", "checked": "true"}
    )
    assert answer.status_code == 409
    assert "[x]" not in stored(task).description


def test_comments_are_written_and_shown_harmless(alice: User, task: Task) -> None:
    page = text_of(
        fragment(
            signed_in(alice),
            f"/t/{task.ref}/comment/",
            {"body": "**Seen** <script>alert(1)</script>"},
        )
    )
    assert "<strong>Seen</strong>" in page
    assert "<script>alert" not in page


def test_an_earlier_version_is_restored(alice: User, task: Task) -> None:
    client = signed_in(alice)
    fragment(client, f"/t/{task.ref}/set/", {"field": "title", "value": "Another title"})
    assert "Restore version 1" in text_of(client.get(f"/t/{task.ref}/"))
    fragment(client, f"/t/{task.ref}/restore/", {"version": "1"})
    assert stored(task).title == "Merge me"


def test_an_archived_task_can_be_brought_back(alice: User, task: Task) -> None:
    client = signed_in(alice)
    assert "Archived" in text_of(fragment(client, f"/t/{task.ref}/archive/", {"on": "1"}))
    fragment(client, f"/t/{task.ref}/archive/", {"back": "1"})
    assert stored(task).archived_at is None


def test_a_task_is_created_with_and_without_javascript(alice: User) -> None:
    epic = make_epic()
    client = signed_in(alice)
    body = {
        "title": "From the form",
        "labels": "api, docs",
        "epic_id": epic.ref,
        "status": "open",
        "priority": "low",
    }
    assert client.post("/new/", body)["Location"] == "/t/TASK-0001/"
    made = client.post(
        "/new/", {"title": "From the dialog"}, headers={"Accept": "application/json"}
    ).json()
    assert made == {"ref": "TASK-0002"}
    first = Task.objects.get(pk=1)
    assert (first.labels, first.epic_id) == (["api", "docs"], epic.pk)
    assert (
        client.post("/new/", {"title": ""}, headers={"Accept": "application/json"}).status_code
        == 400
    )


def test_an_epic_shows_its_tasks_and_how_far_they_are(alice: User) -> None:
    epic = make_epic(title="Whole")
    for status in ("done", "open", "in_progress", "cancelled"):
        make_task(title=f"It is {status}", epic_id=epic.ref, status=status)
    page = text_of(signed_in(alice).get(f"/t/{epic.ref}/"))
    assert "1 of 3 done" in page
    assert "It is cancelled" in page


def test_a_comment_is_edited_and_taken_back_from_the_page(
    alice: User, carol: User, task: Task
) -> None:
    mine = write_path.add_comment(Actor(alice, "web"), task_uri(task), "Frist words")
    theirs = write_path.add_comment(Actor(carol, "web"), task_uri(task), "Theirs")
    client, path = signed_in(alice), f"/t/{task.ref}/comment/{mine.pk}/"
    page = text_of(client.get(f"/t/{task.ref}/"))
    assert path in page and f"/comment/{theirs.pk}/" not in page
    assert "Said better" in text_of(fragment(client, path, {"body": "Said better"}))
    assert fragment(client, f"/t/{task.ref}/comment/{theirs.pk}/", {"body": "x"}).status_code == 403
    assert client.post(path, {"remove": "1"})["Location"] == f"/t/{task.ref}/"
    assert "Said better" not in text_of(client.get(f"/t/{task.ref}/"))
