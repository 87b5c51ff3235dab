"""Test If-Match, If-None-Match and the body's etag on every route that writes: RFC 9110, and none
is ignored.
"""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User

from resources_app.errors import ValidationFailed
from resources_app.history.documents import uri_of
from resources_app.history.preconditions import parse_tags
from resources_app.models import Change
from resources_app.writing import stored_files, write_path
from tests.api.clients import ApiClient, error_of
from tests.api.test_files import put
from tests.factories import as_actor, make_task

TASK = "/api/v1/tasks/TASK-0001/"
FILE = "/api/v1/resources/a.md"
URI = "mcp://backlog/tasks/TASK-0001/description"
Send = Callable[[ApiClient, dict[str, str]], Any]

# Each route that writes to an existing object, and where its ETag is read.
ROUTES: dict[str, tuple[str, Send]] = {
    "patch a task": (
        TASK,
        lambda client, headers: client.patch(TASK, {"status": "done"}, **headers),
    ),
    "archive a task": (TASK, lambda client, headers: client.delete(TASK, **headers)),
    "delete a task": (
        TASK,
        lambda client, headers: client.delete(f"{TASK}?permanent=true", **headers),
    ),
    "unarchive a task": (
        TASK,
        lambda client, headers: client.post(f"{TASK}unarchive/", {}, **headers),
    ),
    "patch a comment": (
        "/api/v1/comments/{comment}/",
        lambda client, headers: client.patch(client.comment, {"body": "other"}, **headers),
    ),
    "archive a comment": (
        "/api/v1/comments/{comment}/",
        lambda client, headers: client.delete(client.comment, **headers),
    ),
    "put a file": (
        FILE,
        lambda client, headers: put(client, FILE, b"other", "text/markdown", **headers),
    ),
    "patch a file": (FILE, lambda client, headers: client.patch(FILE, {"title": "T"}, **headers)),
    "move a file": (FILE, lambda client, headers: client.patch(FILE, {"path": "b.md"}, **headers)),
    "archive a file": (FILE, lambda client, headers: client.delete(FILE, **headers)),
    "write": (
        f"/api/v1/resource/?uri={URI}",
        lambda client, headers: client.post("/api/v1/write/", append(), **headers),
    ),
}


def append(**more: Any) -> dict[str, Any]:
    return {"uri": URI, "operation": {"type": "append", "content": "+"}, **more}


@pytest.fixture
def client(carol: User) -> ApiClient:
    actor = as_actor(carol)
    task = make_task(actor=actor)
    comment = write_path.add_comment(actor, uri_of(task), "said")
    stored_files.create_resource(actor, "resources/a.md", "text")
    client = ApiClient(carol)
    client.comment = f"/api/v1/comments/{comment.pk}/"  # type: ignore[attr-defined]
    return client


def etag_of(client: ApiClient, path: str) -> str:
    return str(client.get(path.format(comment=client.comment.split("/")[-2]))["ETag"])  # type: ignore[attr-defined]


def refuses(client: ApiClient, send: Send, headers: dict[str, str]) -> None:
    before = Change.objects.count()
    answer = send(client, headers)
    assert (answer.status_code, error_of(answer)["code"]) == (409, "conflict"), answer.content
    assert error_of(answer)["details"]["current_etag"]
    assert Change.objects.count() == before, "nothing was written"


@pytest.mark.parametrize("route", ROUTES)
def test_a_failed_precondition_writes_nothing(client: ApiClient, route: str) -> None:
    path, send = ROUTES[route]
    etag = etag_of(client, path)
    for headers in (
        {"If_Match": '"other"'},
        {"If_Match": '"other", "another"'},
        {"If_Match": f"W/{etag}"},
        {"If_None_Match": "*"},
        {"If_None_Match": etag},
        {"If_None_Match": f'"other", W/{etag}'},
        {"If_Match": etag, "If_None_Match": "*"},
        {"If_Unmodified_Since": "Sat, 01 Jan 2000 00:00:00 GMT"},
    ):
        refuses(client, send, headers)
    for headers in (
        {"If_Match": '"a" "b"'},
        {"If_None_Match": '*, "a"'},
        {"If_Unmodified_Since": "yesterday"},
    ):
        answer = send(client, headers)
        assert (answer.status_code, error_of(answer)["code"]) == (400, "validation_failed")


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("form", ["{}", '"zz", {}', '{} ,"zz",', "*"])
def test_a_precondition_that_holds_lets_the_write_through(
    client: ApiClient, route: str, form: str
) -> None:
    path, send = ROUTES[route]
    headers = {"If_Match": form.format(etag_of(client, path)), "If_None_Match": '"other"'}
    answer = send(client, headers | {"If_Unmodified_Since": "Sat, 01 Jan 2000 00:00:00 GMT"})
    assert answer.status_code in {200, 204}, answer.content


