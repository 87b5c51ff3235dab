"""Test that ids of hidden tasks and epics are masked at every entry point, and survive being
written back.
"""

from typing import Any

import pytest
from django.contrib.auth.models import User

from backlog_site.mcp.context import acting_as
from backlog_site.mcp.tools import BacklogTools
from resources_app.errors import BacklogError
from resources_app.identity.roles import Actor
from resources_app.models import Change, Task
from resources_app.reading import watching
from resources_app.reading.by_address import read
from resources_app.writing import undo, write_path
from resources_app.writing.batches import write_batch
from search_app.search import search_unified
from tests.api.clients import ApiClient, error_of
from tests.factories import as_actor, make_epic, make_task, make_user
from tests.viewer.browsing import signed_in

pytestmark = pytest.mark.django_db

HIDDEN = "hidden"


class World:
    """Create an unrestricted task in a hidden epic that depends on a hidden task and on a visible
    one.
    """

    def __init__(self) -> None:
        self.insider: Actor = as_actor(make_user("insider", "contributor", "security"))
        # Forms give TASK-0001 and EPIC-0001 as examples.
        make_task(title="First")
        make_epic(title="First")
        limited = {"groups": ["security"], "actor": self.insider}
        self.epic = make_epic(title="Walrus epic", **limited).ref
        self.secret = make_task(title="Walrus", **limited).ref
        self.plain = make_task(title="Plain", actor=self.insider).ref
        self.task = make_task(
            title="Visible",
            actor=self.insider,
            epic_id=self.epic,
            depends_on=[self.secret, self.plain],
        ).ref
        self.uri = f"mcp://backlog/tasks/{self.task}"
        # The history names them too, in operations and in old and new values.
        self.set("depends_on", [self.plain])
        self.set("depends_on", [self.secret, self.plain])
        self.set("epic_id", None)
        self.set("epic_id", self.epic)

    def set(self, field: str, value: Any) -> None:
        write_path.write(self.insider, f"{self.uri}/{field}", {"type": "set", "value": value})

    def depends_on(self) -> list[str]:
        return list(Task.objects.get(title="Visible").depends_on)

    def told_by(self, text: Any) -> list[str]:
        return [ref for ref in (self.epic, self.secret) if ref in str(text)]


@pytest.fixture
def world(db: None) -> World:
    return World()


ADDRESSES = [
    *(
        "",
        "/depends_on",
        "/depends_on/0",
        "/epic_id",
        "/file",
        "/metadata",
        "@v1",
        "@v3",
        "/file@v1",
        "/metadata@v1",
    ),
    *("/depends_on@v1", "/epic_id@v1", "/versions", "/depends_on/versions", "/epic_id/versions"),
]
LISTS = [
    "tasks",
    "tasks?aggregate=count&group_by=epic_id",
    "changes",
    "context/{}",
    "context/{}?max_tokens=20000",
]


@pytest.mark.parametrize("name", ["alice", "bob"])
def test_every_address_hides_them_from_those_who_cannot_see_them(
    world: World, name: str, alice: User, bob: User
) -> None:
    user = {"alice": alice, "bob": bob}[name]
    for uri in (
        *(f"{world.uri}{part}" for part in ADDRESSES),
        *(f"mcp://backlog/{one}" for one in LISTS),
    ):
        uri = uri.replace("{}", world.task)
        assert not world.told_by(read(as_actor(user), uri).contents), uri
        assert world.told_by(read(world.insider, uri).contents), (
            f"{uri} names nothing hidden at all"
        )


def test_the_shapes_stay_and_say_hidden(world: World, alice: User) -> None:
    shown = ApiClient(alice).get(f"/api/v1/tasks/{world.task}/").json()
    assert (shown["depends_on"], shown["epic_id"], shown["parent_id"]) == (
        [HIDDEN, world.plain],
        HIDDEN,
        HIDDEN,
    )
    groups = read(as_actor(alice), "mcp://backlog/tasks?aggregate=count&group_by=epic_id").contents
    assert groups == {HIDDEN: 1, "": 2}


