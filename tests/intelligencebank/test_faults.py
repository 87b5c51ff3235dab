"""Test every fault in every stage: the run succeeds or says why, and nothing that still exists is
hidden.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import timezone

from resources_app.intelligencebank.fake.profile import FAULTS, TOUCHES, Fault
from resources_app.intelligencebank.fake.service import FakeIB, Query
from resources_app.intelligencebank.fake.world import ROOT_ID, Tenant
from resources_app.intelligencebank.hosts import HostPolicy
from resources_app.intelligencebank.sync import working
from resources_app.intelligencebank.transport import Limits, Transport
from resources_app.models import IBConnection, IBFolder, IBResource, IBSyncRun
from tests.intelligencebank.mirrors import all_ids, sync, visible_rows
from tests.intelligencebank.worlds import ALICE, SERVICE, fill_tenant, folder_named

STAGES_OF = {
    "full": ("address", "login", "folders", "resources", "in_folder", "by_id"),
    "incremental": ("recent",),
    "reconcile": ("by_id", "folders"),
}


@pytest.fixture
def tenant(fake: FakeIB) -> Tenant:
    return fill_tenant(fake, resources=120)


@pytest.fixture
def mirrored(connection: IBConnection) -> IBConnection:
    assert sync(connection).status == "complete"
    return connection


def _hurried(hosts: HostPolicy, _limits: object) -> Transport:
    return Transport(hosts, Limits(read=0.3, total=0.6))


@contextmanager
def _not_waiting_long(kind: str) -> Iterator[None]:
    """Shorten the timeout for a slow server.

    Other faults get the usual time, because a busy machine is no fault.
    """
    with pytest.MonkeyPatch.context() as patch:
        if kind.startswith("slow"):
            patch.setattr("resources_app.intelligencebank.connections.Transport", _hurried)
        yield


@pytest.mark.parametrize(("kind", "nth"), [(kind, 1 + at % 2) for at, kind in enumerate(FAULTS)])
def test_no_fault_in_any_stage_hides_what_is_there(
    fake: FakeIB, tenant: Tenant, mirrored: IBConnection, kind: str, nth: int
) -> None:
    """Inject a permanent fault, from the first call of a stage or from the second."""
    gone = sorted(all_ids(fake))[5]
    tenant.delete(gone)
    there = all_ids(fake)
    tried = 0
    for run_kind, stages in STAGES_OF.items():
        for stage in stages:
            fake.faults = [Fault(kind, stage, nth=nth, times=10**6)]
            if stage == "in_folder":
                _make_counts_differ(fake, tenant)
            fake.expire_sessions()
            with _not_waiting_long(kind):
                run = sync(mirrored, run_kind)
            tried += sum(fault.seen for fault in fake.faults) > 0
            fake.faults, fake.between = [], lambda query: None
            assert visible_rows(mirrored) - {gone} == there, (
                run_kind,
                stage,
                run.status,
                run.error,
            )
            assert not IBResource.objects.filter(tombstoned_at__isnull=False).exists()
            assert not IBFolder.objects.filter(hidden=True).exists()
            assert run.status in {"complete", "paused", "failed", "auth_required", "incomplete"}
            _settle(mirrored)
    assert tried == 9
    assert sync(mirrored).status == "complete", "and afterwards all is well"
    assert visible_rows(mirrored) == there


def _make_counts_differ(fake: FakeIB, tenant: Tenant) -> None:
    """Move a resource after the folders were read, which sends the run into single folders."""
    moving, logos, photos = (
        sorted(all_ids(fake))[0],
        folder_named(tenant, "Logos"),
        folder_named(tenant, "Photos"),
    )
    fake.between = lambda query: (
        tenant.move(moving, photos if tenant.home[tenant.resource(moving)] == logos else logos)
        if query.search.get("parent") == folder_named(tenant, "Marketing")
        else None
    )


def _settle(connection: IBConnection) -> None:
    """Reset the state, as an admin would, or the next day."""
    IBSyncRun.objects.filter(status="paused").update(status="failed")
    IBConnection.objects.filter(pk=connection.pk).update(state="ok", session=b"")


def test_a_pause_goes_on_where_it_was(fake: FakeIB, mirrored: IBConnection) -> None:
    fake.faults = [Fault("503", "resources", nth=2, times=2)]
    run = sync(mirrored)
    assert (run.status, run.checkpoint["stage"], run.checkpoint["offset"]) == (
        "paused",
        "resources",
        90,
    )
    assert run.resume_at is not None
    calls = fake.calls("folders")
    again = sync(mirrored)
    assert (again.pk, again.status) == (run.pk, "complete") and fake.calls("folders") == calls


def test_a_server_that_wants_to_be_left_alone_keeps_no_worker(
    fake: FakeIB, mirrored: IBConnection
) -> None:
    fake.profile = replace(fake.profile, retry_after="hours")
    fake.faults = [Fault("429", "resources", times=99)]
    run = sync(mirrored)
    assert (run.status, fake.calls("resources")) == ("paused", 3), (
        "two of the first run, and one that was not repeated"
    )
    assert timedelta(minutes=10) < run.resume_at - timezone.now() <= timedelta(minutes=15), (
        "a day is too long for us"
    )


def test_a_run_that_never_gets_anywhere_gives_up(fake: FakeIB, mirrored: IBConnection) -> None:
    fake.faults = [Fault("503", "resources", times=10**6)]
    outcomes = [sync(mirrored).status for _ in range(working.MAX_FAILURES)]
    assert outcomes == ["paused"] * (working.MAX_FAILURES - 1) + ["failed"]


@pytest.mark.parametrize("change", ["delete", "create", "update", "move", "mixed"])
def test_changes_between_pages_lose_nothing(
    fake: FakeIB, tenant: Tenant, connection: IBConnection, change: str
) -> None:
    tenant.fill(160, list(tenant.folders))
    sync(connection)
    state = {"n": 0}

    def between(query: Query) -> None:
        if query.stage != "resources" or query.offset > 400:
            return
        state["n"] += 1
        live = sorted(all_ids(fake))
        victim = live[state["n"] * 17 % len(live)]
        kind = (
            ("delete", "create", "update", "move")[state["n"] % 4] if change == "mixed" else change
        )
        if kind == "delete" and state["n"] < 12:
            tenant.delete(victim)
        elif kind == "create":
            tenant.add_resource(folder_named(tenant, "Legal"))
        elif kind == "update":
            tenant.update(victim, name="changed")
        elif kind == "move":
            tenant.move(victim, folder_named(tenant, "Logos"))

    fake.between = between
    run = sync(connection)
    fake.between = lambda query: None
    lost = (all_ids(fake) & set(IBResource.objects.values_list("ib_id", flat=True))) - visible_rows(
        connection
    )
    assert lost == set(), (run.status, run.error)
    assert sync(connection).status == "complete"
    assert visible_rows(connection) == all_ids(fake)


def _rename_client(fake: FakeIB, tenant: Tenant) -> None:
    fake.tenants["Renamed9"] = fake.tenants.pop(tenant.client_id)
    tenant.client_id = "Renamed9"


def _demote_account(fake: FakeIB, tenant: Tenant) -> None:
    service = tenant.people[SERVICE]
    service.is_main_admin = False
    service.grants |= {ROOT_ID: "admin", folder_named(tenant, "Legal"): None}


def _delete_subtree(fake: FakeIB, tenant: Tenant) -> None:
    tenant.delete_folder(folder_named(tenant, "Marketing"))


@pytest.mark.parametrize(
    ("mutate", "statuses"),
    [
        (_rename_client, {"auth_required"}),
        (_demote_account, {"tripped", "incomplete"}),
        (_delete_subtree, {"tripped", "incomplete"}),
    ],
)
def test_what_happens_to_tenant_account_or_tree_during_a_run_hides_nothing_before_somebody_looked(
    fake: FakeIB,
    tenant: Tenant,
    mirrored: IBConnection,
    mutate: Callable[[FakeIB, Tenant], None],
    statuses: set[str],
) -> None:
    before = visible_rows(mirrored)
    waiting = [mutate]
    fake.between = lambda query: (
        waiting.pop()(fake, tenant) if waiting and query.stage == "resources" else None
    )
    run = sync(mirrored)
    assert not waiting and run.status in statuses, run.error
    assert visible_rows(mirrored) == before and not IBFolder.objects.filter(hidden=True).exists()


@pytest.mark.parametrize(
    "switches",
    [
        {"expired": "200", "session": "sliding", "sessions": "single"},
        {"page_cap": 50},
        {"page_cap": 7},
        {"page_cap": 1000, "root_listing": "children"},
        {"deleted": "status", "ties": "shuffled"},
        {"count": "total", "touching": frozenset()},
        {"count": "stale", "touching": frozenset(TOUCHES)},
        {
            "login_failure": "401",
            "overload": "200",
            "calls_per_minute": 10_000,
            "ranges": "honoured",
        },
    ],
    # Sets print in another order in each process, and parallel workers must agree on the names.
    ids=lambda profile: ", ".join(
        f"{name}={sorted(value) if isinstance(value, frozenset) else value}"
        for name, value in profile.items()
    ),
)
def test_the_mirror_is_right_whatever_the_real_one_turns_out_to_be(
    fake: FakeIB, tenant: Tenant, connection: IBConnection, switches: dict[str, object]
) -> None:
    fake.profile = replace(fake.profile, **switches)
    assert sync(connection).status == "complete"
    assert visible_rows(connection) == all_ids(fake)
    gone, moved, tagged = sorted(all_ids(fake))[9:12]
    logos, legal = folder_named(tenant, "Logos"), folder_named(tenant, "Legal")
    tenant.delete(gone)
    tenant.move(moved, legal)
    tenant.tag(tagged, "retagged")
    tenant.move_folder(logos, legal)
    tenant.grant(ALICE, legal, "preview")
    fake.expire_sessions()
    run = sync(connection)
    is_stale = switches.get("count") == "stale"
    assert run.status == ("incomplete" if is_stale else "complete"), run.error
    assert visible_rows(connection) == all_ids(fake) | ({gone} if is_stale else set())
    assert IBFolder.objects.get(ib_id=logos).parent == IBResource.objects.get(ib_id=moved).folder
    assert IBResource.objects.get(ib_id=tagged).tags == ["retagged"]
    IBSyncRun.objects.filter(status="paused").update(status="failed")
    assert sync(connection, "reconcile").status == "complete"
    assert visible_rows(connection) == all_ids(fake)
