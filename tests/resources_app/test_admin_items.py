"""Test that tasks, epics and comments are edited in the admin through the write path."""

import datetime

import pytest
from django.contrib.auth.models import Group, User

from resources_app.models import Change, Comment, Epic, Revision, Task
from resources_app.vocabulary import Priority, Status
from resources_app.writing import write_path
from tests.factories import as_actor, make_epic, make_task, system, task_uri
from tests.resources_app.admin_client import enter, errors_of, inputs_of, make_admin, opened, url

pytestmark = pytest.mark.django_db


def set_field(task: Task, user: User, name: str, value: object, via: str = "mcp") -> None:
    write_path.write(as_actor(user, via), task_uri(task, name), {"type": "set", "value": value})


def test_an_edit_is_in_the_history_with_its_author_and_door() -> None:
    carol, task = make_admin(), make_task(title="Before")
    client = enter(carol)
    answer = client.post(
        url("task_change", task.pk), opened(client, "task_change", task.pk) | {"title": "After"}
    )
    assert answer.status_code == 302
    change = Change.objects.get(version=2)
    assert (change.author, change.via, change.action, change.fields) == (
        carol,
        "admin",
        "update",
        ["title"],
    )
    assert change.request_id
    assert Revision.objects.get(version=2).delta["title"]
    task.refresh_from_db()
    assert (task.title, task.version) == ("After", 2)


def test_saving_an_untouched_form_writes_nothing(alice: User) -> None:
    epic, other = make_epic(), make_task()
    task = make_task(
        title="Long",
        description="\n  first line is empty\r\nwindows\nunix  \n\n",
        status="blocked",
        priority="high",
        labels=["b", "a"],
        assignee="alice",
        due_date="2026-12-24",
        evidence=["one line", "two\nlines\n\n  and an indented one", "tail\\n"],
        blocked_reason=["rain"],
        references=[
            {"url": "docs/a file.md", "title": "a | b"},
            {"url": "https://example.com", "title": ""},
        ],
        epic_id=epic.ref,
        depends_on=[other.ref],
        groups=["viewer", "contributor"],
    )
    client = enter()
    answer = client.post(url("task_change", task.pk), opened(client, "task_change", task.pk))
    assert answer.status_code == 302
    task.refresh_from_db()
    assert task.version == 1


def test_every_field_can_be_changed(alice: User) -> None:
    epic, other, task = make_epic(), make_task(), make_task(evidence=["kept\nwith two lines"])
    client = enter()
    posted = opened(client, "task_change", task.pk) | {
        "title": "New",
        "description": "One\r\nTwo\r\n",
        "status": Status.IN_PROGRESS.value,
        "priority": Priority.URGENT.value,
        "labels": "red\r\n\r\n blue \r\n",
        "assignee": alice.pk,
        "due_date": "2026-12-24",
        "evidence": "kept\r\n  with two lines\r\nadded\r\n",
        "blocked_reason": "rain",
        "references": "https://example.com | An example\r\ndocs/plan.md",
        "epic": epic.pk,
        "depends_on": other.ref,
        "groups": ["contributor"],
    }
    assert client.post(url("task_change", task.pk), posted).status_code == 302
    task.refresh_from_db()
    assert (task.title, task.description) == ("New", "One\nTwo\n")
    assert (task.status, task.priority, task.labels) == (
        Status.IN_PROGRESS,
        Priority.URGENT,
        ["red", "blue"],
    )
    assert (task.assignee, task.epic, task.due_date) == (alice, epic, datetime.date(2026, 12, 24))
    assert (task.evidence, task.blocked_reason) == (["kept\nwith two lines", "added"], ["rain"])
    assert task.references == [
        {"url": "https://example.com", "title": "An example"},
        {"url": "docs/plan.md", "title": ""},
    ]
    assert (task.depends_on, task.groups, task.restricted) == ([other.ref], ["contributor"], True)
    assert task.version == 2


def test_fields_can_be_emptied(alice: User) -> None:
    task = make_task(
        assignee="alice",
        due_date="2026-12-24",
        labels=["a"],
        epic_id=make_epic().ref,
        description="x",
    )
    client = enter()
    emptied = dict.fromkeys(("assignee", "due_date", "labels", "epic", "description"), "")
    assert (
        client.post(
            url("task_change", task.pk), opened(client, "task_change", task.pk) | emptied
        ).status_code
        == 302
    )
    task.refresh_from_db()
    assert (task.assignee, task.due_date, task.labels, task.epic, task.description) == (
        None,
        None,
        [],
        None,
        "",
    )


def test_a_text_with_windows_line_ends_keeps_them_when_one_line_changes() -> None:
    task = make_task(description="one\r\ntwo\r\n")
    client = enter()
    posted = opened(client, "task_change", task.pk)
    posted["description"] = posted["description"].replace("two", "2")
    client.post(url("task_change", task.pk), posted)
    task.refresh_from_db()
    assert task.description == "one\r\n2\r\n"


