"""Test objects restricted to a group: for other users every entry point answers as if they did not
exist.

TASK-0003 and what `hide` adds is for the group security; the second name of each pair does not
exist.
"""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User

from backlog_site.mcp.context import acting_as
from backlog_site.mcp.tools import BacklogTools
from resources_app.errors import BacklogError
from resources_app.identity.roles import Actor
from resources_app.reading import catalogue
from resources_app.reading.by_address import read
from resources_app.reading.patterns import Entry
from resources_app.reading.registry import REGISTRY
from resources_app.writing import stored_files, write_path
from resources_app.writing.write_path import write
from search_app.search import search_unified
from tests.api.clients import ApiClient
from tests.factories import as_actor, make_epic, make_task, make_user
from tests.security.matrix import fill
from tests.viewer.browsing import signed_in

pytestmark = pytest.mark.django_db

TASK, EPIC = ("TASK-0003", "TASK-0909"), ("EPIC-0003", "EPIC-0909")
ARCHIVED_TASK, ARCHIVED_EPIC = ("TASK-0005", "TASK-0909"), ("EPIC-0004", "EPIC-0909")
ARCHIVED_FILE = ("docs/hidden-old.md", "docs/absent-old.md")
FILE, FOLDER, COMMENT = ("docs/hidden.md", "docs/absent.md"), ("closed", "absent"), ("4", "909")
PAIRS = (TASK, EPIC, ARCHIVED_TASK, ARCHIVED_EPIC)
SECRET = "Walrus"


@pytest.fixture
def alice(db: None) -> User:
    """Return a user who may write and is not in the group."""
    fill()
    insider = as_actor(make_user("insider", "contributor", "security"))
    hide(insider)
    return User.objects.get(username="alice")


def hide(insider: Actor) -> None:
    limited = {"groups": ["security"], "actor": insider}
    make_epic(title=f"{SECRET} epic", evidence=["e"], **limited)
    make_epic(title=f"{SECRET} archived epic", evidence=["e"], **limited)
    make_task(title=f"{SECRET} archived", evidence=["e"], **limited)
    assert write_path.add_comment(
        insider, f"mcp://backlog/tasks/{TASK[0]}", f"{SECRET} said"
    ).pk == int(COMMENT[0])
    for uri in (
        f"mcp://backlog/tasks/{ARCHIVED_TASK[0]}",
        f"mcp://backlog/epics/{ARCHIVED_EPIC[0]}",
    ):
        write_path.archive(insider, uri)
    for area in ("resources", "artifacts"):
        for path in (FILE[0], f"{FOLDER[0]}/a.md", ARCHIVED_FILE[0]):
            stored_files.create_resource(
                insider, f"{area}/{path}", f"# {SECRET}\n", groups=["security"]
            )
        stored_files.remove(insider, f"{area}/{ARCHIVED_FILE[0]}")


def addresses(entry: Entry) -> list[tuple[str, str]]:
    """Return a hidden and a missing address of the pattern, for each kind of object it has."""
    fits = {
        "mcp://backlog/tasks/{id}": [("id", TASK)],
        "mcp://backlog/epics/{id}": [("id", EPIC)],
        "mcp://backlog/archive/{id}": [
            ("id", ARCHIVED_TASK),
            ("id", ARCHIVED_EPIC),
            ("id", TASK),
            ("id", EPIC),
        ],
        "mcp://backlog/archive/resources/{path}": [("path", ARCHIVED_FILE), ("path", FILE)],
        "mcp://backlog/archive/artifacts/{path}": [("path", ARCHIVED_FILE), ("path", FILE)],
        "mcp://backlog/comments/{number}": [("number", COMMENT)],
        "mcp://backlog/resources/{path}": [("path", FILE), ("path", FOLDER)],
        "mcp://backlog/artifacts/{path}": [("path", FILE), ("path", FOLDER)],
    }
    found = next((pairs for start, pairs in fits.items() if entry.pattern.startswith(start)), [])
    pattern = entry.pattern.replace("{field}", "evidence").replace("{index}", "0")
    whole = [tuple(pattern.replace(f"{{{name}}}", one) for one in pair) for name, pair in found]
    return whole + [(f"{hidden}@v1", f"{absent}@v1") for hidden, absent in whole if entry.versioned]


ADDRESSES = [pair for entry in REGISTRY for pair in addresses(entry)]


