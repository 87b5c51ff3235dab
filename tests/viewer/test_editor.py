"""Test that title and description are one form, one save and one batch."""

import re
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from resources_app.identity.roles import Actor
from resources_app.models import Change, Task
from resources_app.writing import write_path
from tests.factories import make_task, task_uri
from tests.viewer.browsing import folded, fragment, signed_in, text_of

BASE = "First line\n\nSecond line\n\nThird line"


@pytest.fixture
def task(carol: User) -> Task:
    return make_task(title="Before", description=BASE)


def saved(task: Task) -> tuple[str, str]:
    found = Task.objects.get(pk=task.pk)
    return found.title, found.description


def form_of(client: Client, task: Task) -> dict[str, str]:
    """Return the form as a browser would send it back untouched."""
    return fields_in(text_of(fragment(client, f"/t/{task.ref}/edit/")))


def fields_in(page: str) -> dict[str, str]:
    """Return the fields of a page: inputs with their values, textareas without the line break after
    their tag.
    """
    found = {}
    for tag in re.findall(r"<input[^>]*>", page):
        name, value = re.search(r'name="([^"]*)"', tag), re.search(r'value="([^"]*)"', tag)
        if name:
            found[name[1]] = unescape(value[1]) if value else ""
    for name, text in re.findall(
        r'<textarea name="([^"]*)"[^>]*>\n?(.*?)</textarea>', page, re.DOTALL
    ):
        found[name] = unescape(text)
    return found


def save(client: Client, task: Task, form: dict[str, str], **changed: str) -> Any:
    sent = {name: value.replace("\n", "\r\n") for name, value in (form | changed).items()}
    return fragment(client, f"/t/{task.ref}/edit/", sent)


def write(user: User, task: Task, field: str, value: str) -> None:
    write_path.write(
        Actor(user, "mcp", "claude-code"), task_uri(task, field), {"type": "set", "value": value}
    )


def test_one_save_writes_title_and_description_as_one_batch(alice: User, task: Task) -> None:
    client = signed_in(alice)
    answer = save(
        client, task, form_of(client, task), title="After", description=BASE + "\n\nFourth line"
    )
    assert answer.status_code == 200
    assert saved(task) == ("After", BASE + "\n\nFourth line")
    batches = Change.objects.filter(kind="task", author=alice).values_list("batch", flat=True)
    assert len(batches) and len(set(batches)) == 1 and None not in batches


def test_without_javascript_the_form_saves_both_and_leads_back(alice: User, task: Task) -> None:
    client = signed_in(alice)
    form = form_of(client, task) | {"title": "After", "description": "Rewritten"}
    assert client.post(f"/t/{task.ref}/edit/", form)["Location"] == f"/t/{task.ref}/"
    assert saved(task) == ("After", "Rewritten")


def test_a_form_that_changes_nothing_writes_nothing(alice: User, task: Task) -> None:
    client = signed_in(alice)
    assert save(client, task, form_of(client, task)).status_code == 200
    assert Task.objects.get(pk=task.pk).version == 1


def test_a_line_break_at_the_start_of_a_text_survives_the_form(alice: User) -> None:
    task = make_task(title="T", description="\n\nAfter two line breaks")
    client = signed_in(alice)
    save(client, task, form_of(client, task), title="Another")
    assert saved(task) == ("Another", "\n\nAfter two line breaks")


def test_a_field_the_writer_left_alone_does_not_conflict(
    alice: User, carol: User, task: Task
) -> None:
    client = signed_in(alice)
    form = form_of(client, task)
    write(carol, task, "description", "Written meanwhile")
    assert save(client, task, form, title="After").status_code == 200
    assert saved(task) == ("After", "Written meanwhile")


def test_a_refused_title_saves_no_description(alice: User, task: Task) -> None:
    client = signed_in(alice)
    answer = save(client, task, form_of(client, task), title="", description="Rewritten")
    assert (answer.status_code, answer["HX-Reswap"]) == (400, "none")
    assert saved(task) == ("Before", BASE)


