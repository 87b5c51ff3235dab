"""Test full, incremental and reconcile runs against the fake: what arrives, what changes, what is
hidden and when.
"""

import re
from datetime import timedelta

from django.db import connection as database
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from resources_app.intelligencebank.fake.service import FakeIB
from resources_app.intelligencebank.fake.world import ROOT_ID, Tenant
from resources_app.intelligencebank.sync import runs
from resources_app.models import IBConnection, IBFolder, IBQuarantine, IBResource
from tests.intelligencebank.mirrors import all_ids, content, sync, visible_rows
from tests.intelligencebank.worlds import folder_named


def test_a_full_run_mirrors_the_tree_and_every_resource(
    fake: FakeIB, connection: IBConnection
) -> None:
    run = sync(connection)
    assert (run.status, run.error) == ("complete", "")
    assert visible_rows(connection) == all_ids(fake)
    names = dict(IBFolder.objects.values_list("name", "parent__name"))
    assert names == {
        "Resources": None,
        "Marketing": "Resources",
        "Legal": "Resources",
        "Logos": "Marketing",
        "Photos": "Marketing",
    }
    assert run.counters["created"] == 45 and run.counters["calls"] == fake.calls(
        "folders", "resources"
    )


def test_nothing_volatile_or_signed_is_kept(fake: FakeIB, connection: IBConnection) -> None:
    sync(connection)
    stored = str(list(IBResource.objects.values())) + str(list(IBFolder.objects.values()))
    assert (
        "sid" not in stored
        and "token" not in stored
        and "\x07" not in stored
        and "\u202e" not in stored
    )
    assert not any(secret in stored for secret in fake.secrets)


def test_a_second_run_writes_only_generations(connection: IBConnection) -> None:
    sync(connection)
    before = content(connection)
    with CaptureQueriesContext(database) as queries:
        run = sync(connection)
    assert run.status == "complete" and run.counters["unchanged"] >= 45
    assert "created" not in run.counters and "updated" not in run.counters
    written = [
        query["sql"] for query in queries if query["sql"].startswith(("INSERT", "UPDATE", "DELETE"))
    ]
    kept = {
        sql
        for sql in written
        if not re.match(r'(INSERT INTO|UPDATE) "resources_app_ib(connection|syncrun)"', sql)
    }
    generations = (
        r'UPDATE "resources_app_ib(folder|resource)" SET "(children_)?generation" = \d+ WHERE'
    )
    assert kept and not [sql for sql in kept if not re.match(generations, sql)]
    assert content(connection) == before


def test_an_incremental_run_finds_what_changed_and_reads_little(
    fake: FakeIB, tenant: Tenant, connection: IBConnection
) -> None:
    tenant.clock = timezone.now() - timedelta(hours=2)
    sync(connection)
    tenant.clock = timezone.now() - timedelta(minutes=5)
    changed = sorted(all_ids(fake))[3]
    tenant.update(changed, name="Renamed poster")
    run = sync(connection, "incremental")
    assert run.status == "complete" and run.counters["updated"] == 1
    assert IBResource.objects.get(ib_id=changed).name == "Renamed poster"
    assert fake.calls("recent") == 1
    assert sync(connection, "incremental").counters.get("updated", 0) == 0


def test_the_watermark_is_never_later_than_the_run(
    fake: FakeIB, tenant: Tenant, connection: IBConnection
) -> None:
    sync(connection)
    tenant.update(sorted(all_ids(fake))[0], lastUpdateTime="2999-01-01T00:00:00Z")
    before = timezone.now()
    sync(connection, "incremental")
    assert connection.watermark is not None and connection.watermark <= timezone.now()
    assert connection.watermark <= before + timedelta(seconds=5)


def test_a_time_still_to_come_does_not_freeze_a_row(
    fake: FakeIB, tenant: Tenant, connection: IBConnection
) -> None:
    changed = sorted(all_ids(fake))[0]
    tenant.update(changed, lastUpdateTime="2999-01-01T00:00:00Z")
    sync(connection)
    tenant.update(changed, lastUpdateTime="2026-01-01T00:00:00Z", name="Put right")
    sync(connection)
    assert IBResource.objects.get(ib_id=changed).name == "Put right"


def test_names_of_any_length_and_script_are_kept(
    fake: FakeIB, tenant: Tenant, connection: IBConnection
) -> None:
    longest = "ש" * 9_999 + "界"
    ib_id = tenant.add_resource(
        folder_named(tenant, "Logos"), name=longest, lastUpdateTime="0000-00-00T00:00:00Z"
    )
    assert sync(connection).status == "complete"
    row = IBResource.objects.get(ib_id=ib_id)
    assert (row.name, row.source_updated_at) == (longest, None)


def test_a_new_folder_met_by_an_incremental_run_is_fetched(
    tenant: Tenant, connection: IBConnection
) -> None:
    sync(connection)
    videos = tenant.add_folder("Videos", folder_named(tenant, "Marketing"))
    tenant.clock = timezone.now()
    clip = tenant.add_resource(videos)
    tenant.update(clip, name="Clip")
    run = sync(connection, "incremental")
    assert run.status == "complete"
    assert IBResource.objects.get(ib_id=clip).folder == IBFolder.objects.get(ib_id=videos)


