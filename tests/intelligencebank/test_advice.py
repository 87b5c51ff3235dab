"""Test that a failed run says why and what to do: in the command, on the jobs page, to agents and
the doctor.
"""

from dataclasses import replace
from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from resources_app.identity.roles import Actor
from resources_app.intelligencebank.fake.profile import Fault, Profile, switched
from resources_app.intelligencebank.fake.service import FakeIB
from resources_app.intelligencebank.fake.world import Tenant
from resources_app.intelligencebank.sync.advice import ADVICE
from resources_app.intelligencebank.sync.standing import mirror_health
from resources_app.models import IBConnection, IBSyncRun, Job
from resources_app.reading.by_address import read
from tests.intelligencebank.mirrors import all_ids, sync
from tests.viewer.browsing import signed_in, text_of


def _told(carol: User, run: IBSyncRun) -> dict[str, object]:
    return read(Actor(carol, "rest"), f"workflow://workflows/sync-{run.pk}/status").contents


def _break(fake: FakeIB, tenant: Tenant, connection: IBConnection, status: str) -> None:
    if status == "paused":
        fake.faults = [Fault("html", "resources", times=99)]
    elif status == "failed":
        fake.faults = [Fault("404", "resources", times=99)]
    elif status == "auth_required":
        fake.faults = [Fault("401", "resources", times=99)]
    elif status == "tripped":
        for ib_id in sorted(all_ids(fake))[:6]:
            tenant.delete(ib_id)
    else:
        fake.profile = replace(fake.profile, count="stale")
        tenant.delete(sorted(all_ids(fake))[0])


@pytest.mark.parametrize("status", list(ADVICE))
def test_it_says_what_to_do(
    fake: FakeIB, tenant: Tenant, mirrored: IBConnection, carol: User, status: str
) -> None:
    assert [one.is_well for one in mirror_health()] == [True]
    _break(fake, tenant, mirrored, status)
    said = StringIO()
    with pytest.raises(CommandError):
        call_command("sync_ib", "BnK4JV", full=True, kind="full", stdout=said)
    run = IBSyncRun.objects.latest("pk")
    told = _told(carol, run)
    assert (run.status, told["error"], told["suggestion"]) == (status, run.error, ADVICE[status])
    assert run.error and run.error in said.getvalue() and ADVICE[status] in said.getvalue()
    assert (
        bool(told["resumes_at"])
        == Job.objects.filter(kind="ib_sync", run_at=run.resume_at).exists()
    )
    [standing] = mirror_health()
    assert (standing.is_well, standing.advice) == (
        False,
        ADVICE[status],
    ) and run.error in standing.message
    assert ADVICE[status].split("'")[0] in text_of(signed_in(carol).get("/sync/"))


def test_a_run_that_failed_is_started_again_from_the_page(
    fake: FakeIB, mirrored: IBConnection, carol: User
) -> None:
    fake.faults = [Fault("404", "resources", times=99)]
    failed = sync(mirrored)
    client = signed_in(carol)
    assert client.post("/sync/", {"again": f"sync-{failed.pk}"}).status_code == 200
    again = IBSyncRun.objects.latest("pk")
    assert again.pk != failed.pk and (again.kind, again.status) == ("full", "running")
    assert client.post("/sync/", {"again": "sync-999999"}).status_code == 404


@pytest.mark.parametrize(
    "options",
    [
        ["--fault", "nonsense"],
        ["--fault", "500@nowhere"],
        ["--set", "colour=red"],
        ["--set", "count=many"],
    ],
)
def test_the_fake_refuses_what_it_cannot_do(options: list[str]) -> None:
    with pytest.raises(CommandError):
        call_command("fake_ib", *options)


def test_the_fake_is_switched_by_words() -> None:
    profile = Profile()
    for name, value in (
        ("page_cap", "7"),
        ("count", "stale"),
        ("touching", "move+folder_move"),
        ("expired", "200"),
    ):
        profile = switched(profile, name, value)
    assert (profile.page_cap, profile.count, profile.expired) == (7, "stale", "200")
    assert (
        profile.touching == {"move", "folder_move"}
        and switched(profile, "touching", "").touching == set()
    )
