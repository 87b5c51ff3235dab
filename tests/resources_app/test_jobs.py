"""Test jobs on one process: enqueued with their cause, leased, fenced, retried, and safe to run
twice.
"""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
import redis
from django.apps import apps
from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from resources_app import tasks
from resources_app.errors import InvalidOperation, NotFound
from resources_app.jobs import queue
from resources_app.jobs.queue import RunningJob, claim, claim_next, enqueue
from resources_app.models import ApiToken, IdempotencyKey, Job
from tests.factories import make_task

LONG_AGO = timedelta(days=365)


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch, db: None) -> Iterator[list[Any]]:
    """Register a kind of job that records its payload, and raises it if it is an exception's
    text.
    """
    done: list[Any] = []

    def note(running: RunningJob) -> None:
        done.append(running.payload)
        if "error" in running.payload:
            raise RuntimeError(running.payload["error"])

    monkeypatch.setitem(queue._functions, "note", note)
    return done  # type: ignore[return-value]


def make_due(job: Job) -> None:
    Job.objects.filter(pk=job.pk).update(run_at=timezone.now() - LONG_AGO)


def expire_lease(job: Job) -> None:
    Job.objects.filter(pk=job.pk).update(lease_until=timezone.now() - timedelta(seconds=1))


def claimed(job: Job) -> RunningJob:
    running = claim(job.pk)
    assert running
    return running


def test_a_job_runs_once_and_is_done(work: list[Any]) -> None:
    job = enqueue("note", {"n": 1})
    tasks.run_job(job.pk)
    tasks.run_job(job.pk)
    job.refresh_from_db()
    assert work == [{"n": 1}]
    assert (job.state, job.attempts, job.lease_until, job.last_error) == ("done", 1, None, "")
    assert job.finished_at


def test_a_job_of_a_transaction_that_rolls_back_never_was(work: list[Any]) -> None:
    with transaction.atomic():
        enqueue("note", {})
        transaction.set_rollback(True)
    assert not Job.objects.exists()


def test_asking_twice_before_it_starts_is_asking_once(work: list[Any], alice: User) -> None:
    first = enqueue("note", {"n": 1}, key="k", requested_by=alice)
    assert enqueue("note", {"n": 2}, key="k") == first
    assert enqueue("note", {"n": 3}, key="other") != first
    assert enqueue("note", {"n": 4}) != enqueue("note", {"n": 4})
    assert first.requested_by == alice


def test_asking_again_while_it_runs_gives_a_second_run_afterwards(work: list[Any]) -> None:
    first = enqueue("note", {"n": 1}, key="k")
    running = claimed(first)
    second = enqueue("note", {"n": 2}, key="k")
    assert second != first
    assert claim(second.pk) is None
    assert claim_next() is None
    queue.run(running)
    assert queue.sweep() == 1
    assert work == [{"n": 1}, {"n": 2}]


def test_a_job_for_later_waits_until_it_is_due(work: list[Any]) -> None:
    job = enqueue("note", {}, run_at=timezone.now() + timedelta(hours=1))
    assert queue.sweep() == 0
    assert queue.lag() == 0
    make_due(job)
    assert queue.lag() == pytest.approx(LONG_AGO.total_seconds(), abs=60)
    assert queue.sweep() == 1


def test_the_oldest_due_job_comes_first(work: list[Any]) -> None:
    for number in (1, 2, 3):
        enqueue("note", {"n": number})
    make_due(Job.objects.get(payload={"n": 3}))
    queue.sweep()
    assert work == [{"n": 3}, {"n": 1}, {"n": 2}]


def test_a_failing_job_is_tried_again_ever_later_and_then_given_up(work: list[Any]) -> None:
    job = enqueue("note", {"error": "no luck"})
    delays = []
    for _ in range(queue.MAX_ATTEMPTS - 1):
        before = timezone.now()
        queue.run(claimed(job))
        job.refresh_from_db()
        assert (job.state, job.last_error, job.lease_until) == (
            "pending",
            "RuntimeError: no luck",
            None,
        )
        assert claim(job.pk) is None
        delays.append(
            round((job.run_at - before).total_seconds() / queue.FIRST_DELAY.total_seconds())
        )
        make_due(job)
    assert delays == [1, 2, 4, 8]
    queue.run(claimed(job))
    job.refresh_from_db()
    assert (job.state, job.attempts, len(work)) == (
        "failed",
        queue.MAX_ATTEMPTS,
        queue.MAX_ATTEMPTS,
    )
    assert claim(job.pk) is None


