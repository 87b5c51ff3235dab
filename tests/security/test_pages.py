"""Test the viewer's pages × callers: only sessions open them, a role is needed, readers change
nothing, forms need a token.
"""

from typing import Any

import pytest
from django.db import transaction
from django.test import Client

from resources_app.models import Change
from tests.security.callers import Caller, all_callers
from tests.security.matrix import TABLE, fill
from tests.security.routes import EXAMPLES, routes

pytestmark = pytest.mark.django_db

READS = TABLE["pages"]["reads"]
WRITES = {route: body for route, body in TABLE["pages"]["writes"].items() if body is not None}
POSTS = [*TABLE["pages"]["writes"], *TABLE["pages"]["others"]]
# Without a query, or a connection to IntelligenceBank, they have nothing to show.
WANT_MORE = {"/more/", "/ib/", "/ib/<client_id>/<folder_id>/", "/t/<ref>/pick/"}
WITHOUT_SESSION = ("anonymous", "nonsense_token", "viewer_token", "admin_token", "admin_oauth")


@pytest.fixture
def callers() -> dict[str, Caller]:
    fill()
    return all_callers()


def address(route: str) -> str:
    for variable, example in EXAMPLES.items():
        route = route.replace(
            f"<{variable}>", f"resources/{example}" if variable == "path" else example
        )
    return f"{route}?uri=mcp://backlog/tasks/TASK-0001" if route in ("/open/", "/raw/") else route


def request(caller: Caller, method: str, route: str, body: Any = None) -> tuple[Any, int]:
    """Return the response, and the number of changes it made."""
    with transaction.atomic():
        before = Change.objects.count()
        answer = getattr(caller.client, method)(address(route), body or {}, headers=caller.headers)
        made = Change.objects.count() - before
        transaction.set_rollback(True)
    return answer, made


def test_the_pages_are_there() -> None:
    assert {*READS, *POSTS} <= set(routes())


@pytest.mark.parametrize("name", WITHOUT_SESSION)
def test_without_a_session_every_page_leads_to_the_login(
    callers: dict[str, Caller], name: str
) -> None:
    for method, listed in (("get", READS), ("post", POSTS)):
        for route in listed:
            answer, made = request(callers[name], method, route, WRITES.get(route))
            assert made == 0 and answer.status_code in (302, 204), (
                method,
                route,
                answer.status_code,
            )
            assert route == "/logout/" or answer["Location"].startswith("/login/"), route


def test_without_a_role_a_session_shows_nothing(callers: dict[str, Caller]) -> None:
    for method, listed in (("get", READS), ("post", POSTS)):
        for route in set(listed) - {"/logout/", "/profile/password/"}:
            answer, made = request(callers["no_role_session"], method, route, WRITES.get(route))
            assert made == 0 and answer.status_code == 403, (method, route, answer.status_code)
            assert b"First" not in answer.content


def test_a_reader_opens_every_page_and_changes_nothing(callers: dict[str, Caller]) -> None:
    for route in READS:
        answer, _ = request(callers["viewer_session"], "get", route)
        assert answer.status_code in (200, 302) or route in WANT_MORE, (route, answer.status_code)
        assert b"First secret" not in answer.content, route
    for route, body in WRITES.items():
        answer, made = request(callers["viewer_session"], "post", route, body)
        assert made == 0 and answer.status_code in (403, 404), (route, answer.status_code)


def test_a_writer_changes_what_the_form_says(callers: dict[str, Caller]) -> None:
    for route, body in WRITES.items():
        answer, made = request(callers["contributor_session"], "post", route, body)
        assert made == 1, (route, answer.status_code, answer.content[:300])


def test_a_form_without_its_token_is_refused(callers: dict[str, Caller]) -> None:
    forger = Client(enforce_csrf_checks=True)
    forger.force_login(callers["admin_session"].user)
    for route in POSTS:
        assert forger.post(address(route), WRITES.get(route) or {}).status_code == 403, route


def test_pages_of_hidden_things_are_not_found(callers: dict[str, Caller]) -> None:
    client = callers["contributor_session"].client
    for route in READS:
        if "<ref>" in route:
            hidden, absent = (
                client.get(route.replace("<ref>", ref)) for ref in ("TASK-0003", "TASK-0009")
            )
            assert hidden.status_code == absent.status_code, route
            assert b"First secret" not in hidden.content


@pytest.mark.parametrize(
    "uri", ["mcp://backlog/tasks/TASK-0001", "mcp://backlog/resources/docs/a.md", "auth://status"]
)
def test_only_assets_are_attached(callers: dict[str, Caller], uri: str) -> None:
    answer, made = request(callers["contributor_session"], "post", "/t/<ref>/attach/", {"uri": uri})
    assert (answer.status_code, made) == (400, 0)
