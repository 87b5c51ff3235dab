"""Run durable background jobs. A Job row is leased by one worker at a time and reclaimed when that
worker dies.

Celery only wakes a worker; a lost wake-up delays the job until the next sweep. A function may run
again after a crash, so it must be idempotent.
"""

import re
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import structlog
from celery import current_app
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from kombu.exceptions import OperationalError as BrokerAway

from resources_app.errors import InvalidOperation, NotFound
from resources_app.jobs import clock
from resources_app.models import Job
from resources_app.safety.scrubbing import scrub_text

LEASE = timedelta(seconds=60)
MAX_ATTEMPTS = 5
FIRST_DELAY = timedelta(seconds=10)
SWEEP_SECONDS = 30
SILENCE_SECONDS = 5
MAX_ERROR = 500

logger = structlog.get_logger("backlog.jobs")


class LostLease(Exception):
    """Signal that another worker has claimed the job or that it is over.

    The worker must stop writing.
    """


@dataclass
class RunningJob:
    """Represent a claimed job.

    `attempt` is the fencing token: writes succeed only until another worker claims the job.
    """

    id: int
    kind: str
    payload: dict[str, Any]
    attempt: int
    requested_by_id: int | None = None
    finished: bool = field(default=False, init=False)

    def heartbeat(self) -> None:
        """Extend the lease.

        Inside a transaction this also fences it: the row stays locked until the effects commit.
        """
        self._write(lease_until=clock.now() + LEASE)

    def progress(self, done: int, total: int, note: str = "") -> None:
        self._write(
            lease_until=clock.now() + LEASE, progress={"done": done, "total": total, "note": note}
        )

    @contextmanager
    def finish(self) -> Iterator[None]:
        """Commit the writes of the block together with the state "done", or neither."""
        with transaction.atomic():
            self._write(
                state=Job.State.DONE, finished_at=clock.now(), lease_until=None, last_error=""
            )
            yield
        self.finished = True

    def fail(self, error: str) -> None:
        """Schedule a retry with exponential backoff, or give up after the last attempt."""
        if self.attempt >= MAX_ATTEMPTS:
            return self._give_up(error)
        run_at = clock.now() + FIRST_DELAY * 2 ** (self.attempt - 1)
        try:
            with transaction.atomic():
                self._write(
                    state=Job.State.PENDING, run_at=run_at, lease_until=None, last_error=error
                )
        except IntegrityError:
            self._give_up(f"{error} (the same work is already waiting as a newer job)")

    def _give_up(self, error: str) -> None:
        self._write(
            state=Job.State.FAILED, finished_at=clock.now(), lease_until=None, last_error=error
        )

    def _write(self, **columns: Any) -> None:
        mine = Job.objects.filter(pk=self.id, state=Job.State.RUNNING, attempts=self.attempt)
        if not mine.update(**columns):
            raise LostLease(f"{self.kind} #{self.id}, attempt {self.attempt}")


JobFunction = Callable[[RunningJob], None]
_functions: dict[str, JobFunction] = {}


def job(kind: str) -> Callable[[JobFunction], JobFunction]:
    """Register the function for a kind of job.

    It must call heartbeat() or progress() well within the lease.
    """

    def register(function: JobFunction) -> JobFunction:
        _functions[kind] = function
        return function

    return register


def registered() -> dict[str, JobFunction]:
    return dict(_functions)


def enqueue(
    kind: str,
    payload: dict[str, Any],
    key: str | None = None,
    requested_by: User | None = None,
    run_at: datetime | None = None,
) -> Job:
    """Enqueue a job in the caller's transaction.

    If a job with the same key is pending, return that job instead.
    """
    now = clock.now()
    wanted = Job(
        kind=kind,
        payload=payload,
        key=key or f"{kind}:{uuid.uuid4()}",
        requested_by=requested_by,
        run_at=run_at or now,
        created_at=now,
    )
    with transaction.atomic():
        kept = _insert_or_join(wanted)
    if kept.run_at <= now:
        _wake_on_commit(kept.pk)
    return kept


def _insert_or_join(wanted: Job) -> Job:
    while True:
        # Locked until our transaction ends: no worker may start the job before its cause is
        # visible.
        if (
            waiting := Job.objects.select_for_update()
            .filter(key=wanted.key, state=Job.State.PENDING)
            .first()
        ):
            return waiting
        try:
            with transaction.atomic():
                wanted.save(force_insert=True)
        except IntegrityError:
            # Another transaction committed first. Its job may be claimed already, so look again.
            continue
        return wanted