def test_a_conflict_in_one_field_saves_neither_and_shows_both(
    alice: User, carol: User, task: Task
) -> None:
    client = signed_in(alice)
    form = form_of(client, task)
    write(carol, task, "description", BASE.replace("First", "Their first"))
    answer = save(client, task, form, title="After", description=BASE.replace("Third", "My third"))
    assert answer.status_code == 409
    shown = text_of(answer)
    assert "Description of TASK-0001 changed" in folded(answer) and "claude-code" in shown
    assert "no conflict" in shown and "After" in shown
    assert saved(task) == ("Before", BASE.replace("First", "Their first"))
    settled = fields_in(shown)
    assert settled["description"] == BASE.replace("First", "Their first").replace(
        "Third", "My third"
    )
    assert save(client, task, settled).status_code == 200
    assert saved(task) == ("After", settled["description"])


@pytest.fixture
def conflict(alice: User, carol: User, task: Task) -> tuple[Client, dict[str, str]]:
    """Return the form of the conflict page after both sides changed both fields."""
    client = signed_in(alice)
    form = form_of(client, task)
    write(carol, task, "title", "Theirs")
    write(carol, task, "description", "Their text\nof two lines")
    answer = save(client, task, form, title="Mine", description="My text\nof two lines")
    assert "Title and description of TASK-0001 changed" in folded(answer)
    return client, fields_in(text_of(answer))


def test_both_conflicts_are_settled_by_one_save(
    conflict: tuple[Client, dict[str, str]], task: Task
) -> None:
    client, form = conflict
    assert save(client, task, form, title="Settled", description="Settled text").status_code == 200
    assert saved(task) == ("Settled", "Settled text")


def test_use_mine_takes_the_writers_own_texts(
    conflict: tuple[Client, dict[str, str]], task: Task
) -> None:
    client, form = conflict
    assert save(client, task, form, take="mine").status_code == 200
    assert saved(task) == ("Mine", "My text\nof two lines")


def test_keep_saved_version_writes_nothing(
    conflict: tuple[Client, dict[str, str]], task: Task
) -> None:
    client, form = conflict
    assert save(client, task, form, take="theirs").status_code == 200
    assert saved(task) == ("Theirs", "Their text\nof two lines")


def test_keeping_the_saved_version_of_one_field_saves_the_other(
    alice: User, carol: User, task: Task
) -> None:
    client = signed_in(alice)
    form = form_of(client, task)
    write(carol, task, "title", "Theirs")
    answer = save(client, task, form, title="Mine", description="My text\nof two lines")
    assert save(client, task, fields_in(text_of(answer)), take="theirs").status_code == 200
    assert saved(task) == ("Theirs", "My text\nof two lines")


def test_a_conflict_on_the_settled_text_asks_again(
    conflict: tuple[Client, dict[str, str]], carol: User, task: Task
) -> None:
    client, form = conflict
    write(carol, task, "title", "Theirs once more")
    assert save(client, task, form).status_code == 409
    assert saved(task) == ("Theirs once more", "Their text\nof two lines")


def test_a_status_that_changed_meanwhile_is_settled_the_same_way(
    alice: User, carol: User, task: Task
) -> None:
    client = signed_in(alice)
    page = text_of(client.get(f"/t/{task.ref}/"))
    etag = (
        page.split('name="field" value="status"')[1].split('name="etag" value="')[1].split('"')[0]
    )
    write(carol, task, "status", "blocked")
    answer = fragment(
        client, f"/t/{task.ref}/set/", {"field": "status", "value": "done", "etag": etag}
    )
    assert answer.status_code == 409 and "Save merge" not in text_of(answer)
    save(client, task, fields_in(text_of(answer)), take="mine")
    assert Task.objects.get(pk=task.pk).get_status_display() == "done"