def answer_of(ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except BacklogError as error:
        return error.as_json()


def levelled(answer: Any) -> str:
    """Replace hidden names with missing ones, and remove what differs between any two responses."""
    text = str(answer)
    for hidden, absent in (*PAIRS, ARCHIVED_FILE, FILE, FOLDER):
        text = text.replace(hidden, absent)
    return re.sub(r"comment(s/| )4\b", r"comment\g<1>909", text)


def same(hidden: Any, absent: Any) -> bool:
    assert SECRET not in str(hidden)
    return levelled(hidden) == levelled(absent)


def test_there_are_addresses_of_every_kind() -> None:
    assert len(ADDRESSES) >= 60


def test_every_address_reads_as_if_it_were_not_there(alice: User) -> None:
    actor = as_actor(alice)
    wrong = [
        hidden
        for hidden, absent in ADDRESSES
        if not same(answer_of(lambda: read(actor, hidden)), answer_of(lambda: read(actor, absent)))  # noqa: B023
    ]
    assert wrong == []


@pytest.mark.parametrize(
    "operation",
    [
        {"type": "set", "value": "x"},
        {"type": "restore", "version": 1},
        {"type": "append", "content": "x"},
    ],
    ids=lambda operation: operation["type"],
)
def test_no_address_is_written_or_restored(alice: User, operation: dict[str, Any]) -> None:
    actor = as_actor(alice)
    for hidden, absent in ADDRESSES:
        first, second = (
            answer_of(lambda uri=uri: write(actor, uri, operation, "x")) for uri in (hidden, absent)
        )
        assert "code" in first and same(first, second), hidden


@pytest.mark.parametrize(
    ("method", "path", "body", "pairs"),
    [
        ("get", "/api/v1/{kind}s/{}/", None, PAIRS),
        ("patch", "/api/v1/{kind}s/{}/", {"title": "T"}, PAIRS),
        ("delete", "/api/v1/{kind}s/{}/", None, PAIRS),
        ("get", "/api/v1/{kind}s/{}/comments/", None, PAIRS),
        ("post", "/api/v1/{kind}s/{}/comments/", {"body": "C"}, PAIRS),
        ("post", "/api/v1/{kind}s/{}/unarchive/", {}, PAIRS),
        ("get", "/api/v1/epics/{}/tasks/", None, (EPIC, ARCHIVED_EPIC)),
        ("get", "/api/v1/comments/{}/", None, (COMMENT,)),
        ("patch", "/api/v1/comments/{}/", {"body": "C"}, (COMMENT,)),
        ("delete", "/api/v1/comments/{}/", None, (COMMENT,)),
        ("post", "/api/v1/comments/", {"item_id": "{}", "body": "C"}, PAIRS),
        ("get", "/api/v1/comments/?item={}", None, PAIRS),
        ("get", "/api/v1/resources/{}", None, (FILE, FOLDER)),
        ("patch", "/api/v1/artifacts/{}", {"title": "T"}, (FILE,)),
        ("delete", "/api/v1/resources/{}", None, (FILE,)),
        ("get", "/api/v1/context/?id={}", None, PAIRS),
        ("get", "/api/v1/versions/?uri=mcp://backlog/{kind}s/{}", None, PAIRS),
        ("get", "/api/v1/versions/?uri=mcp://backlog/resources/{}", None, (FILE,)),
        ("get", "/mcp/resource?uri=mcp://backlog/{kind}s/{}", None, PAIRS),
        ("post", "/api/v1/tasks/", {"title": "T", "epic_id": "{}"}, (EPIC, ARCHIVED_EPIC)),
        ("post", "/api/v1/tasks/", {"title": "T", "depends_on": ["{}"]}, (TASK, ARCHIVED_TASK)),
        ("get", "/api/v1/tasks/?epic_id={}", None, (EPIC, ARCHIVED_EPIC)),
        ("get", "/api/v1/search/?q=task&parent_id={}", None, (EPIC, ARCHIVED_EPIC)),
    ],
)
def test_rest_answers_as_if_it_were_not_there(
    alice: User, method: str, path: str, body: Any, pairs: tuple[tuple[str, str], ...]
) -> None:
    client = ApiClient(alice)
    for pair in pairs:
        kind = "epic" if pair[0].startswith("EPIC") else "task"
        answers = []
        for name in pair:
            filled = None if body is None else with_name(body, name)
            answers.append(
                client.request(method, path.replace("{kind}", kind).replace("{}", name), filled)
            )
        assert answers[0].status_code == answers[1].status_code, (path, pair)
        assert same(answers[0].content.decode(), answers[1].content.decode()), (path, pair)


def with_name(body: Any, name: str) -> Any:
    if isinstance(body, dict):
        return {key: with_name(value, name) for key, value in body.items()}
    return (
        [with_name(value, name) for value in body]
        if isinstance(body, list)
        else body.replace("{}", name)
    )


# Backlinks are shown for any name: here there are none.
EMPTY = "/t/{}/links/"


@pytest.mark.parametrize("path", ["/t/{}/", "/t/{}/edit/", "/t/{}/history/", "/hover/{}/", EMPTY])
def test_pages_answer_as_if_it_were_not_there(alice: User, path: str) -> None:
    browser = signed_in(alice)
    for pair in PAIRS:
        hidden, absent = (browser.get(path.replace("{}", name)) for name in pair)
        assert hidden.status_code == absent.status_code == (200 if path == EMPTY else 404), (
            path,
            pair,
        )
        assert SECRET not in hidden.content.decode()
        assert path != EMPTY or hidden.content == absent.content


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("backlog_get", {"id": "{}"}),
        ("backlog_get", {"id": ["{}", "TASK-0001"]}),
        ("backlog_context", {"id": "{}"}),
        ("backlog_update", {"id": "{}", "title": "T"}),
        ("backlog_delete", {"id": "{}"}),
        ("backlog_create", {"title": "T", "parent_id": "{}"}),
        ("backlog_list", {"epic_id": "{}"}),
        ("get_resource", {"uri": "mcp://backlog/archive/{}"}),
    ],
)
def test_tools_answer_as_if_it_were_not_there(
    alice: User, tool: str, arguments: dict[str, Any]
) -> None:
    for pair in PAIRS:
        answers = []
        for name in pair:
            with acting_as(as_actor(alice, via="mcp")):
                given = with_name(arguments, name)
                answers.append(
                    answer_of(lambda given=given: getattr(BacklogTools(), tool)(**given))
                )
        first, second = (re.sub(r"'timestamp': '[^']*'", "", str(answer)) for answer in answers)
        assert same(first, second), (tool, pair)