def test_what_is_missing_is_hidden_at_once_and_deleted_late(
    fake: FakeIB, tenant: Tenant, connection: IBConnection
) -> None:
    sync(connection)
    gone = sorted(all_ids(fake))[5]
    pk = IBResource.objects.get(ib_id=gone).pk
    tenant.delete(gone)
    assert sync(connection).counters["missing"] == 1
    row = IBResource.objects.get(pk=pk)
    assert row.missing_since and not row.tombstoned_at and gone not in visible_rows(connection)
    sync(connection)
    row.refresh_from_db()
    assert not row.tombstoned_at, "the second observation came too soon"
    IBResource.objects.filter(pk=pk).update(missing_since=timezone.now() - timedelta(hours=2))
    assert sync(connection, "reconcile").counters["tombstoned"] == 1
    tenant.restore(gone)
    sync(connection)
    row.refresh_from_db()
    assert (row.missing_since, row.tombstoned_at) == (None, None), "the same row came back to life"
    assert gone in visible_rows(connection)


def test_reconcile_finds_a_deletion(fake: FakeIB, tenant: Tenant, connection: IBConnection) -> None:
    sync(connection)
    gone = sorted(all_ids(fake))[7]
    tenant.delete(gone)
    run = sync(connection, "reconcile")
    assert (run.status, run.counters["missing"]) == ("complete", 1)
    assert visible_rows(connection) == all_ids(fake)


def test_too_much_missing_trips_the_breaker_until_somebody_has_looked(
    fake: FakeIB, tenant: Tenant, connection: IBConnection
) -> None:
    sync(connection)
    everything = visible_rows(connection)
    for ib_id in sorted(all_ids(fake))[:6]:
        tenant.delete(ib_id)
    run = sync(connection)
    assert (run.status, connection.state) == ("tripped", "tripped")
    assert visible_rows(connection) == everything
    runs.accept_missing(connection, 6)
    assert sync(connection).status == "complete"
    assert visible_rows(connection) == all_ids(fake)


def test_an_account_that_lost_its_rank_hides_nothing(
    fake: FakeIB, tenant: Tenant, connection: IBConnection
) -> None:
    sync(connection)
    everything = visible_rows(connection)
    service = tenant.people["service@example.com"]
    service.is_main_admin = False
    service.grants |= {ROOT_ID: "admin", folder_named(tenant, "Legal"): None}
    assert sync(connection).status == "tripped"
    assert visible_rows(connection) == everything
    runs.accept_last_trip(connection)
    run = sync(connection)
    assert (run.status, "rows are gone" in run.error) == ("tripped", True), (
        "its rank is accepted, the loss is not yet"
    )
    assert visible_rows(connection) == everything


def test_a_moved_folder_takes_its_resources_along(tenant: Tenant, connection: IBConnection) -> None:
    sync(connection)
    logos = folder_named(tenant, "Logos")
    tenant.move_folder(logos, folder_named(tenant, "Legal"))
    assert sync(connection).status == "complete"
    moved = IBFolder.objects.get(ib_id=logos)
    assert (moved.parent.name, moved.depth, moved.hidden) == ("Legal", 2, False)


def test_folders_that_go_in_circles_are_hidden_and_come_back(
    tenant: Tenant, connection: IBConnection
) -> None:
    """Move folders into a cycle.

    The root does not reach them, so IntelligenceBank does not list them either.
    """
    tenant.fill(400, [folder_named(tenant, "Legal")])
    sync(connection)
    everything, marketing = visible_rows(connection), folder_named(tenant, "Marketing")
    logos, photos = folder_named(tenant, "Logos"), folder_named(tenant, "Photos")
    tenant.move_folder(logos, photos)
    tenant.move_folder(photos, logos)
    assert sync(connection).status in {"complete", "incomplete"}
    assert sync(connection, "reconcile").status == "complete"
    assert set(IBFolder.objects.filter(hidden=True).values_list("ib_id", flat=True)) == {
        logos,
        photos,
    }
    tenant.move_folder(logos, logos)
    tenant.move_folder(photos, "f" * 32)
    assert sync(connection, "reconcile").status == "complete"
    assert set(IBFolder.objects.filter(hidden=True).values_list("ib_id", flat=True)) == {
        logos,
        photos,
    }
    for folder in (logos, photos):
        tenant.move_folder(folder, marketing)
    assert sync(connection).status == "complete"
    assert (
        visible_rows(connection) == everything and not IBFolder.objects.filter(hidden=True).exists()
    )


def test_cycles_orphans_and_self_parents_are_reported_and_hidden(
    tenant: Tenant, connection: IBConnection
) -> None:
    sync(connection)
    logos, photos = folder_named(tenant, "Logos"), folder_named(tenant, "Photos")
    IBFolder.objects.filter(ib_id=logos).update(parent_ib_id=photos)
    IBFolder.objects.filter(ib_id=photos).update(parent_ib_id=logos)
    legal = folder_named(tenant, "Legal")
    IBFolder.objects.filter(ib_id=legal).update(parent_ib_id="f" * 32)
    from resources_app.intelligencebank.sync import tree

    findings = tree.settle(connection)
    assert sorted(findings.cycles) == sorted([logos, photos]) and findings.orphans == [legal]
    assert set(IBFolder.objects.filter(hidden=True).values_list("ib_id", flat=True)) == {
        logos,
        photos,
        legal,
    }


def test_malformed_rows_are_put_aside_and_too_many_end_the_run(
    tenant: Tenant, connection: IBConnection
) -> None:
    sync(connection)
    everything = visible_rows(connection)
    tenant.changed[3] = {"name": None}
    run = sync(connection)
    assert (run.status, run.counters["quarantined"]) == ("failed", 1)
    assert IBQuarantine.objects.get().reason == "it has no name"
    assert visible_rows(connection) == everything


def test_a_wrong_password_stops_and_is_not_tried_again(
    fake: FakeIB, tenant: Tenant, connection: IBConnection
) -> None:
    tenant.people["service@example.com"].password = "changed"
    assert sync(connection).status == "auth_required"
    assert connection.state == "auth_required"
    assert sync(connection).status == "auth_required"
    assert fake.calls("login") == 1