def test_a_failing_job_gives_way_to_the_same_work_that_waits(work: list[Any]) -> None:
    first = enqueue("note", {"error": "no luck"}, key="k")
    running = claimed(first)
    second = enqueue("note", {}, key="k")
    queue.run(running)
    first.refresh_from_db()
    assert first.state == "failed"
    assert first.last_error.startswith("RuntimeError: no luck (the same work")
    assert claim(second.pk)


def test_an_unknown_kind_fails_with_its_name(db: None) -> None:
    job = enqueue("conjure", {})
    tasks.run_job(job.pk)
    job.refresh_from_db()
    assert (job.state, job.last_error) == ("pending", "No worker knows the kind 'conjure'.")


def test_a_failed_job_can_be_retried_as_a_new_one(work: list[Any], alice: User) -> None:
    job = enqueue("note", {"n": 1}, key="k", requested_by=alice)
    with pytest.raises(InvalidOperation):
        queue.retry(job.pk)
    Job.objects.filter(pk=job.pk).update(state="failed", attempts=5, last_error="no luck")
    again = queue.retry(job.pk)
    assert (again.payload, again.key, again.requested_by, again.attempts) == (
        {"n": 1},
        "k",
        alice,
        0,
    )
    assert queue.retry(job.pk) == again
    assert Job.objects.get(pk=job.pk).last_error == "no luck"
    with pytest.raises(NotFound):
        queue.retry(10**9)


def test_a_lease_protects_a_running_job_until_it_expires(work: list[Any]) -> None:
    job = enqueue("note", {})
    first = claimed(job)
    assert claim(job.pk) is None
    assert claim_next() is None
    expire_lease(job)
    second = claim_next()
    assert second
    assert (second.id, second.attempt) == (first.id, first.attempt + 1)


@pytest.mark.parametrize("how", ["heartbeat", "progress"])
def test_a_sign_of_life_extends_the_lease(work: list[Any], how: str) -> None:
    job = enqueue("note", {})
    running = claimed(job)
    expire_lease(job)
    running.heartbeat() if how == "heartbeat" else running.progress(3, 10, "half way")
    assert claim(job.pk) is None
    job.refresh_from_db()
    assert job.progress == (
        {} if how == "heartbeat" else {"done": 3, "total": 10, "note": "half way"}
    )


def writes(running: RunningJob) -> list[Callable[[], Any]]:
    return [
        running.heartbeat,
        lambda: running.progress(1, 2),
        lambda: running.fail("late"),
        running.finish().__enter__,
    ]


@pytest.mark.parametrize("taken_over", ["reclaimed", "done by another", "given up"])
def test_who_lost_the_lease_can_write_nothing(
    work: list[Any], alice: User, taken_over: str
) -> None:
    job = enqueue("note", {})
    zombie = claimed(job)
    expire_lease(job)
    if taken_over == "given up":
        Job.objects.filter(pk=job.pk).update(attempts=queue.MAX_ATTEMPTS)
        queue.sweep()
    else:
        successor = claimed(job)
        if taken_over == "done by another":
            queue.run(successor)
    before = Job.objects.filter(pk=job.pk).values().get()
    for write in writes(zombie):
        with pytest.raises(queue.LostLease), transaction.atomic():
            write()
    queue.run(zombie)
    with pytest.raises(queue.LostLease), zombie.finish():
        ApiToken.objects.create(user=alice, name="effect", scope="read", digest="x")
    assert not ApiToken.objects.exists()
    assert Job.objects.filter(pk=job.pk).values().get() == before


def test_effect_and_done_commit_together_or_not_at_all(work: list[Any], alice: User) -> None:
    running = claimed(enqueue("note", {}))
    with pytest.raises(RuntimeError), running.finish():
        ApiToken.objects.create(user=alice, name="effect", scope="read", digest="x")
        raise RuntimeError
    assert not ApiToken.objects.exists()
    assert Job.objects.get().state == "running"
    with running.finish():
        ApiToken.objects.create(user=alice, name="effect", scope="read", digest="x")
    assert (Job.objects.get().state, ApiToken.objects.count()) == ("done", 1)


