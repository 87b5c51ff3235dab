"""Test Django under ASGI, in a thread for each request: signals around it, streams that end when
the client disconnects.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from django.core import signals
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.urls import path

from backlog_site.serving.django_threads import ThreadedSite

pytestmark = pytest.mark.django_db(transaction=True, serialized_rollback=True)

Messages = list[dict[str, Any]]
happened: list[tuple[str, str]] = []
let_go = threading.Event()


def _note(what: str) -> None:
    happened.append((what, threading.current_thread().name))


def plain(request: HttpRequest) -> HttpResponse:
    _note("view")
    return HttpResponse(request.body or b"plain")


def endless(request: HttpRequest) -> StreamingHttpResponse:
    async def parts() -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"more"
                await asyncio.sleep(0.01)
        finally:
            _note("stream ended")

    return StreamingHttpResponse(parts())


def broken(request: HttpRequest) -> StreamingHttpResponse:
    async def parts() -> AsyncIterator[bytes]:
        yield b"begun"
        raise OSError("The source is gone.")

    return StreamingHttpResponse(parts())


def held(request: HttpRequest) -> HttpResponse:
    return HttpResponse(b"let go" if let_go.wait(20) else b"forgotten")


def letting_go(request: HttpRequest) -> HttpResponse:
    let_go.set()
    return HttpResponse(b"let go")


urlpatterns = [
    *(path("plain/", plain), path("endless/", endless), path("broken/", broken)),
    *(path("held/", held), path("letting-go/", letting_go)),
]


@pytest.fixture(autouse=True)
def site(settings: Any) -> Iterator[None]:
    settings.ROOT_URLCONF = __name__
    settings.MIDDLEWARE = []
    happened.clear()
    noters: dict[str, Callable[..., None]] = {
        "request_started": lambda **given: _note("started"),
        "request_finished": lambda **given: _note("finished"),
    }
    for name, noter in noters.items():
        getattr(signals, name).connect(noter, weak=False)
    yield
    for name, noter in noters.items():
        getattr(signals, name).disconnect(noter)


def ask(where: str, *received: dict[str, Any], leave_after: int = 0) -> Messages:
    """Return the messages sent. The client disconnects after `leave_after` messages, or stays."""
    return asyncio.run(_ask(ThreadedSite(), where, *received, leave_after=leave_after))


async def _ask(
    site: ThreadedSite, where: str, *received: dict[str, Any], leave_after: int = 0
) -> Messages:
    sent: Messages = []
    left = asyncio.Event()
    waiting = list(received) or [{"type": "http.request", "body": b""}]

    async def receive() -> dict[str, Any]:
        if waiting:
            return waiting.pop(0)
        await left.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)
        if len(sent) == leave_after:
            left.set()

    scope = {
        "type": "http",
        "method": "POST",
        "path": where,
        "headers": [],
        "query_string": b"",
        "root_path": "",
    }
    async with asyncio.timeout(30):
        await site(scope, receive, send)
    return sent


def body(sent: Messages) -> bytes:
    return b"".join(message.get("body", b"") for message in sent[1:])


def test_the_view_and_the_signals_around_it_share_one_thread() -> None:
    sent = ask(
        "/plain/",
        {"type": "http.request", "body": b"a", "more_body": True},
        {"type": "http.request", "body": b"b"},
    )
    assert (sent[0]["status"], body(sent)) == (200, b"ab")
    assert [what for what, _ in happened] == ["started", "view", "finished"]
    [thread] = {thread for _, thread in happened}
    assert thread.startswith("site-database")


def test_a_request_that_never_arrived_whole_reaches_nobody() -> None:
    sent = ask(
        "/plain/",
        {"type": "http.request", "body": b"a", "more_body": True},
        {"type": "http.disconnect"},
    )
    assert (sent, happened) == ([], [])


def test_a_stream_ends_when_nobody_listens() -> None:
    sent = ask("/endless/", leave_after=5)
    assert sent[0]["status"] == 200 and body(sent).startswith(b"moremore")
    assert sorted(what for what, _ in happened) == ["finished", "started", "stream ended"]


def test_a_stream_that_breaks_does_not_end_as_if_it_were_whole() -> None:
    with pytest.raises(OSError, match="gone"):
        ask("/broken/")
    assert [what for what, _ in happened] == ["started", "finished"]


def test_requests_that_wait_for_something_do_not_hold_up_the_others() -> None:
    async def all_at_once() -> list[Messages]:
        site = ThreadedSite()
        return await asyncio.gather(
            *(_ask(site, "/held/") for _ in range(5)), _ask(site, "/letting-go/")
        )

    let_go.clear()
    assert [body(sent) for sent in asyncio.run(all_at_once())] == [b"let go"] * 6
