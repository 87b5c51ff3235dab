import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import urlopen

import psutil
import pytest

from backlog_site.devserver import supervisor
from backlog_site.devserver.embedded import free_port

SLEEPER = "echo $0 is process $$; exec sleep 600"
STUBBORN = "trap '' TERM; echo $0 is process $$; while true; do sleep 1; done"
PARENT_OF_ANOTHER = "echo $0 is process $$; sh -c 'echo child is process $$; exec sleep 600'"

SCRIPT = """
from backlog_site.devserver.supervisor import Backoff, Service, Supervisor

stages = [[Service(name=name, command=["sh", "-c", command, name]) for name, command in stage] for stage in {stages!r}]
backoff = Backoff(first=0.01, longest=0.08, reset_after={long_run})
Supervisor(stages, write=lambda line: print(line, flush=True), backoff=backoff, patience={patience}).run()
"""


class Tree:
    """Run a supervisor in a separate process and write its output to a file."""

    def __init__(self, folder: Path, script: str) -> None:
        self._output = folder / "output"
        with self._output.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-c", script], stdout=output, stderr=subprocess.STDOUT
            )

    def lines(self) -> list[str]:
        return self._output.read_text().splitlines()

    def processes(self, name: str) -> list[int]:
        """Return the process ids of a service across restarts, the first one first."""
        return [
            int(pid) for pid in re.findall(rf"\b{name} is process (\d+)", self._output.read_text())
        ]

    def wait_for_process(self, name: str, life: int = 1) -> int:
        wait_until(lambda: len(self.processes(name)) >= life)
        return self.processes(name)[life - 1]

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)
        self.process.wait(60)


@pytest.fixture
def tree_of(tmp_path):
    trees = []

    def start(*stages: list[tuple[str, str]], patience: float = 60, long_run: float = 600) -> Tree:
        trees.append(
            Tree(tmp_path, SCRIPT.format(stages=stages, patience=patience, long_run=long_run))
        )
        return trees[-1]

    yield start
    for tree in trees:
        tree.process.kill()
        tree.process.wait()


def is_alive(pid: int) -> bool:
    """Return whether the process runs.

    A zombie counts as gone, even if it is never reaped, as in some containers.
    """
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_until(condition):
    deadline = time.monotonic() + 180
    while not condition():
        assert time.monotonic() < deadline, "gave up after three minutes"
        time.sleep(0.02)


def test_a_service_that_is_killed_starts_again(tree_of):
    tree = tree_of([("web", SLEEPER), ("worker", SLEEPER)])
    first, worker = tree.wait_for_process("web"), tree.wait_for_process("worker")
    subprocess.run(["kill", "-9", str(first)], check=True)

    second = tree.wait_for_process("web", life=2)
    assert is_alive(second)
    assert is_alive(worker)
    assert "serve  | web was killed by SIGKILL; starting it again in 0.01 s" in tree.lines()


def test_a_service_that_keeps_falling_starts_less_and_less_often(tree_of):
    tree = tree_of([("web", "exit 3")])
    wait_until(lambda: len(tree.lines()) >= 6)
    waits = [float(line.split()[-2]) for line in tree.lines()[:6]]
    assert waits == [0.01, 0.02, 0.04, 0.08, 0.08, 0.08]
    assert "web ended with exit code 3" in tree.lines()[0]


def test_a_fall_after_a_long_run_counts_as_the_first(tree_of):
    tree = tree_of([("web", "exit 3")], long_run=0)
    wait_until(lambda: len(tree.lines()) >= 3)
    assert [float(line.split()[-2]) for line in tree.lines()[:3]] == [0.01, 0.01, 0.01]


def test_what_a_service_started_falls_with_it(tree_of):
    tree = tree_of([("web", PARENT_OF_ANOTHER)])
    leader, child = tree.wait_for_process("web"), tree.wait_for_process("child")
    subprocess.run(["kill", "-9", str(leader)], check=True)
    wait_until(lambda: not is_alive(child))


@pytest.mark.parametrize("request_to_end", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_nothing_is_left_after_a_request_to_end(tree_of, request_to_end):
    tree = tree_of([("valkey", SLEEPER)], [("web", SLEEPER), ("worker", PARENT_OF_ANOTHER)])
    pids = [tree.wait_for_process(name) for name in ("valkey", "web", "worker", "child")]
    tree.send(request_to_end)
    assert tree.process.returncode == 0
    assert [pid for pid in pids if is_alive(pid)] == []


def test_a_service_that_ignores_the_request_is_killed_after_a_while(tree_of):
    tree = tree_of([("web", STUBBORN)], patience=0.2)
    pid = tree.wait_for_process("web")
    tree.send(signal.SIGTERM)
    assert not is_alive(pid)


def test_a_second_request_does_not_wait(tree_of):
    tree = tree_of([("web", STUBBORN)], patience=600)
    pid = tree.wait_for_process("web")
    tree.process.send_signal(signal.SIGINT)
    wait_until(lambda: "serve  | stopping" in tree.lines())
    tree.send(signal.SIGINT)
    assert not is_alive(pid)


@pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux ends a process when its parent is killed"
)
def test_no_service_outlives_a_killed_supervisor(tree_of):
    tree = tree_of([("web", STUBBORN), ("worker", SLEEPER)])
    pids = [tree.wait_for_process(name) for name in ("web", "worker")]
    tree.send(signal.SIGKILL)
    wait_until(lambda: not any(is_alive(pid) for pid in pids))