def test_a_job_that_kills_every_worker_is_given_up(work: list[Any]) -> None:
    job = enqueue("note", {}, key="k")
    for _ in range(queue.MAX_ATTEMPTS):
        claimed(job)
        expire_lease(job)
    waiting = enqueue("note", {"n": 2}, key="k")
    assert queue.sweep() == 1
    job.refresh_from_db()
    assert (job.state, work) == ("failed", [{"n": 2}])
    assert "worker died" in job.last_error
    waiting.refresh_from_db()
    assert waiting.state == "done"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("GET https://me:hunter2@ib.example/x failed", "https://me:[secret]@ib.example/x failed"),
        ("sent Authorization: Bearer hunter2hunter2", "[secret]"),
        ("token=hunter2&x=1", "token=[secret]&x=1"),
        ('{"password": "hunter2", "user": "me"}', '"user": "me"'),
        ("bl_hunter2hunter2hunter2hunter2hunter2hunter2", "[secret]"),
        ("NUL \x00 and \ud800 end", "NUL � and � end"),
    ],
)
def test_an_error_is_kept_without_secrets_and_storable(
    work: list[Any], text: str, kept: str
) -> None:
    queue.run(
        claimed(
            enqueue("note", {"error": "x"}) if "\x00" in text else enqueue("note", {"error": text})
        )
    )
    described = queue.describe(RuntimeError(text))
    assert kept in described
    assert "hunter2" not in described + Job.objects.get().last_error


def test_a_long_error_is_cut(db: None) -> None:
    assert len(queue.describe(RuntimeError("x" * 10_000))) == queue.MAX_ERROR


@pytest.mark.django_db(transaction=True, serialized_rollback=True)
def test_a_worker_is_woken_only_after_the_commit(work: list[Any]) -> None:
    with redis.Redis.from_url(settings.REDIS_URL) as broker:
        broker.delete("celery")
        with transaction.atomic():
            enqueue("note", {})
            assert broker.llen("celery") == 0
        assert broker.llen("celery") == 1
        broker.delete("celery")


def test_two_schedulers_give_one_run(work: list[Any]) -> None:
    tasks.enqueue_scheduled("note")
    tasks.enqueue_scheduled("note")
    queue.sweep()
    tasks.enqueue_scheduled("note")
    queue.sweep()
    assert len(work) == 1
    Job.objects.update(created_at=timezone.now() - timedelta(minutes=5))
    tasks.enqueue_scheduled("note")
    queue.sweep()
    assert len(work) == 2


def test_a_scheduled_kind_that_nobody_registered_is_skipped(db: None) -> None:
    tasks.enqueue_scheduled("conjure")
    assert not Job.objects.exists()


def test_the_sweep_runs_what_no_wake_up_reached(work: list[Any]) -> None:
    enqueue("note", {})
    tasks.sweep_jobs()
    assert work == [{}]


def old_and_new_rows(user: User) -> None:
    now = timezone.now()
    for number, age in enumerate([timedelta(hours=25)] * 3 + [timedelta(hours=23)]):
        IdempotencyKey.objects.create(
            user=user, key=str(number), body_hash="", answer={}, created_at=now - age
        )
    for state, age in (("done", 31), ("done", 29), ("failed", 31), ("running", 31)):
        moment = now - timedelta(days=age)
        Job.objects.create(
            kind="x",
            key=f"{state}{age}",
            state=state,
            run_at=moment,
            created_at=moment,
            finished_at=moment,
            lease_until=now + LONG_AGO,
        )


def test_prune_forgets_old_answers_and_done_jobs_in_chunks(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("resources_app.jobs.cleanup.CHUNK", 2)
    old_and_new_rows(alice)
    enqueue("prune", {}, key="prune")
    queue.sweep()
    assert list(IdempotencyKey.objects.values_list("key", flat=True)) == ["3"]
    kept = Job.objects.exclude(kind="prune").order_by("key").values_list("key", flat=True)
    assert list(kept) == ["done29", "failed31", "running31"]


def everything_but(runs: list[Job]) -> dict[str, list[dict[str, Any]]]:
    rows = {
        model._meta.label: list(model._base_manager.order_by("pk").values())
        for model in _kept_models()
    }
    own = {job.pk for job in runs}
    rows["resources_app.Job"] = [row for row in rows["resources_app.Job"] if row["id"] not in own]
    return rows


def _kept_models() -> list[Any]:
    """Return all models except the search index, which a rebuild swaps with an equal one."""
    return [model for model in apps.get_models() if model._meta.app_label != "search_app"]


@pytest.mark.parametrize("kind", sorted(queue.registered()))
def test_every_job_run_twice_leaves_the_same_database(alice: User, kind: str) -> None:
    make_task()
    old_and_new_rows(alice)
    runs: list[Job] = []
    after = []
    for _ in range(2):
        runs.append(enqueue(kind, {}, key=kind))
        queue.run(claimed(runs[-1]))
        assert Job.objects.get(pk=runs[-1].pk).state == "done"
        after.append(everything_but(runs))
    assert after[0] == after[1]
