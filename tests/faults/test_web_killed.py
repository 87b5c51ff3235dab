"""kill -9 of the web process at a hundred random moments of a batch: there whole or not at all, and its key tells which."""

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

from backlog_site.embedded import free_port
from tests.faults.surroundings import append_batch, eventually, lines, served, token_of
from tests.mcp.site import Site
from tests.other_processes import start

KILLS, BATCH = 100, 20

# Forked from a process that has everything loaded, a web process is there at once.
WEB = """
import os, socket, sys
import uvicorn
from backlog_site.asgi import application

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
    """A batch on its way, whose sender may never hear of it."""

    def __init__(self, site: Site, token: str, uris: list[str], line: str) -> None:
        super().__init__()
        self.site, self.token, self.uris, self.line = site, token, uris, line
        self.is_acknowledged = False

    def run(self) -> None:
        with self.site.client(self.token) as http:
            try:
                self.is_acknowledged = send(http, self.site, self.uris, self.line)
            except httpx.TransportError:
                return


def send(http: httpx.Client, site: Site, uris: list[str], line: str) -> bool:
    return append_batch(http, site, uris * (BATCH // 2), line, key=line).status_code == 200


def test_a_web_process_killed_a_hundred_times_leaves_every_batch_whole(redis_url: str) -> None:
    with served(redis_url, BACKLOG_LOCK_SECONDS="30") as (site, http, first):
        second = f"mcp://backlog/tasks/{site.elsewhere.create(values={'title': 'Beside'}, by='alice')}/description"
        uris, port = [first, second], free_port()
        mortal = replace(site, url=f"http://127.0.0.1:{port}")
        web = start(site.environment, WEB, port)
        try:
            longest = how_long_it_takes(http, site, uris)
            unheard = sum(not survives(web, mortal, token_of(http), uris, str(n), longest) for n in range(KILLS))
        finally:
            web.kill()
        assert unheard > 0
        for uri in uris:
            assert Counter(lines(http, site, uri)) == dict.fromkeys(["first", *map(str, range(KILLS))], BATCH // 2)


def how_long_it_takes(http: httpx.Client, site: Site, uris: list[str]) -> float:
    started = time.monotonic()
    assert send(http, site, uris, "first")
    return time.monotonic() - started


def survives(web: subprocess.Popen[str], site: Site, token: str, uris: list[str], line: str, longest: float) -> bool:
    """Whether the sender heard that the batch is there. If not, it asks again under the same key."""
    with site.client(token) as http:
        process = next_process(web, http, site)
        sending = Sending(site, token, uris, line)
        sending.start()
        time.sleep(random.uniform(0, 1.5 * longest))
        os.kill(process, signal.SIGKILL)
        sending.join()
    with site.client(token) as http:
        process = next_process(web, http, site)
        parts = {lines(http, site, uri).count(line) for uri in uris}
        assert parts in ({0}, {BATCH // 2}), "half of a batch can be seen"
        assert not sending.is_acknowledged or parts == {BATCH // 2}, "what was acknowledged is lost"
        assert eventually(partial(send, http, site, uris, line))
        os.kill(process, signal.SIGKILL)
    return sending.is_acknowledged
