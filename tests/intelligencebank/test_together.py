"""Test the mirror together with context, jobs and deep trees, and the cost of a read."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection as database
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from resources_app import tasks  # tasks registers every kind of job  # noqa: F401
from resources_app.identity.roles import Actor
from resources_app.intelligencebank import browsing
from resources_app.intelligencebank.fake.profile import Fault
from resources_app.intelligencebank.fake.service import FakeIB
from resources_app.intelligencebank.fake.world import Tenant
from resources_app.intelligencebank.sync import scheduling, tree
from resources_app.intelligencebank.sync.refreshing import refresh_resource, request_refresh
from resources_app.jobs import queue  # tasks registers every kind of job
from resources_app.models import IBConnection, IBFolder, IBLink, IBResource, IBSyncRun, Job
from resources_app.reading.by_address import read
from search_app.context import build_context
from tests.factories import make_task
from tests.intelligencebank.mirrors import all_ids, sync
from tests.intelligencebank.worlds import folder_named


def test_the_context_of_a_task_has_the_assets_it_names_for_who_may_see_them(
    tenant: Tenant, alices_link: IBLink, bobs_link: IBLink, alice: User, bob: User
) -> None:
    asset = IBResource.objects.filter(folder__ib_id=folder_named(tenant, "Logos")).first()
    uri = f"ib://BnK4JV/resources/{asset.ib_id}"
    task = make_task(
        title="Asset number for the logo", references=[{"url": uri, "title": "the logo"}]
    )
    shown = {part["uri"]: part for part in build_context(alice, id=task.ref)["parts"]}
    assert shown[uri]["role"] == "reference" and "untrusted" in shown[uri]["content"]
    assert uri not in str(build_context(bob, id=task.ref)["parts"][1:])
    assert build_context(alice, query="asset number")["focus"].endswith(task.ref)


def test_workers_take_turns_until_the_run_is_complete(
    fake: FakeIB, tenant: Tenant, connection: IBConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant.fill(400, list(tenant.folders))
    monkeypatch.setattr(scheduling.working, "Turn", lambda: _Turn())
    run = scheduling.request_run(connection, "incremental")
    assert run.kind == "full", "the first is always full"
    assert scheduling.request_run(connection, "full").pk == run.pk, "asking twice is asking once"
    queue.sweep()
    run.refresh_from_db()
    assert run.status == "complete"
    assert Job.objects.filter(kind="ib_sync", state="done").count() > 3
    shown = read(Actor(User(is_superuser=True), "rest"), "workflow://workflows").contents["results"]
    assert [one["kind"] for one in shown if one["id"] == f"sync-{run.pk}"] == ["ib_full"]
    assert not [one for one in shown if one["kind"] == "ib_sync"]


class _Turn:
    pages, seconds = 2, 60.0


def test_a_paused_run_waits_for_its_time(fake: FakeIB, connection: IBConnection) -> None:
    fake.faults = [Fault("503", "folders", times=2)]
    run = scheduling.request_run(connection, "full")
    queue.sweep()
    run.refresh_from_db()
    waiting = Job.objects.get(kind="ib_sync", state="pending")
    assert run.status == "paused" and waiting.run_at == run.resume_at
    past = timezone.now() - timedelta(seconds=1)
    Job.objects.filter(pk=waiting.pk).update(run_at=past)
    IBSyncRun.objects.filter(pk=run.pk).update(resume_at=past)
    queue.sweep()
    run.refresh_from_db()
    assert run.status == "complete"


def test_the_schedule_leaves_alone_what_needs_a_person(connection: IBConnection) -> None:
    IBConnection.objects.update(state="auth_required")
    queue.enqueue("ib_incremental", {}, key="ib_incremental")
    queue.sweep()
    assert not IBSyncRun.objects.exists()


def test_one_thing_is_looked_at_again_when_somebody_asks(
    fake: FakeIB, tenant: Tenant, mirrored: IBConnection
) -> None:
    first, second = sorted(all_ids(fake))[:2]
    tenant.update(first, name="Just renamed")
    assert (
        refresh_resource(mirrored, first)
        and IBResource.objects.get(ib_id=first).name == "Just renamed"
    )
    tenant.delete(second)
    assert not refresh_resource(mirrored, second)
    gone = IBResource.objects.get(ib_id=second)
    assert gone.missing_since and not gone.tombstoned_at
    logos = folder_named(tenant, "Logos")
    new = tenant.add_resource(logos)
    request_refresh(IBFolder.objects.get(ib_id=logos))
    queue.sweep()
    assert IBResource.objects.filter(ib_id=new, folder__ib_id=logos).exists()
    assert sync(mirrored).status == "complete"


def test_the_tree_of_a_person_is_what_they_may_see(
    tenant: Tenant, alices_link: IBLink, alice: User
) -> None:
    folders = browsing.folder_tree(alice, "BnK4JV")["folders"]
    assert [(one["name"], one["depth"]) for one in folders] == [
        ("Marketing", 1),
        ("Logos", 2),
        ("Photos", 2),
    ]
    assert folders[1]["parent_id"] == folders[0]["id"]


def test_a_deep_and_wide_tree_is_placed_without_recursion() -> None:
    chain = [_node(depth, depth - 1) for depth in range(1000)]
    wide = [_node(1000 + number, 0) for number in range(49_000)]
    placed, findings = tree.place([*chain, *wide])
    assert placed["999"] == (999, False) and len(placed) == 50_000 and not findings.problems()


def _node(number: int, parent: int) -> tree.Node:
    return tree.Node(
        number, str(number), str(parent) if parent >= 0 else "", None, 0, False, is_gone=False
    )


def test_a_read_costs_the_same_however_much_there_is(
    fake: FakeIB, tenant: Tenant, alices_link: IBLink, alice: User
) -> None:
    logos = folder_named(tenant, "Logos")

    def cost(call: Any) -> int:
        with CaptureQueriesContext(database) as queries:
            call()
        return len(queries)

    def both() -> tuple[int, int]:
        user = User.objects.get(pk=alice.pk)
        return (
            cost(lambda: browsing.read_folder(user, "BnK4JV", folder_named(tenant, "Marketing"))),
            cost(lambda: browsing.read_folder_resources(user, "BnK4JV", logos)),
        )

    before = both()
    tenant.fill(120, [logos])
    sync(alices_link.connection)
    assert both() == before and max(before) <= 10