def retry(job_id: int) -> Job:
    """Enqueue a failed job again as a new row.

    The old row keeps its error, and its attempts remain a valid fencing token.
    """
    failed = Job.objects.filter(pk=job_id).first()
    if failed is None:
        raise NotFound(f"There is no job {job_id}.")
    if failed.state != Job.State.FAILED:
        raise InvalidOperation(
            f"Job {job_id} is {failed.state}; only a failed one can be retried.", allowed=["failed"]
        )
    return enqueue(failed.kind, failed.payload, failed.key, failed.requested_by)


def claim(job_id: int) -> RunningJob | None:
    return _claim(Job.objects.filter(pk=job_id))


def claim_next() -> RunningJob | None:
    return _claim(Job.objects.order_by("run_at", "id"))


def _claim(jobs: QuerySet[Job]) -> RunningJob | None:
    with transaction.atomic():
        # On SQLite the transaction is the lock.
        row = jobs.filter(_claimable(clock.now())).select_for_update(skip_locked=True).first()
        if row is None:
            return None
        row.state, row.attempts, row.lease_until = (
            Job.State.RUNNING,
            row.attempts + 1,
            clock.now() + LEASE,
        )
        row.save(update_fields=["state", "attempts", "lease_until"])
    return RunningJob(row.pk, row.kind, row.payload, row.attempts, row.requested_by_id)


def _claimable(now: datetime) -> Q:
    """Match jobs that are due while the same work is not running, and jobs abandoned by a dead
    worker.
    """
    same_work = Job.objects.filter(key=OuterRef("key"), state=Job.State.RUNNING)
    # A job requested for immediate execution is due even if the clock was set back.
    due = Q(run_at__lte=now) | Q(run_at=F("created_at"))
    left_behind = clock.abandoned(LEASE) & Q(state=Job.State.RUNNING, attempts__lt=MAX_ATTEMPTS)
    return due & Q(~Exists(same_work), state=Job.State.PENDING) | left_behind


def run(running: RunningJob) -> None:
    try:
        _functions[running.kind](running)
        if not running.finished:
            with running.finish():
                pass
    except LostLease as lost:
        logger.warning("job_lease_lost", job=str(lost))
    except Exception as error:  # worker boundary: any exception of a job is recorded on its row
        logger.exception(
            "job_failed", job_id=running.id, kind=running.kind, attempt=running.attempt
        )
        _record_failure(running, error)


def _record_failure(running: RunningJob, error: Exception) -> None:
    text = (
        f"No worker knows the kind {running.kind!r}."
        if running.kind not in _functions
        else describe(error)
    )
    try:
        running.fail(text)
    except LostLease as lost:
        logger.warning("job_lease_lost", job=str(lost))


def sweep() -> int:
    """Run the jobs that no wake-up reached or dead workers left.

    Starts no new job after SWEEP_SECONDS.
    """
    _give_up_on_deadly_jobs()
    deadline = time.monotonic() + SWEEP_SECONDS
    ran = 0
    while time.monotonic() < deadline and (running := claim_next()):
        run(running)
        ran += 1
    return ran


def _give_up_on_deadly_jobs() -> None:
    dead = Job.objects.filter(
        clock.abandoned(LEASE), state=Job.State.RUNNING, attempts__gte=MAX_ATTEMPTS
    )
    reason = f"The worker died or fell silent in each of {MAX_ATTEMPTS} attempts."
    dead.update(
        state=Job.State.FAILED, finished_at=clock.now(), lease_until=None, last_error=reason
    )


def lag() -> float:
    """Return how many seconds the oldest due job has been waiting for a worker."""
    now = clock.now()
    overdue = Job.objects.filter(_claimable(now)).order_by("run_at").first()
    return max(0.0, (now - overdue.run_at).total_seconds()) if overdue else 0.0


_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def describe(error: Exception) -> str:
    """Describe an error in one line, without secrets or characters that a database rejects."""
    text = _UNSTORABLE.sub("�", f"{type(error).__name__}: {error}")
    return scrub_text(text)[:MAX_ERROR]


class _Silence:
    """Skip wake-ups for a while after a broker failure, so that no other request waits for it.

    The sweep finds the jobs.
    """

    until = 0.0


def _wake_on_commit(job_id: int) -> None:
    def wake() -> None:
        _wake(job_id)

    transaction.on_commit(wake, robust=True)


def _wake(job_id: int) -> None:
    if time.monotonic() < _Silence.until:
        return
    try:
        current_app.send_task("resources_app.tasks.run_job", args=[job_id], retry=False)
    except BrokerAway as error:
        _Silence.until = time.monotonic() + SILENCE_SECONDS
        logger.warning("job_not_woken", job_id=job_id, reason=str(error))
