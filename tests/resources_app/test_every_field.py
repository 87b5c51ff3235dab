"""Test that each declared field works everywhere, so that a new declaration needs no other change.

Values are chosen by type: a field of a new name is covered without a change here.
"""

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from django.contrib.auth.models import User

from backlog_site.mcp.context import acting_as
from backlog_site.mcp.tools import BacklogTools
from backlog_site.mcp.toolset import checked_arguments
from resources_app.admin.forms import EpicForm, TaskForm, form_name
from resources_app.fields.declarations import FIELDS, Field, writable_fields
from resources_app.history.documents import document_of
from resources_app.interchange.item_files import read_item_file
from resources_app.models import Epic, Revision, Task
from resources_app.reading.markdown import item_markdown
from resources_app.vocabulary import Kind
from tests.api.clients import ApiClient, error_of
from tests.factories import as_actor, make_epic, make_task
from tests.resources_app.acting import again, is_replayed
from tests.resources_app.admin_client import enter, url
from tests.viewer.browsing import signed_in, text_of

pytestmark = pytest.mark.django_db

KINDS = (Kind.TASK, Kind.EPIC)
WRITABLE = [
    pytest.param(kind, field, id=f"{kind}.{field.name}")
    for kind in KINDS
    for field in writable_fields(kind)
]
OPTIONAL = [
    pytest.param(kind, field, id=f"{kind}.{field.name}")
    for kind in KINDS
    for field in writable_fields(kind)
    if not field.required
]
OF_TASKS = writable_fields(Kind.TASK)
FILTERED = [pytest.param(field, id=field.name) for field in OF_TASKS if field.compared]
SORTED = [
    pytest.param(kind, field, id=f"{kind}.{field.name}")
    for kind in KINDS
    for field in FIELDS[kind].values()
    if field.sort_column
]
ARGUMENTS = [pytest.param(field, id=field.name) for field in OF_TASKS if field.is_argument]
SINGLE = [pytest.param(field, id=field.name) for field in OF_TASKS if field.shape != "array"]
# By type: two values and a wrong one.
VALUES: dict[str, tuple[Any, Any, Any]] = {
    "text": ("Apples", "Pears", 7),
    "markdown": ("Some *apples*", "Some pears", 7),
    "date": ("2026-12-24", "2027-01-31", "soon"),
    "number": (2.5, 40, "many"),
    "person": ("alice", "bob", 7),
    "epic": ("EPIC-0001", "EPIC-0002", "TASK-0001"),
    "tasks": (["TASK-0001"], ["TASK-0002"], ["EPIC-0001"]),
    "words": (["red"], ["blue", "green"], "red"),
    "texts": (["Seen"], ["Heard", "Read"], [7]),
    "references": (
        [{"url": "https://example.com/a", "title": "A"}],
        [{"url": "docs/b.md", "title": ""}],
        [{"link": "c"}],
    ),
    "groups": (["viewer"], ["contributor"], "viewer"),
}


def values_of(field: Field) -> tuple[Any, Any, Any]:
    if field.choices:
        return field.choices[1], field.choices[2], "no such choice"
    return VALUES[field.type]


@pytest.fixture(autouse=True)
def named_things(alice: User, bob: User) -> None:
    """Create what the values name: two epics and two tasks."""
    for _ in range(2):
        make_epic()
        make_task()


@pytest.fixture
def admin(carol: User) -> ApiClient:
    return ApiClient(carol)


@pytest.fixture
def tools(alice: User) -> Iterator[BacklogTools]:
    with acting_as(as_actor(alice, via="mcp")):
        yield BacklogTools()


def make(kind: str, field: Field, value: Any) -> Task | Epic:
    values = {field.name: value} if field.required else {"title": "One", field.name: value}
    return (make_task if kind == Kind.TASK else make_epic)(**values)


def path_of(item: Task | Epic) -> str:
    return f"/api/v1/{item.KIND}s/{item.ref}/"


def uri_of(item: Task | Epic, *rest: str) -> str:
    return "/".join([f"mcp://backlog/{item.KIND}s/{item.ref}", *rest])


def read(client: ApiClient, uri: str) -> Any:
    return client.get(f"/api/v1/resource/?uri={quote(uri, safe='')}").json()["contents"]


def listed(client: ApiClient, query: str) -> list[str]:
    answer = client.get(f"/api/v1/tasks/?{query}")
    assert answer.status_code == 200, answer.content
    return [item["id"] for item in answer.json()["results"]]


