"""Test kill -9 of the web process at random moments of a batch: it is there whole or not
at all, and its key tells which.
"""

import os
import random
import signal
import subprocess
import threading
import time
from collections import Counter
from dataclasses import replace
from functools import partial

import httpx

from backlog_site.devserver.embedded import free_port
from tests.faults.surroundings import append_batch, eventually, lines, served, token_of
from tests.mcp.site import Site
from tests.other_processes import start
from tests.repeats import repeats

KILLS, BATCH = repeats(20, full=100), 20

# Forked from a fully loaded process, a web process is ready at once.
WEB = """
import os, socket, sys
import uvicorn
from backlog_site.asgi import application

os.setsid()
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while sys.stdin.readline():
    if not (child := os.fork()):
        uvicorn.run(application, fd=listener.fileno(), lifespan="on", log_level="critical")
    print(child, flush=True)
    os.waitpid(child, 0)
"""


def next_process(web: subprocess.Popen[str], http: httpx.Client, site: Site) -> int:
    assert web.stdin and web.stdout
    web.stdin.write("next\n")
    web.stdin.flush()
    process = int(web.stdout.readline())
    assert http.get(f"{site.url}/healthz").status_code == 200
    return process


class Sending(threading.Thread):
    """Send a batch whose acknowledgement may never arrive."""

    def __init__(self, http: httpx.Client, site: Site, uris: list[str], line: str) -> None:
        super().__init__()
        self.http, self.site, self.uris, self.line = http, site, uris, line
        self.is_acknowledged = False

    def run(self) -> None:
        try:
            self.is_acknowledged = send(self.http, self.site, self.uris, self.line)
        except httpx.TransportError:
            return


def send(http: httpx.Client, site: Site, uris: list[str], line: str) -> bool:
    return append_batch(http, site, uris * (BATCH // 2), line, key=line).status_code == 200


def test_a_web_process_killed_again_and_again_leaves_every_batch_whole(redis_url: str) -> None:
    with served(redis_url, BACKLOG_LOCK_SECONDS="30") as (site, http, first):
        second = f"mcp://backlog/tasks/{site.elsewhere.create(values={'title': 'Beside'}, by='alice')}/description"
        uris, port = [first, second], free_port()
        mortal = replace(site, url=f"http://127.0.0.1:{port}")
        web = start(site.environment, WEB, port)
        try:
            sent = kill_again_and_again(
                web, mortal, token_of(http), uris, how_long_it_takes(http, site, uris)
            )
        finally:
            os.killpg(web.pid, signal.SIGKILL)
        assert not all(sending.is_acknowledged for sending in sent)
        for uri in uris:
            assert Counter(lines(http, site, uri)) == dict.fromkeys(
                ["first", *map(str, range(KILLS))], BATCH // 2
            )


def how_long_it_takes(http: httpx.Client, site: Site, uris: list[str]) -> float:
    started = time.monotonic()
    assert send(http, site, uris, "first")
    return time.monotonic() - started


def kill_again_and_again(
    web: subprocess.Popen[str], site: Site, token: str, uris: list[str], usual: float
) -> list[Sending]:
    """Run each process until it dies of a batch.

    It first checks the batch that may have killed the previous one.
    """
    sent: list[Sending] = []
    while True:
        # One connection for each process: its requests end with it.
        with site.client(token) as http:
            process = next_process(web, http, site)
            if sent:
                look_after(sent[-1], http)
            if len(sent) == KILLS:
                return sent
            sent.append(Sending(http, site, uris, str(len(sent))))
            sent[-1].start()
            time.sleep(random.uniform(0, 1.5 * usual))
            os.kill(process, signal.SIGKILL)
            sent[-1].join()


def look_after(sending: Sending, http: httpx.Client) -> None:
    """Check that a batch is whole or absent, present if acknowledged, and present once after a
    retry under its key.
    """
    parts = {lines(http, sending.site, uri).count(sending.line) for uri in sending.uris}
    assert parts in ({0}, {BATCH // 2}), "half of a batch can be seen"
    assert not sending.is_acknowledged or parts == {BATCH // 2}, "what was acknowledged is lost"
    assert eventually(partial(send, http, sending.site, sending.uris, sending.line))