def test_header_and_body_must_both_hold(client: ApiClient) -> None:
    etag = etag_of(client, f"/api/v1/resource/?uri={URI}")
    body = etag.strip('"')
    assert client.post("/api/v1/write/", append(etag=body), If_Match='"other"').status_code == 409
    assert client.post("/api/v1/write/", append(etag="other"), If_Match=etag).status_code == 409
    assert (
        client.post(
            "/api/v1/write/", append(etag=body), If_Match="*", If_None_Match="*"
        ).status_code
        == 409
    )
    assert (
        client.post(
            "/api/v1/write/", append(etag=body, dry_run=True), If_None_Match="*"
        ).status_code
        == 409
    )
    assert client.get(f"/api/v1/resource/?uri={URI}").json()["contents"] == ""
    assert client.post("/api/v1/write/", append(etag=body), If_Match=etag).status_code == 200


def test_a_repeat_under_another_precondition_is_another_request(client: ApiClient) -> None:
    first = client.post("/api/v1/write/", append(), Idempotency_Key="k")
    etag = first["ETag"]
    assert client.post("/api/v1/write/", append(), Idempotency_Key="k").json() == first.json()
    other = client.post("/api/v1/write/", append(), Idempotency_Key="k", If_Match=etag)
    assert (other.status_code, error_of(other)["details"]["field"]) == (400, "idempotency_key")
    differing = client.post("/api/v1/write/", append(idempotency_key="a"), Idempotency_Key="b")
    assert (differing.status_code, error_of(differing)["details"]["field"]) == (
        400,
        "idempotency_key",
    )


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/v1/tasks/", {"title": "New"}),
        ("/api/v1/epics/", {"title": "New"}),
        (f"{TASK}comments/", {"body": "New"}),
        ("/api/v1/comments/", {"item_id": "TASK-0001", "body": "New"}),
        ("/api/v1/resources/", {"path": "new.md", "content": "New"}),
        ("/api/v1/write_batch/", {"operations": [append()]}),
        ("/api/v1/undo/", {"batch": "00000000-0000-4000-8000-000000000000"}),
    ],
)
def test_a_condition_without_a_target_is_refused(client: ApiClient, path: str, body: Any) -> None:
    before = Change.objects.count()
    for name, value in (("If-Match", "*"), ("If-Match", '"x"'), ("If-None-Match", '"x"')):
        answer = client.post(path, body, **{name: value})
        assert (answer.status_code, error_of(answer)["details"]["field"]) == (400, name)
    assert Change.objects.count() == before
    assert client.post(path, body, If_None_Match="*").status_code in {200, 201, 404}


def test_a_put_with_a_condition_on_something_absent_creates_nothing(client: ApiClient) -> None:
    for header in ("*", '"x"'):
        assert (
            put(
                client, "/api/v1/resources/new.md", b"t", "text/markdown", If_Match=header
            ).status_code
            == 404
        )
    created = put(client, "/api/v1/resources/new.md", b"t", "text/markdown", If_None_Match='"x"')
    assert created.status_code == 201


@pytest.mark.parametrize(
    "path",
    [TASK, "/api/v1/tasks/", f"{FILE}", f"{FILE}?download=true", f"/api/v1/resource/?uri={URI}"],
)
def test_a_reader_gets_304_or_a_conflict(client: ApiClient, path: str) -> None:
    etag = client.get(path)["ETag"]
    for known in (etag, f"W/{etag}", f'"zz", {etag}', "*"):
        assert client.get(path, If_None_Match=known).status_code == 304
    assert client.get(path, If_None_Match='"zz"').status_code == 200
    assert client.get(path, If_Match=f'"zz", {etag}').status_code == 200
    assert client.get(path, If_Match='"zz"').status_code == 409


@pytest.mark.parametrize(
    "text", ["", " ", ",", '"', 'a"b', '"a" "b"', '*,"a"', "*, *", '"a",*', '"' * 9_000]
)
def test_a_malformed_list_of_tags_is_refused(text: str) -> None:
    with pytest.raises(ValidationFailed):
        parse_tags("If-Match", text)


def test_a_tag_may_hold_a_comma_and_a_list_an_empty_element() -> None:
    tags = parse_tags("If-Match", '"a,b",, W/"c" ,bare')
    assert (tags.strong, tags.weak, tags.anything) == (("a,b", "bare"), ("c",), False)
