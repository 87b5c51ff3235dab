"""Test jobs among real processes: run once each, reclaimed from dead workers, and not lost without
a broker.
"""

import json
import os
import signal
import threading
from collections import Counter
from pathlib import Path

import pytest
import redis
from django.contrib.auth.models import User
from django.db import connection, connections, transaction

from backlog_site.devserver.embedded import free_port, throwaway_valkey
from resources_app.jobs import queue
from tests.other_processes import result, run, shared_environment, start

pytestmark = pytest.mark.django_db(transaction=True, serialized_rollback=True)

WORKER = """
import os, sys
from django.db import connection
from resources_app.jobs import queue as jobs
from resources_app.models import Job

log = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT)

@jobs.job("mark")
def mark(running):
    os.write(log, f"{running.payload['n']} {os.getpid()}\\n".encode())
"""
ENQUEUE = WORKER + "for n in range(int(sys.argv[2])): jobs.enqueue('mark', {'n': n})"
WORK = (
    WORKER
    + """
connection.ensure_connection()
print("ready", flush=True)
sys.stdin.readline()
while running := jobs.claim_next():
    jobs.run(running)
"""
)
HANG = """
import sys, threading
from resources_app.jobs import queue as jobs

@jobs.job("mark")
def hang(running):
    print("started", flush=True)
    threading.Event().wait()

jobs.run(jobs.claim_next())
"""
RECOVER = (
    WORKER
    + """
import json
from django.utils import timezone
early = jobs.sweep()
Job.objects.update(lease_until=timezone.now())
late = jobs.sweep()
print(json.dumps([early, late, *Job.objects.values_list("state", "attempts").get()]))
"""
)
WITHOUT_BROKER = (
    WORKER
    + """
from django.db import transaction
for n in range(100):
    with transaction.atomic():
        jobs.enqueue("mark", {"n": n})
print(jobs.sweep())
"""
)


def marks(log: Path) -> Counter[int]:
    return Counter(int(line.split()[0]) for line in log.read_text().splitlines())


def test_several_processes_claim_the_same_jobs_and_each_runs_once(tmp_path: Path) -> None:
    environment, log = shared_environment(tmp_path), tmp_path / "log"
    run(environment, ENQUEUE, log, 60)
    workers = [start(environment, WORK, log) for _ in range(3)]
    for worker in workers:
        assert worker.stdout and worker.stdout.readline() == "ready\n"
    for worker in workers:
        assert worker.stdin
        worker.stdin.write("go\n")
        worker.stdin.flush()
    for worker in workers:
        result(worker)
    assert marks(log) == Counter(range(60))


def test_a_job_of_a_killed_worker_is_reclaimed_after_its_lease(tmp_path: Path) -> None:
    environment, log = shared_environment(tmp_path), tmp_path / "log"
    run(environment, ENQUEUE, log, 1)
    worker = start(environment, HANG)
    assert worker.stdout and worker.stdout.readline() == "started\n"
    os.kill(worker.pid, signal.SIGKILL)
    worker.communicate()
    assert json.loads(run(environment, RECOVER, log)) == [0, 1, "done", 2]
    assert marks(log) == Counter([0])


def test_without_a_broker_nothing_is_lost(tmp_path: Path) -> None:
    environment, log = (
        shared_environment(tmp_path, REDIS_URL=f"redis://127.0.0.1:{free_port()}"),
        tmp_path / "log",
    )
    assert run(environment, WITHOUT_BROKER, log) == "100"
    assert marks(log) == Counter(range(100))


def test_a_frozen_broker_holds_up_nobody_and_nothing_is_lost(tmp_path: Path) -> None:
    with throwaway_valkey() as url:
        with redis.Redis.from_url(url) as client:
            process = int(client.info("server")["process_id"])
        environment, log = shared_environment(tmp_path, REDIS_URL=url), tmp_path / "log"
        os.kill(process, signal.SIGSTOP)
        try:
            # A hundred waits of two seconds would exceed the timeout of `run`.
            assert run(environment, WITHOUT_BROKER, log) == "100"
        finally:
            os.kill(process, signal.SIGCONT)
    assert marks(log) == Counter(range(100))


@pytest.mark.skipif(
    connection.vendor != "postgresql",
    reason="SQLite has one writer at a time: nobody can claim meanwhile",
)
def test_a_job_that_was_joined_starts_only_when_what_joined_it_can_be_seen() -> None:
    job = queue.enqueue("mark", {}, key="k")
    claims: list[queue.RunningJob | None] = []

    def claim_elsewhere() -> None:
        try:
            claims.append(queue.claim(job.pk))
        finally:
            connections.close_all()

    with transaction.atomic():
        assert queue.enqueue("mark", {}, key="k") == job
        User.objects.create(username="cause")
        thread = threading.Thread(target=claim_elsewhere)
        thread.start()
        thread.join()
    assert claims == [None]
    assert queue.claim(job.pk)