def test_no_list_count_completion_or_search_tells_of_it(alice: User) -> None:
    actor, insider = as_actor(alice), as_actor(User.objects.get(username="insider"))
    lists = [
        *(
            "tasks",
            "epics",
            "comments",
            "archive",
            "archive?type=epic",
            "archive/resources",
            "archive/artifacts",
            "changes",
            "resources",
            "artifacts",
        ),
        *(
            "resources/docs",
            "tasks?aggregate=count&group_by=status",
            "epics?aggregate=count&group_by=status",
        ),
    ]
    for name in lists:
        mine, theirs = (
            str(read(one, f"mcp://backlog/{name}").contents) for one in (actor, insider)
        )
        assert SECRET not in mine and "First secret" not in mine, name
        assert mine != theirs, f"{name} has nothing hidden in it"
    for entry in REGISTRY:
        for variable in re.findall(r"{(\w+)}", entry.pattern):
            offered = str(catalogue.complete(actor, variable, "", entry.pattern))
            hidden = (*PAIRS, ARCHIVED_FILE, FILE, FOLDER)
            assert not [name for name, _ in hidden if name in offered], entry.pattern
    assert search_unified(alice, SECRET)["total"] == 0
    assert search_unified(insider.user, SECRET)["total"] >= 4
    assert SECRET not in str(catalogue.list_catalogue(actor, None))


def test_without_a_role_nothing_is_listed_counted_completed_or_found(
    alice: User, mallory: User
) -> None:
    nobody = as_actor(mallory)
    for entry in REGISTRY:
        if not entry.is_template and not entry.is_public:
            shown = answer_of(lambda entry=entry: read(nobody, entry.pattern).contents)
            assert "code" in shown or (shown["results"], shown.get("total", 0)) == ([], 0), (
                entry.pattern
            )
        for variable in re.findall(r"{(\w+)}", entry.pattern):
            assert catalogue.complete(nobody, variable, "", entry.pattern) == []
    for kind in ("tasks", "epics"):
        counted = answer_of(
            lambda kind=kind: read(nobody, f"mcp://backlog/{kind}?aggregate=count&group_by=status")
        )
        assert counted["code"] == "not_found"
    assert search_unified(mallory, "first")["total"] == 0
    assert {row["uri"] for row in catalogue.list_catalogue(nobody, None)[0]} == {"auth://status"}


@pytest.mark.parametrize("archived", [False, True])
def test_storing_at_a_hidden_path_says_nothing_of_what_is_there(
    alice: User, archived: bool
) -> None:
    insider = as_actor(User.objects.get(username="insider"))
    if archived:
        stored_files.remove(insider, f"resources/{FILE[0]}")
    client = ApiClient(alice)
    put = {"data": b"x", "content_type": "text/markdown", "headers": client._headers}
    places = [FILE[0], f"{FILE[0]}/below.md", FOLDER[0]] if not archived else [FILE[0]]
    for place in places:
        answers = [
            client._client.put(f"/api/v1/resources/{place}", **put),
            client.post("/api/v1/resources/", {"path": place, "content": "x"}),
        ]
        stored_files.create_resource(as_actor(alice), f"resources/mine-{len(place)}.md", "x")
        answers.append(client.patch(f"/api/v1/resources/mine-{len(place)}.md", {"path": place}))
        assert [answer.status_code for answer in answers] == [403] * 3, place
        messages = {answer.json()["error"]["message"] for answer in answers}
        assert messages == {f"You cannot store a file at resources/{place}."}
        assert not any("current" in answer.content.decode() for answer in answers)
    tagged = client._client.put(
        f"/api/v1/resources/{FILE[0]}", **put | {"headers": put["headers"] | {"If-Match": '"x"'}}
    )
    absent = client._client.put(
        f"/api/v1/resources/{FILE[1]}", **put | {"headers": put["headers"] | {"If-Match": '"x"'}}
    )
    assert tagged.status_code == absent.status_code == 404 and same(
        tagged.content.decode(), absent.content.decode()
    )