@pytest.mark.parametrize(("kind", "field"), WRITABLE)
def test_a_field_is_created_read_patched_and_described(
    admin: ApiClient, kind: str, field: Field
) -> None:
    first, second, wrong = values_of(field)
    created = admin.post(f"/api/v1/{kind}s/", {"title": "One", field.name: first})
    assert (created.status_code, created.json()[field.name]) == (201, first)
    path = f"/api/v1/{kind}s/{created.json()['id']}/"
    assert admin.get(path).json()[field.name] == first
    assert admin.request("patch", path, {field.name: second}).status_code == 200
    uri = f"mcp://backlog/{kind}s/{created.json()['id']}"
    assert read(admin, f"{uri}/{field.name}") == second
    refused = error_of(admin.request("patch", path, {field.name: wrong}))
    assert refused["details"]["field"].partition(".")[0] == field.name
    described = read(admin, f"{uri}/schema")["properties"][field.name]
    assert described["description"] == field.description and described["writable"]


@pytest.mark.parametrize(("kind", "field"), WRITABLE)
def test_a_field_has_a_history_and_can_be_restored(
    admin: ApiClient, kind: str, field: Field
) -> None:
    first, second, _ = values_of(field)
    item = make(kind, field, first)
    body = {"uri": uri_of(item, field.name), "operation": {"type": "set", "value": second}}
    assert admin.post("/api/v1/write/", body).status_code == 200
    assert document_of(again(item))[field.name] == second
    assert admin.get(f"{path_of(item)}?version=1").json()[field.name] == first
    changes = read(admin, uri_of(item, field.name, "versions"))
    assert [change["version"] for change in changes["results"]] == [2, 1]
    body = {"uri": uri_of(item), "operation": {"type": "restore", "version": 1}}
    assert admin.post("/api/v1/write/", body).status_code == 200
    assert document_of(again(item))[field.name] == first
    assert is_replayed(item)


@pytest.mark.parametrize(("kind", "field"), WRITABLE)
def test_a_field_survives_export_and_import_as_markdown(kind: str, field: Field) -> None:
    first, *_ = values_of(field)
    item = make(kind, field, first)
    found = read_item_file(f"{kind}s/{item.ref}.md", item_markdown(item))
    assert (found.values[field.name], found.kept, found.warnings) == (first, {}, [])


@pytest.mark.parametrize(("kind", "field"), WRITABLE)
def test_a_field_is_edited_in_the_admin(kind: str, field: Field) -> None:
    form = TaskForm if kind == Kind.TASK else EpicForm
    assert form_name(field) in form.base_fields
    item = make(kind, field, values_of(field)[0])
    client = enter()
    page = client.get(url(f"{kind}_change", item.pk))
    assert form_name(field) in page.context["adminform"].form.fields
    assert f'name="{form_name(field)}"' in text_of(page)


@pytest.mark.parametrize("field", FILTERED)
def test_a_field_is_filtered(admin: ApiClient, tools: BacklogTools, field: Field) -> None:
    first, second, _ = values_of(field)
    one, other = make(Kind.TASK, field, first), make(Kind.TASK, field, second)
    name = field.filter_name or field.name
    word = first[0] if isinstance(first, list) else first
    assert one.ref in listed(admin, f"{name}={word}")
    assert other.ref not in listed(admin, f"{name}={word}")
    filters = tools.backlog_list(filter=f'{name}:"{word}"')
    assert one.ref in [item["id"] for item in filters["results"]]
    assert other.ref not in [item["id"] for item in filters["results"]]
    if field.compared == "ordered":
        above = listed(admin, f"filter={quote(f'{name}>{word}')}")
        assert other.ref in above and one.ref not in above
    if field.is_list_argument:
        arguments = checked_arguments("backlog_list", {name: word})
        found = tools.backlog_list(**arguments)["results"]
        assert one.ref in [item["id"] for item in found]
        assert other.ref not in [item["id"] for item in found]


@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize(("kind", "field"), SORTED)
def test_a_sort_pages_through_every_item_once(
    admin: ApiClient, kind: str, field: Field, order: str
) -> None:
    if field.writable:
        for value in (*values_of(field)[:2], values_of(field)[0]):
            make(kind, field, value)
    query = f"/api/v1/{kind}s/?sort={field.name}&order={order}"
    whole = [item["id"] for item in admin.get(query).json()["results"]]
    paged: list[str] = []
    cursor = ""
    while cursor is not None:
        page = admin.get(f"{query}&limit=1" + (f"&cursor={cursor}" if cursor else "")).json()
        paged += [item["id"] for item in page["results"]]
        cursor = page["next_cursor"]
    assert paged == whole and len(set(whole)) == page["total"]
    other = "desc" if order == "asc" else "asc"
    backwards = admin.get(f"/api/v1/{kind}s/?sort={field.name}&order={other}").json()["results"]
    assert [item["id"] for item in backwards] == whole[::-1]


