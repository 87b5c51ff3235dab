"""The demo library of `make run`: sessions survive a restart of the fake, and the site follows it
to other ports.
"""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from resources_app.intelligencebank import connections, demo, linking
from resources_app.intelligencebank.client import folders_in
from resources_app.intelligencebank.fake import demo as library
from resources_app.intelligencebank.fake.keeping import keep_sessions
from resources_app.intelligencebank.fake.server import ROLES, serving
from resources_app.intelligencebank.fake.service import FakeIB
from resources_app.intelligencebank.fake.world import ROOT_ID
from resources_app.jobs import queue
from resources_app.models import IBConnection, IBLink, Job
from tests.factories import make_user


@contextmanager
def running_library(file: Path) -> Iterator[FakeIB]:
    """A new process of the fake, as far as its memory goes."""
    fake = FakeIB(session_hours=120)
    library.fill(fake)
    keep_sessions(fake, file)
    with serving(fake):
        yield fake


def connect(fake: FakeIB, settings: Settings) -> IBConnection:
    settings.IB_LOCAL_ORIGINS = [fake.urls[role] for role in ROLES]
    demo.request(fake.urls["platform"])
    job = Job.objects.get(kind=demo.JOB, state=Job.State.PENDING)
    running = queue.claim(job.pk)
    assert running
    queue.run(running)
    assert Job.objects.get(pk=job.pk).state == Job.State.DONE
    return IBConnection.objects.get()


def root_as(user: User, connection: IBConnection) -> list[str]:
    """The names of the folders that the person sees with their stored session."""
    link = IBLink.objects.get(user=user)
    session = connections.open_session(connection, f"session {user.pk}", link.session)
    client = connections.client_for(connection)
    try:
        return sorted(row["name"] for row in client.fetch(session, folders_in(ROOT_ID)).rows)
    finally:
        client.close()


def sid_of(user: User, connection: IBConnection) -> str:
    return connections.open_session(
        connection, f"session {user.pk}", IBLink.objects.get(user=user).session
    ).sid


@pytest.mark.django_db
def test_people_stay_signed_in_when_the_fake_restarts_on_other_ports(
    tmp_path: Path, settings: Settings
) -> None:
    alice, chen = make_user("alice", "contributor"), make_user("chen", "contributor")
    file = tmp_path / "sessions.json"
    with running_library(file) as fake:
        connection = connect(fake, settings)
        client = connections.client_for(connection)
        link = IBLink.objects.create(user=chen, connection=connection)
        linking.keep_session(link, client.login("bob@example.com", library.PEOPLE_PASSWORD))
        client.close()
        seen, sids = root_as(chen, connection), [sid_of(user, connection) for user in (alice, chen)]
        assert seen == ["Brand", "Photos"]
        first = fake.urls["platform"]
    with (
        socket.create_server(("127.0.0.1", int(first.rpartition(":")[2]))),
        running_library(file) as fake,
    ):
        connection = connect(fake, settings)
        assert connection.platform_url == fake.urls["platform"] != first
        assert [sid_of(user, connection) for user in (alice, chen)] == sids
        assert root_as(chen, connection) == seen
        host = fake.urls["platform"].removeprefix("http://")
        again = fake.login(
            {"p70": "alice@example.com", "p80": library.PEOPLE_PASSWORD, "p90": host}
        )
        assert again.body["sid"] not in sids
    assert file.stat().st_mode & 0o077 == 0


@pytest.mark.django_db
def test_a_request_of_an_earlier_start_is_left_alone(tmp_path: Path, settings: Settings) -> None:
    demo.request("http://127.0.0.1:9")
    with running_library(tmp_path / "sessions.json") as fake:
        settings.IB_LOCAL_ORIGINS = [fake.urls[role] for role in ROLES]
        demo.request(fake.urls["platform"])
        while running := queue.claim_next():
            queue.run(running)
        assert not Job.objects.filter(kind=demo.JOB).exclude(state=Job.State.DONE).exists()
        assert IBConnection.objects.get().platform_url == fake.urls["platform"]


def test_the_command_answers_on_sockets_it_inherits_and_keeps_sessions_across_a_kill(
    tmp_path: Path,
) -> None:
    sockets = [socket.create_server(("127.0.0.1", 0), backlog=64) for _ in ROLES]
    descriptors = [one.fileno() for one in sockets]
    origin = f"127.0.0.1:{sockets[0].getsockname()[1]}"
    command = [
        *(sys.executable, "manage.py", "fake_ib", "--sockets", ",".join(map(str, descriptors))),
        *("--sessions", str(tmp_path / "sessions.json"), "--verbosity", "0"),
    ]

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(command, pass_fds=descriptors, env=os.environ)

    form = {"p70": "alice@example.com", "p80": library.PEOPLE_PASSWORD, "p90": origin}
    process = start()
    try:
        # Callers wait in the queue of the socket while nobody answers.
        login = httpx.post(
            f"http://127.0.0.1:{sockets[1].getsockname()[1]}/webapp/1.0/login",
            data=form,
            timeout=60,
        )
        sid = login.json()["sid"]
        process.kill()
        process.wait()
        process = start()
        listed = f"{login.json()['apiV3url']}/api/3.0.0/{library.CLIENT_ID}/folder.limit(100)"
        assert "response" in httpx.get(listed, headers={"sid": sid}, timeout=60).json()
    finally:
        process.kill()
        process.wait()
        for one in sockets:
            one.close()
