"""Test every caller × every method of every route, and that no route lacks a row."""

from typing import Any

import pytest
from django.db import transaction

from resources_app.models import Change
from tests.security.callers import EVERYBODY, SOME, STRANGERS, Caller, all_callers
from tests.security.matrix import TABLE, Row, fill, rows
from tests.security.routes import EXAMPLES, routes

pytestmark = pytest.mark.django_db

ROWS = rows("routes")
# tests/security/test_pages.py
PAGES = {route for section in TABLE["pages"].values() for route in section}
# Answered by the protocol itself: an empty request is rejected alike for every caller.
PROTOCOL = {400, 401, 404}
# A redirect or a probe has no other methods, though its class names them.
ONLY_READ = {"/", "/admin", "/healthz", "/readyz"}
CHEAP_TO_TRUST = {"everybody", "signed_in"}
SAME_AS_POST = {("PUT", "/login/"), ("PUT", "/o/authorize/")}


@pytest.fixture
def callers() -> dict[str, Caller]:
    fill()
    return all_callers()


def known() -> set[tuple[str, str]]:
    return {
        (method, path.partition("?")[0]) for method, _, path in (row.partition(" ") for row in ROWS)
    }


def there() -> set[tuple[str, str]]:
    return {
        (method, route)
        for route, methods in routes().items()
        for method in methods
        if not route.startswith("/admin")
        and (method == "GET" or route not in ONLY_READ)
        and route not in PAGES
    } - SAME_AS_POST


def test_every_route_has_a_row_and_every_row_a_route() -> None:
    assert there() - known() == set(), "add these to tests/security/matrix.yaml"
    assert known() - there() == set(), "these are gone: take them out of tests/security/matrix.yaml"


def test_a_route_that_nobody_wrote_down_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    with_another = {**routes(), "/api/v1/leak/": {"GET"}}
    monkeypatch.setattr("tests.security.test_routes.routes", lambda: with_another)
    assert there() - known() == {("GET", "/api/v1/leak/")}


def ask(caller: Caller, name: str, row: Row) -> Any:
    method, _, path = name.partition(" ")
    for variable, example in EXAMPLES.items():
        path = path.replace(f"<{variable}>", row.pk if variable == "pk" else example)
    options: dict[str, Any] = {"headers": caller.headers}
    if method in {"POST", "PUT", "PATCH"}:
        options |= {"data": row.body or {}, "content_type": "application/json"}
    return getattr(caller.client, method.lower())(path, **options)


def outcome(answer: Any, changes: int) -> str:
    if answer.status_code == 401:
        return "unknown"
    if answer.status_code in (403, 404):
        return "refused" if not changes else f"refused, but {changes} changes"
    if answer.status_code >= 400:
        return f"status {answer.status_code}: {answer.content[:200]!r}"
    return "nothing" if is_empty(answer) else "done"


def is_empty(answer: Any) -> bool:
    if "json" not in answer.headers.get("Content-Type", ""):
        return False
    body = answer.json()
    return isinstance(body, dict) and body.get("results") == [] and not body.get("total")


def tried(caller: Caller, name: str, row: Row) -> str:
    with transaction.atomic():
        before = Change.objects.count()
        answer = ask(caller, name, row)
        found = outcome(answer, Change.objects.count() - before)
        transaction.set_rollback(True)
    return found


def test_everybody_gets_what_the_table_says(callers: dict[str, Caller]) -> None:
    wrong = []
    for name, row in ROWS.items():
        if row.policy in ("protocol", "page"):
            continue
        for caller in SOME if row.policy in CHEAP_TO_TRUST else EVERYBODY:
            found, expected = tried(callers[caller], name, row), row.expected(caller)
            # A caller who sees nothing is rejected or gets an empty list: neither reveals anything.
            if expected == "nothing" and found in ("nothing", "refused"):
                continue
            if found != expected:
                wrong.append(f"{name} as {caller}: {found}, expected {expected}")
    assert wrong == []


def test_endpoints_of_the_protocol_refuse_an_empty_request_of_anybody(
    callers: dict[str, Caller],
) -> None:
    for name, row in ROWS.items():
        if row.policy == "protocol":
            given = {caller: ask(callers[caller], name, row).status_code for caller in SOME}
            assert set(given.values()) <= PROTOCOL, (name, given)


def test_consent_asks_strangers_and_tokens_to_sign_in(callers: dict[str, Caller]) -> None:
    for name, row in ROWS.items():
        if row.policy == "page":
            for caller in SOME:
                answer = ask(callers[caller], name, row)
                expected = 302 if callers[caller].secret or caller in STRANGERS else 400
                assert answer.status_code == expected or (
                    expected == 400 and answer.status_code == 200
                ), (name, caller)
                assert expected != 302 or answer["Location"].startswith("/login/")


def test_the_admin_opens_to_staff_with_the_admin_role_alone(callers: dict[str, Caller]) -> None:
    from tests.factories import make_user
    from tests.resources_app.admin_client import staff

    clerk = Caller("staff without the role", staff(make_user("clerk", "contributor")))
    admin = Caller("admin", staff(make_user("chief", "admin")))
    pages = [route for route in routes() if route.startswith("/admin/") and "/log" not in route]
    assert len(pages) > 60
    for page in pages:
        path = page.replace("<id>", "1")
        for variable, example in EXAMPLES.items():
            path = path.replace(f"<{variable}>", example)
        for name in ("anonymous", "admin_token"):
            answer = callers[name].client.get(path, headers=callers[name].headers)
            assert answer.status_code in (302, 404, 405), (path, name, answer.status_code)
            assert answer.status_code != 302 or "/admin/login/" in answer["Location"], (path, name)
        for name in ("contributor_session", "admin_session"):
            answer = callers[name].client.get(path, headers=callers[name].headers)
            assert answer.status_code in (403, 404, 405), (path, name, answer.status_code)
    assert admin.client.get("/admin/resources_app/change/").status_code == 200
    for page in ("change", "apitoken", "task"):
        assert clerk.client.get(f"/admin/resources_app/{page}/").status_code == 403