def test_a_field_of_tasks_alone_neither_sorts_nor_filters_epics(admin: ApiClient) -> None:
    for field in OF_TASKS:
        if field.only_tasks and field.compared:
            refused = admin.get(f"/api/v1/epics/?{field.name}={values_of(field)[0]}")
            assert field.name not in error_of(refused)["details"]["allowed_values"]
        if field.only_tasks and field.sort_column:
            refused = admin.get(f"/api/v1/epics/?sort={field.name}")
            assert field.name not in error_of(refused)["details"]["allowed_values"]


@pytest.mark.parametrize("field", ARGUMENTS)
def test_a_field_is_an_argument_of_the_tools(tools: BacklogTools, field: Field) -> None:
    first, second, _ = values_of(field)
    arguments = checked_arguments("backlog_create", {"title": "One", field.name: first})
    created = tools.backlog_create(**arguments)
    assert created[field.name] == first
    sent = {"id": created["id"], field.name: second}
    tools.backlog_update(**checked_arguments("backlog_update", sent))
    task = Task.objects.get(pk=int(created["id"][5:]))
    assert document_of(task)[field.name] == second
    if field.empty is None:
        cleared = {"id": created["id"], field.name: None}
        tools.backlog_update(**checked_arguments("backlog_update", cleared))
        assert document_of(again(task))[field.name] is None
    tools.write_resource(uri_of(task, field.name), {"type": "set", "value": first})
    assert document_of(again(task))[field.name] == first
    if field.is_listed:
        found = tools.backlog_list(filter=f"id:{task.ref}")["results"]
        assert found[0][field.name] == first


@pytest.mark.parametrize("field", SINGLE)
def test_a_single_value_is_shown_and_set_in_the_viewer(alice: User, field: Field) -> None:
    first, second, wrong = values_of(field)
    task = make(Kind.TASK, field, first)
    client = signed_in(alice)
    shown = text_of(client.get(f"/t/{task.ref}/")) + text_of(client.get(f"/t/{task.ref}/edit/"))
    assert field.title.split()[0] in shown and str(first).split("*")[0] in shown
    body = {"field": field.name, "value": str(second)}
    assert client.post(f"/t/{task.ref}/set/", body).status_code == 302
    assert document_of(again(task))[field.name] == second
    assert client.post(f"/t/{task.ref}/edit/", {field.name: str(first)}).status_code == 302
    assert document_of(again(task))[field.name] == first
    if not isinstance(wrong, int):
        refused = client.post(f"/t/{task.ref}/set/", {"field": field.name, "value": wrong})
        assert refused.status_code == 400


@pytest.mark.parametrize("field", SINGLE)
def test_a_single_value_is_given_in_the_create_form(alice: User, field: Field) -> None:
    first, *_ = values_of(field)
    client = signed_in(alice)
    assert f'name="{field.name}"' in text_of(client.get("/new/"))
    body = {"title": "One", field.name: str(first)}
    assert client.post("/new/", body).status_code == 302
    assert document_of(Task.objects.order_by("-pk")[0])[field.name] == first


@pytest.mark.parametrize(("kind", "field"), OPTIONAL)
def test_a_version_older_than_the_field_has_it_empty(
    admin: ApiClient, kind: str, field: Field
) -> None:
    item = make(kind, field, field.empty)
    first = Revision.objects.get(kind=kind, object_id=item.pk)
    # As if the field had been declared later.
    first.snapshot = {name: one for name, one in first.snapshot.items() if name != field.name}
    first.save()
    body = {
        "uri": uri_of(item, field.name),
        "operation": {"type": "set", "value": values_of(field)[1]},
    }
    assert admin.post("/api/v1/write/", body).status_code == 200
    assert is_replayed(item)
    assert admin.get(f"{path_of(item)}?version=1").json()[field.name] == field.empty
    body = {"uri": uri_of(item), "operation": {"type": "restore", "version": 1}}
    assert admin.post("/api/v1/write/", body).status_code == 200
    assert document_of(again(item))[field.name] == field.empty