def test_a_stale_form_is_refused_and_nobodys_work_is_lost(alice: User) -> None:
    task = make_task(title="Old", description="Old text")
    client = enter()
    posted = opened(client, "task_change", task.pk) | {"title": "Mine"}
    set_field(task, alice, "description", "Text by alice")
    refused = client.post(url("task_change", task.pk), posted)
    [message] = errors_of(refused)["__all__"]
    assert "was changed since you opened it" in message
    shown = refused.content.decode()
    assert "What changed since you opened this form" in shown
    assert "Text by alice" in shown
    assert "alice" in shown
    task.refresh_from_db()
    assert (task.title, task.description, task.version) == ("Old", "Text by alice", 2)


def test_a_stale_form_can_be_saved_again_on_top_of_what_others_did(alice: User, bob: User) -> None:
    task = make_task(title="Old", description="Old text", labels=["a"])
    client = enter()
    posted = opened(client, "task_change", task.pk) | {"title": "Mine"}
    set_field(task, alice, "description", "Text by alice")
    set_field(task, alice, "assignee", "bob")
    set_field(task, alice, "labels", ["a", "b"])
    kept = inputs_of(client.post(url("task_change", task.pk), posted))
    assert (kept["title"], kept["description"], kept["labels"]) == (
        "Mine",
        "Text by alice",
        "a\r\nb",
    )
    assert client.post(url("task_change", task.pk), kept).status_code == 302
    task.refresh_from_db()
    assert (task.title, task.description, task.assignee, task.labels) == (
        "Mine",
        "Text by alice",
        bob,
        ["a", "b"],
    )
    assert Change.objects.get(version=5).fields == ["title"]


def test_a_field_that_both_changed_is_pointed_out_on_the_form(alice: User) -> None:
    task = make_task(title="Old")
    client = enter()
    posted = opened(client, "task_change", task.pk) | {"title": "Mine"}
    set_field(task, alice, "title", "Theirs")
    answer = client.post(url("task_change", task.pk), posted)
    assert "Also changed by another user" in errors_of(answer)["title"][0]
    assert answer.context["adminform"].form["title"].value() == "Mine"


def test_a_form_without_its_etag_is_refused() -> None:
    task = make_task(title="Old")
    client = enter()
    posted = opened(client, "task_change", task.pk) | {"title": "New", "etag": ""}
    assert (
        "which version" in errors_of(client.post(url("task_change", task.pk), posted))["__all__"][0]
    )
    assert (
        "modified"
        in errors_of(client.post(url("task_change", task.pk), posted | {"etag": "1-forged"}))[
            "__all__"
        ][0]
    )
    task.refresh_from_db()
    assert task.title == "Old"


def test_what_the_domain_refuses_is_shown_at_its_field_with_the_input_kept() -> None:
    first, second = make_task(), make_task()
    write_path.write(
        system(), task_uri(first, "depends_on"), {"type": "set", "value": [second.ref]}
    )
    client = enter()
    untouched = opened(client, "task_change", second.pk)
    for name, value, said in [
        ("depends_on", first.ref, "would depend on itself"),
        ("depends_on", "TASK-9999", "There is no task TASK-9999"),
        ("depends_on", "nonsense", "must be an id like TASK-0001"),
        ("references", "javascript:alert(1)", "and no javascript:"),
        ("labels", "x" * 51, "(got 51)"),
    ]:
        answer = client.post(
            url("task_change", second.pk), untouched | {"title": "Kept", name: value}
        )
        assert said in errors_of(answer)[name][0]
        assert answer.context["adminform"].form["title"].value() == "Kept"
        assert answer.context["adminform"].form[name].value() == value
    second.refresh_from_db()
    assert second.version == 1


def test_an_archived_epic_is_refused_at_the_epic_field() -> None:
    epic, task = make_epic(), make_task()
    write_path.archive(system(), f"mcp://backlog/epics/{epic.ref}")
    client = enter()
    posted = opened(client, "task_change", task.pk) | {"epic": epic.pk}
    assert (
        "There is no epic" in errors_of(client.post(url("task_change", task.pk), posted))["epic"][0]
    )


def test_a_deleted_group_stays_named_so_that_saving_does_not_open_the_task() -> None:
    Group.objects.create(name="secret")
    task = make_task(groups=["secret"])
    Group.objects.get(name="secret").delete()
    client = enter()
    client.post(
        url("task_change", task.pk), opened(client, "task_change", task.pk) | {"title": "New"}
    )
    task.refresh_from_db()
    assert (task.title, task.groups, task.restricted) == ("New", ["secret"], True)


def test_a_task_is_created_with_its_first_revision() -> None:
    carol, epic = make_admin(), make_epic()
    client = enter(carol)
    posted = opened(client, "task_add") | {"title": "Born here", "epic": epic.pk, "labels": "new"}
    assert client.post(url("task_add"), posted).status_code == 302
    task = Task.objects.get()
    assert (task.ref, task.title, task.epic, task.labels) == (
        "TASK-0001",
        "Born here",
        epic,
        ["new"],
    )
    change = Change.objects.get(kind="task")
    assert (change.author, change.via, change.action, change.version) == (
        carol,
        "admin",
        "create",
        1,
    )