def test_admins_see_them_and_without_a_role_nothing_is_seen(
    world: World, carol: User, mallory: User
) -> None:
    shown = ApiClient(carol).get(f"/api/v1/tasks/{world.task}/").json()
    assert (shown["depends_on"], shown["epic_id"]) == ([world.secret, world.plain], world.epic)
    assert ApiClient(mallory).get(f"/api/v1/tasks/{world.task}/").status_code == 404


@pytest.mark.parametrize("name", ["alice", "bob"])
@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/tasks/{}/",
        "/api/v1/tasks/",
        "/api/v1/tasks/?aggregate=count&group_by=epic_id",
        "/api/v1/context/?id={}",
        "/api/v1/versions/?uri=mcp://backlog/tasks/{}",
        "/api/v1/changes/",
        "/api/v1/search/?q=visible",
        "/mcp/resource?uri=mcp://backlog/tasks/{}",
        "/mcp/resource?uri=mcp://backlog/tasks/{}/file",
    ],
)
def test_rest_hides_them(world: World, name: str, path: str, alice: User, bob: User) -> None:
    answer = ApiClient({"alice": alice, "bob": bob}[name]).get(path.replace("{}", world.task))
    assert answer.status_code == 200 and not world.told_by(answer.content.decode())


@pytest.mark.parametrize(
    "path", ["/t/{}/", "/t/{}/edit/", "/t/{}/history/", "/hover/{}/", "/", "/list/?group=epic_id"]
)
def test_pages_hide_them(world: World, path: str, alice: User) -> None:
    answer = signed_in(alice).get(path.replace("{}", world.task))
    assert answer.status_code == 200 and not world.told_by(answer.content.decode())


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("backlog_get", {"id": "{}"}),
        ("backlog_context", {"id": "{}"}),
        ("backlog_list", {}),
        ("backlog_search", {"query": "visible"}),
        ("backlog_update", {"id": "{}", "title": "Visible still"}),
        ("get_resource", {"uri": "mcp://backlog/tasks/{}/versions"}),
    ],
)
def test_tools_hide_them(world: World, tool: str, arguments: dict[str, Any], alice: User) -> None:
    given = {name: value.replace("{}", world.task) for name, value in arguments.items()}
    with acting_as(as_actor(alice, via="mcp")):
        assert not world.told_by(getattr(BacklogTools(), tool)(**given))


def test_notices_and_search_results_hide_them(world: World, alice: User) -> None:
    change = Change.objects.filter(ref=world.task).order_by("-version").first()
    assert change and not world.told_by(watching.describe(change, world.uri))
    [hit] = [hit for hit in search_unified(alice, "visible")["results"] if hit["id"] == world.task]
    assert hit["parent_id"] == HIDDEN


@pytest.mark.parametrize(
    "path", ["tasks/?epic_id={}", "tasks/?filter=epic_id:{}", "search/?q=visible&parent_id={}"]
)
def test_a_hidden_epic_filters_as_one_that_does_not_exist(
    world: World, path: str, alice: User
) -> None:
    client = ApiClient(alice)
    hidden, absent = (
        client.get(f"/api/v1/{path.replace('{}', ref)}") for ref in (world.epic, "EPIC-0909")
    )
    assert hidden.status_code == absent.status_code
    assert hidden.content.decode().replace(world.epic, "EPIC-0909") == absent.content.decode()


@pytest.mark.parametrize(
    "operation",
    [
        {"type": "set", "field": "title", "value": "T"},
        {"type": "set", "field": "depends_on", "value": [HIDDEN]},
        {"type": "merge", "value": {"epic_id": None}},
        {"type": "restore", "version": 2},
    ],
)
def test_dry_runs_diffs_and_conflicts_hide_them(
    world: World, operation: dict[str, Any], alice: User
) -> None:
    actor = as_actor(alice)
    entry = {"uri": world.uri, "operation": operation}
    assert not world.told_by(write_batch(actor, [entry], dry_run=True))
    with pytest.raises(BacklogError) as caught:
        write_path.write(actor, world.uri, operation, f"{world.task}.1")
    assert not world.told_by(caught.value.as_json())