def test_a_stage_waits_until_the_one_before_is_ready():
    events: list[str] = []

    def broker_is_ready() -> bool:
        events.append("asked")
        return events.count("asked") == 3

    broker = supervisor.Service(name="broker", command=["sleep", "600"], is_ready=broker_is_ready)
    web = supervisor.Service(name="web", command=["sh", "-c", "echo hello; exec sleep 600"])
    end = supervisor.Service(
        name="end", command=["sleep", "600"], is_ready=lambda: "web    | hello" in events
    )
    stages = [[broker], [web, end]]
    supervisor.Supervisor(
        stages, write=events.append, on_ready=lambda: signal.raise_signal(signal.SIGTERM)
    ).run()
    assert events == ["asked", "asked", "asked", "web    | hello", "serve  | stopping"]


def test_every_line_of_a_service_bears_its_name(tree_of):
    tree = tree_of([("web", "printf 'one\\ntwo\\nunfinished'; exec sleep 600")])
    wait_until(lambda: len(tree.lines()) >= 2)
    tree.send(signal.SIGTERM)
    assert tree.lines() == [
        "web    | one",
        "web    | two",
        "serve  | stopping",
        "web    | unfinished",
    ]


def test_the_wait_doubles_up_to_the_longest():
    backoff = supervisor.Backoff(first=0.5, longest=30)
    assert [backoff.delay(failures) for failures in (1, 2, 3, 10, 10_000)] == [0.5, 1, 2, 30, 30]


def test_a_second_site_on_the_same_folder_is_refused(tmp_path):
    script = "import sys, time, pathlib; from backlog_site.devserver.supervisor import *\n"
    script += (
        "with exclusive(pathlib.Path(sys.argv[1])): print('held', flush=True); time.sleep(600)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, tmp_path], stdout=subprocess.PIPE
    ) as holder:
        holder.stdout.readline()
        message = rf"already running on .* \(process {holder.pid}\)"
        with pytest.raises(supervisor.CannotServe, match=message), supervisor.exclusive(tmp_path):
            pass
        holder.kill()
    with supervisor.exclusive(tmp_path):
        pass


def test_a_taken_port_is_named_together_with_the_way_out():
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(
            supervisor.CannotServe, match=f"Port {port} on 127.0.0.1 is taken.*PORT={port + 1}"
        ):
            supervisor.listen("127.0.0.1", port)


def test_connections_send_small_answers_at_once():
    with (
        supervisor.listen("127.0.0.1", 0) as listener,
        socket.create_connection(listener.getsockname()),
        listener.accept()[0] as connection,
    ):
        assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_an_address_of_another_machine_is_refused_in_words():
    with pytest.raises(supervisor.CannotServe, match=r"Cannot listen on 192\.0\.2\.1, port 8000"):
        supervisor.listen("192.0.2.1", 8000)


ANNOUNCING = """
from backlog_site.devserver.supervisor import Service, Settling, Supervisor

stages = [[Service(name="one", command=["sh", "-c", "sleep 0.3; echo late line; exec sleep 600"])]]
settling = Settling(quiet=0.5, longest=600)
write = lambda line: print(line, flush=True)
Supervisor(stages, write=write, on_ready=lambda: write("Running at http://…"), settling=settling).run()
"""


def test_the_announcement_is_repeated_below_what_came_after_it(tmp_path):
    tree = Tree(tmp_path, ANNOUNCING)
    try:
        wait_until(lambda: tree.lines().count("Running at http://…") == 2)
        first, *between, last = tree.lines()
        assert first == last and any("late line" in line for line in between)
    finally:
        tree.send(signal.SIGTERM)


class Site:
    """Run `manage.py serve` on the embedded default, with a separate data folder."""

    def __init__(self, folder: Path) -> None:
        self.url = f"http://127.0.0.1:{free_port()}"
        named = ("REDIS_URL", "DATABASE_URL", "DJANGO_SETTINGS_MODULE")
        environment = {name: value for name, value in os.environ.items() if name not in named}
        command = [sys.executable, "manage.py", "serve", "--port", self.url.rpartition(":")[2]]
        self._output = folder / "output"
        with self._output.open("wb") as output:
            self.process = subprocess.Popen(
                command,
                env=environment | {"BACKLOG_DATA_DIR": str(folder)},
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def output(self) -> str:
        return self._output.read_text()

    def wait_until_running(self) -> None:
        wait_until(lambda: self.process.poll() is not None or "Backlog is running" in self.output())
        assert self.process.poll() is None, self.output()

    def descendants(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(60)


def test_the_whole_site_starts_shows_its_secrets_once_and_leaves_nothing_behind(tmp_path):
    site = Site(tmp_path)
    try:
        site.wait_until_running()
        assert urlopen(f"{site.url}/healthz").status == 200
        assert "login      admin, password " in site.output()
        assert "MCP token  " in site.output()
        assert not [line for line in site.output().splitlines() if '{"' in line], (
            "logs for eyes, not JSON"
        )
        # Valkey, web, scheduler, worker and the two processes of its pool.
        wait_until(lambda: len(site.descendants()) == 6)
        descendants = site.descendants()
    finally:
        site.stop()
    assert [process for process in descendants if is_alive(process.pid)] == []

    site = Site(tmp_path)
    try:
        site.wait_until_running()
        assert "login      admin" not in site.output()
        assert "create_token" in site.output()
    finally:
        site.stop()