def test_a_task_without_title_is_not_created() -> None:
    client = enter()
    assert "title" in errors_of(client.post(url("task_add"), opened(client, "task_add")))
    assert not Task.objects.exists()


def test_an_epic_is_created_and_edited() -> None:
    client = enter()
    client.post(url("epic_add"), opened(client, "epic_add") | {"title": "Big"})
    epic = Epic.objects.get()
    posted = opened(client, "epic_change", epic.pk) | {
        "title": "Bigger",
        "status": Status.DONE.value,
    }
    assert client.post(url("epic_change", epic.pk), posted).status_code == 302
    epic.refresh_from_db()
    assert (epic.title, epic.status, epic.version) == ("Bigger", Status.DONE, 2)


def test_a_comment_is_added_edited_and_protected_against_stale_forms() -> None:
    carol, task = make_admin(), make_task()
    client = enter(carol)
    added = client.post(url("comment_add"), {"task": task.pk, "epic": "", "body": "Hello\r\nthere"})
    assert added.status_code == 302
    comment = Comment.objects.get()
    assert (comment.body, comment.author, comment.task) == ("Hello\nthere", carol, task)
    stale = opened(client, "comment_change", comment.pk) | {"body": "Mine"}
    uri = f"mcp://backlog/comments/{comment.pk}"
    write_path.write(system(), uri, {"type": "append", "content": "!"})
    assert (
        "was changed since"
        in errors_of(client.post(url("comment_change", comment.pk), stale))["__all__"][0]
    )
    fresh = opened(client, "comment_change", comment.pk) | {"body": "Bye"}
    assert client.post(url("comment_change", comment.pk), fresh).status_code == 302
    comment.refresh_from_db()
    assert (comment.body, comment.version) == ("Bye", 3)


def test_a_comment_belongs_to_exactly_one_thing() -> None:
    task, epic = make_task(), make_epic()
    client = enter()
    for target in ({"task": "", "epic": ""}, {"task": task.pk, "epic": epic.pk}):
        answer = client.post(url("comment_add"), target | {"body": "Hello"})
        assert errors_of(answer)["__all__"] == ["A comment belongs to one task or to one epic."]
    assert not Comment.objects.exists()


def test_an_archived_task_is_shown_but_not_editable() -> None:
    task = make_task(title="Done with")
    client = enter()
    posted = opened(client, "task_change", task.pk) | {"title": "Changed"}
    write_path.archive(system(), task_uri(task))
    assert "Done with" in client.get(url("task_change", task.pk)).content.decode()
    assert client.post(url("task_change", task.pk), posted).status_code == 403


def test_archive_asks_first_and_then_goes_through_the_write_path() -> None:
    carol, task = make_admin(), make_task()
    client = enter(carol)
    assert "read-only" in client.get(url("task_archive", task.pk)).content.decode()
    task.refresh_from_db()
    assert task.archived_at is None
    assert client.post(url("task_archive", task.pk)).status_code == 302
    task.refresh_from_db()
    assert task.archived_at
    change = Change.objects.get(version=2)
    assert (change.action, change.author, change.via) == ("archive", carol, "admin")
    client.post(url("task_unarchive", task.pk))
    task.refresh_from_db()
    assert task.archived_at is None


def test_selected_tasks_are_archived_and_brought_back() -> None:
    tasks = [make_task(), make_task(), make_task()]
    client = enter()
    chosen = [task.pk for task in tasks[:2]]
    answer = client.post(
        url("task_changelist"),
        {"action": "archive_selected", "_selected_action": chosen},
        follow=True,
    )
    assert "Archived 2 tasks." in answer.content.decode()
    assert list(Task.objects.live()) == [tasks[2]]
    back = {"action": "unarchive_selected", "_selected_action": chosen}
    client.post(url("task_changelist") + "?archived=yes", back)
    assert Task.objects.live().count() == 3


def test_permanent_deletion_is_confirmed_and_leaves_the_audit_trail() -> None:
    task = make_task()
    client = enter()
    posted = {"action": "delete_selected_permanently", "_selected_action": [task.pk]}
    asked = client.post(url("task_changelist"), posted)
    assert "gone for good" in asked.content.decode()
    assert Task.objects.filter(pk=task.pk).exists()
    client.post(url("task_changelist"), posted | {"confirmed": "yes"})
    assert not Task.objects.filter(pk=task.pk).exists()
    assert "delete" in client.get(url("change_changelist")).content.decode()
    assert Change.objects.filter(action="delete", ref=task.ref).exists()


def test_a_refused_deletion_says_why_and_keeps_the_thing() -> None:
    epic = make_epic()
    task = make_task(epic_id=epic.ref)
    answer = enter().post(url("epic_delete_permanently", epic.pk), follow=True)
    assert f"still needed by {task.ref}" in answer.content.decode()
    assert Epic.objects.filter(pk=epic.pk).exists()


def test_the_page_of_something_that_does_not_exist_is_a_404() -> None:
    client = enter()
    for page in ("task_archive", "task_history", "task_delete_permanently"):
        assert client.get(url(page, 4711)).status_code == 404
        assert client.get(url(page, "nonsense")).status_code == 404