def test_a_list_that_is_written_back_keeps_them(world: World, alice: User) -> None:
    client, path = ApiClient(alice), f"/api/v1/tasks/{world.task}/"
    other = make_task(title="Other").ref
    shown = client.get(path).json()
    sent = {name: shown[name] for name in ("depends_on", "epic_id", "title")}
    answer = client.patch(path, sent | {"depends_on": [*shown["depends_on"], other]})
    assert answer.status_code == 200 and not world.told_by(answer.content.decode())
    assert world.depends_on() == [world.secret, world.plain, other]
    assert Task.objects.get(title="Visible").epic.ref == world.epic


@pytest.mark.parametrize(
    ("operation", "left"),
    [
        ({"type": "array_remove", "index": 1}, ["secret"]),
        ({"type": "array_remove", "index": 0}, ["plain"]),
        ({"type": "array_remove", "value": HIDDEN}, ["plain"]),
        ({"type": "set", "value": []}, []),
    ],
    ids=str,
)
def test_one_is_removed_only_by_who_says_so(
    world: World, operation: Any, left: list[str], alice: User
) -> None:
    write_path.write(as_actor(alice), f"{world.uri}/depends_on", operation)
    assert world.depends_on() == [getattr(world, name) for name in left]


def test_one_cannot_be_guessed(world: World, alice: User) -> None:
    actor = as_actor(alice)
    answers = []
    for ref in (world.secret, "TASK-0909"):
        with pytest.raises(BacklogError) as caught:
            write_path.write(
                actor, f"{world.uri}/depends_on", {"type": "array_remove", "value": ref}
            )
        answers.append(str(caught.value.as_json()).replace(ref, "?"))
    assert answers[0] == answers[1]


def test_the_marker_names_nothing_by_itself(world: World, alice: User) -> None:
    client = ApiClient(alice)
    for body in ({"depends_on": [HIDDEN, HIDDEN]}, {"depends_on": [HIDDEN] * 3}):
        assert (
            error_of(client.patch(f"/api/v1/tasks/{world.task}/", body))["code"]
            == "validation_failed"
        )
    for body in ({"depends_on": [HIDDEN]}, {"epic_id": HIDDEN}):
        assert (
            error_of(client.patch(f"/api/v1/tasks/{world.plain}/", body))["code"]
            == "validation_failed"
        )
        assert (
            error_of(client.post("/api/v1/tasks/", body | {"title": "T"}))["code"]
            == "validation_failed"
        )


def test_undoing_what_named_them_tells_nothing(world: World, alice: User) -> None:
    removed = {
        "uri": f"{world.uri}/depends_on",
        "operation": {"type": "set", "value": [world.plain]},
    }
    batch = write_batch(world.insider, [removed])["batch"]
    with pytest.raises(BacklogError) as caught:
        undo.undo_batch(as_actor(alice), batch)
    assert not world.told_by(caught.value.as_json())


def test_a_page_of_a_list_costs_one_query_more(
    world: World, alice: User, django_assert_max_num_queries: Any
) -> None:
    actor = as_actor(alice)
    for number in range(5):
        make_task(
            title=f"T{number}", actor=world.insider, epic_id=world.epic, depends_on=[world.secret]
        )
    read(actor, "mcp://backlog/tasks?search=none")
    with django_assert_max_num_queries(10) as few:
        read(actor, "mcp://backlog/tasks?limit=1")
    with django_assert_max_num_queries(len(few)):
        assert len(read(actor, "mcp://backlog/tasks?limit=6").contents["results"]) == 6
