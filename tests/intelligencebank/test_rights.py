"""Test that each user sees what IntelligenceBank allows, everywhere, and no longer than it does."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User

from resources_app.errors import BacklogError, NotFound, ValidationFailed
from resources_app.identity.roles import Actor
from resources_app.intelligencebank import browsing, entitlements, linking
from resources_app.intelligencebank.fake.profile import Fault
from resources_app.intelligencebank.fake.service import FakeIB
from resources_app.intelligencebank.fake.world import Tenant
from resources_app.models import Change, IBConnection, IBLink, IBResource, Job
from resources_app.reading import watching
from resources_app.reading.by_address import read
from resources_app.reading.catalogue import complete, list_catalogue
from resources_app.reading.get_resource import get_resource
from resources_app.reading.read_many import read_many
from search_app.context import build_context
from search_app.search import search_unified
from tests.intelligencebank.mirrors import all_ids, connect, expire_rights, link, sync
from tests.intelligencebank.worlds import ALICE, fill_tenant, folder_named

Reader = Callable[[User], Any]


def as_reader(user: User) -> Actor:
    return Actor(user, "rest")


def listed(user: User) -> list[str]:
    rows, cursor = list_catalogue(as_reader(user), None)
    assert cursor is None
    return [row["name"] for row in rows if row["uri"].startswith("ib://")]


def names(shown: dict[str, Any]) -> list[str]:
    return [one["name"] for one in shown["subfolders"]]


def found(user: User, words: str = "asset") -> dict[str, Any]:
    return search_unified(user, words, types=["ib_resource", "ib_folder"], limit=100)


def test_two_people_see_their_own_parts(
    tenant: Tenant, alices_link: IBLink, bobs_link: IBLink, alice: User, bob: User, carol: User
) -> None:
    assert names(browsing.read_folder(alice, "BnK4JV", "root")) == ["Marketing"]
    assert names(browsing.read_folder(bob, "BnK4JV", "root")) == ["Legal"]
    assert names(browsing.read_folder(carol, "BnK4JV", "root")) == [], (
        "an admin without a link sees nothing"
    )
    assert (listed(alice), listed(bob), listed(carol)) == (["Marketing"], ["Legal"], [])
    marketing = browsing.read_folder(alice, "BnK4JV", folder_named(tenant, "Marketing"))
    assert (
        names(marketing) == ["Logos", "Photos"]
        and marketing["freshness"] == "fresh"
        and marketing["synced_at"]
    )
    with pytest.raises(NotFound):
        browsing.read_folder(bob, "BnK4JV", folder_named(tenant, "Marketing"))
    assert len({one["id"] for one in found(alice)["results"]}) == found(alice)["total"] == 20
    assert found(bob)["total"] == 10 and found(carol)["total"] == 0


def test_absent_and_forbidden_are_the_same_answer(
    tenant: Tenant, alices_link: IBLink, alice: User
) -> None:
    answers = []
    for folder in (folder_named(tenant, "Legal"), "f" * 32):
        with pytest.raises(NotFound) as refused:
            read(as_reader(alice), f"ib://BnK4JV/folders/{folder}")
        answers.append(refused.value.as_json())
    assert answers[0] == answers[1]


def test_an_asset_is_described_and_marked_as_untrusted(
    fake: FakeIB, alices_link: IBLink, alice: User
) -> None:
    [first, *_] = browsing.read_folder_resources(alice, "BnK4JV", _logos(fake))["results"]
    asset = read(as_reader(alice), first["uri"]).contents
    assert (
        asset == read(as_reader(alice), first["uri"].replace("/resources/", "/resource/")).contents
    )
    assert [crumb["name"] for crumb in asset["breadcrumbs"]] == ["Marketing", "Logos"]
    assert (
        "instructions" in asset["untrusted"]["note"]
        and "description" in asset["untrusted"]["fields"]
    )
    assert asset["download_url"] and asset["file"]["mime_type"].startswith("image/")
    assert asset["source_updated_at"].startswith("2020-") and asset["freshness"] == "fresh"


def _logos(fake: FakeIB) -> str:
    return folder_named(fake.tenants["BnK4JV"], "Logos")


def test_the_crumbs_above_show_only_what_one_may_see(
    fake: FakeIB, tenant: Tenant, mirrored: IBConnection, alice: User
) -> None:
    tenant.people[ALICE].grants = {_logos(fake): "preview"}
    link(alice, mirrored, ALICE, "alice-secret-word")
    assert listed(alice) == ["Logos"], "the tree begins where the right does"
    [first, *_] = browsing.read_folder_resources(alice, "BnK4JV", _logos(fake))["results"]
    asset = browsing.read_resource(alice, "BnK4JV", first["id"])
    assert [crumb["name"] for crumb in asset["breadcrumbs"]] == ["Logos"]
    assert asset["download_url"] is None, "a preview is no download"


READERS: dict[str, Reader] = {
    "read": lambda user: _try(lambda: browsing.read_folder(user, "BnK4JV", "root")["subfolders"]),
    "list": listed,
    "search": lambda user: found(user)["results"],
    "count": lambda user: found(user)["total"],
    "get_resource": lambda user: get_resource(as_reader(user), "ib://BnK4JV/folders/root")["data"][
        "subfolders"
    ],
    "completion": lambda user: complete(
        as_reader(user), "id", "", "ib://{clientid}/resources/{id}"
    ),
    "feed": lambda user: list(Change.objects.visible_to(user).filter(uri__startswith="ib://")),
    "ib_search": lambda user: read(as_reader(user), "ib://BnK4JV/search?q=asset").contents[
        "results"
    ],
}


def _try(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except NotFound:
        return None


@pytest.mark.parametrize("ending", ["revoked", "expired", "session", "unlinked"])
def test_a_right_that_ends_is_gone_everywhere(
    fake: FakeIB, tenant: Tenant, alices_link: IBLink, alice: User, ending: str
) -> None:
    tenant.update(_first(fake, tenant), name="A new asset name")
    sync(alices_link.connection)
    readers = READERS | _going_on(alice, _logos(fake))
    assert [way for way, reader in readers.items() if not reader(alice)] == [], "it is there before"
    if ending == "revoked":
        tenant.people[ALICE].grants.clear()
        entitlements.read_rights(alices_link)
    elif ending == "expired":
        tenant.people[ALICE].grants.clear()
        expire_rights(alices_link)
    elif ending == "session":
        linking.end_session(alices_link, "ended")
    else:
        linking.unlink(alice, "BnK4JV")
    assert [way for way, reader in readers.items() if reader(alice)] == []


def test_a_root_that_is_empty_because_rights_are_unknown_says_so(
    fake: FakeIB, alices_link: IBLink, alice: User, bob: User
) -> None:
    def root(user: User) -> Any:
        return read(as_reader(user), "ib://BnK4JV/folders/root").contents

    known = root(alice)
    assert known["total"] and known["freshness"] == "fresh" and "note" not in known
    assert "not linked" in root(bob)["note"]
    fake.faults = [Fault("503", "folders", times=99)]
    expire_rights(alices_link)
    entitlements.read_rights(alices_link)
    away = root(alice)
    assert (away["total"], away["freshness"]) == (0, "partial") and "could not be read" in away[
        "note"
    ]
    linking.end_session(alices_link, "The session in IntelligenceBank has ended; sign in again.")
    assert "sign in again" in root(alice)["note"]


def _going_on(user: User, folder: str) -> dict[str, Reader]:
    """Return readers that continue with what an entitled user got: a cursor and a subscription."""
    uri = f"ib://BnK4JV/folders/{folder}/resources"
    cursor = browsing.read_folder_resources(user, "BnK4JV", folder, limit=3)["next_cursor"]
    pks = list(Change.objects.filter(kind="ib_resource").values_list("pk", flat=True))
    return {
        "cursor": lambda user: _try(
            lambda: read(as_reader(user), f"{uri}?limit=3&cursor={cursor}").contents["results"]
        ),
        "subscribing": lambda user: _try(lambda: watching.may_watch(as_reader(user), uri)),
        "notifications": lambda user: watching.visible_among(user.pk, pks),
    }


def _first(fake: FakeIB, tenant: Tenant) -> str:
    logos = _logos(fake)
    return next(
        ib_id for ib_id in sorted(all_ids(fake)) if tenant.home[tenant.resource(ib_id)] == logos
    )


def test_a_cursor_belongs_to_one_person_and_one_list(
    fake: FakeIB, tenant: Tenant, alices_link: IBLink, alice: User, bob: User
) -> None:
    tenant.fill(30, [_logos(fake)])
    sync(alices_link.connection)
    seen, cursor, stolen = [], "", ""
    while cursor is not None:
        page = browsing.read_folder_resources(alice, "BnK4JV", _logos(fake), limit=7, cursor=cursor)
        seen += [one["id"] for one in page["results"]]
        cursor = page["next_cursor"]
        stolen = page["next_cursor"] or stolen
    assert len(seen) == len(set(seen)) == page["total"] == 40
    for bad in (stolen + "x", "nonsense", "MTox"):
        with pytest.raises(ValidationFailed):
            browsing.read_folder_resources(alice, "BnK4JV", _logos(fake), cursor=bad)
    with pytest.raises(ValidationFailed):
        browsing.read_folder_resources(
            alice, "BnK4JV", folder_named(tenant, "Photos"), cursor=stolen
        )
    alices_link.user = bob
    alices_link.save()
    with pytest.raises(ValidationFailed):
        browsing.read_folder_resources(bob, "BnK4JV", _logos(fake), cursor=stolen)


def test_rights_that_ran_out_are_looked_up_live_once(
    fake: FakeIB, tenant: Tenant, alices_link: IBLink, alice: User
) -> None:
    expire_rights(alices_link)
    before = fake.calls("folders")
    assert (
        browsing.read_folder(alice, "BnK4JV", folder_named(tenant, "Marketing"))["name"]
        == "Marketing"
    )
    assert fake.calls("folders") == before + 1
    browsing.read_folder(alice, "BnK4JV", folder_named(tenant, "Marketing"))
    assert fake.calls("folders") == before + 1, "the answer is kept"
    assert Job.objects.filter(kind="ib_rights", state="pending").exists(), (
        "and all others are read again"
    )


@pytest.mark.parametrize("kind", ["503", "401", "reset", "bad_json", "null_response"])
def test_when_the_live_look_fails_the_answer_is_no(
    fake: FakeIB, tenant: Tenant, alices_link: IBLink, alice: User, kind: str
) -> None:
    expire_rights(alices_link)
    fake.faults = [Fault(kind, "folders", times=99)]
    with pytest.raises(NotFound):
        browsing.read_folder(alice, "BnK4JV", folder_named(tenant, "Marketing"))


def test_a_crawl_of_rights_that_fails_leaves_the_old_ones_to_run_out(
    fake: FakeIB, alices_link: IBLink, alice: User
) -> None:
    fake.faults = [Fault("503", "folders", times=99)]
    entitlements.read_rights(alices_link)
    assert listed(alice) == ["Marketing"]
    alices_link.refresh_from_db()
    assert alices_link.error


def test_a_word_nobody_knows_is_no_right(
    tenant: Tenant, mirrored: IBConnection, alice: User, monkeypatch: Any
) -> None:
    monkeypatch.setitem(
        __import__("resources_app.intelligencebank.fake.world", fromlist=["LEVELS"]).LEVELS,
        "access",
        ["own", "see"],
    )
    link(alice, mirrored, ALICE, "alice-secret-word")
    assert listed(alice) == []


def test_two_tenants_with_equal_ids_never_cross(
    fake: FakeIB, alices_link: IBLink, alice: User, bob: User
) -> None:
    other = fill_tenant(fake, "6M0B")
    other.people.pop(ALICE)
    for person in other.people.values():
        person.password += "-other"
    connection = connect(fake, "6M0B")
    from resources_app.intelligencebank import connections

    connections.change_credentials(connection, "service@example.com", "correct-horse-battery-other")
    assert sync(connection).status == "complete"
    twins = IBResource.objects.filter(ib_id=_first(fake, other))
    assert sorted(twins.values_list("client_id", flat=True)) == ["6M0B", "BnK4JV"]
    assert all("6M0B" not in one["uri"] for one in found(alice)["results"])
    for uri in (
        "folders/root/resources",
        f"folders/{folder_named(other, 'Marketing')}",
        f"resources/{_first(fake, other)}",
    ):
        there, here = f"ib://6M0B/{uri}", f"ib://BnK4JV/{uri}"
        assert read(as_reader(alice), here).contents
        if "root" in uri:
            assert read(as_reader(alice), there).contents["results"] == []
        else:
            with pytest.raises(NotFound):
                read(as_reader(alice), there)
    other.update(_first(fake, other), name="changed over there")
    sync(connection)
    assert (
        IBResource.objects.get(client_id="BnK4JV", ib_id=_first(fake, other)).name
        != "changed over there"
    )


def test_whoever_watches_hears_of_it_while_entitled(
    fake: FakeIB, tenant: Tenant, alices_link: IBLink, bobs_link: IBLink, alice: User, bob: User
) -> None:
    first, logos, photos = _first(fake, tenant), _logos(fake), folder_named(tenant, "Photos")
    for uri in (
        f"resources/{first}",
        f"folders/{logos}/resources",
        f"folders/{logos}",
        "folders/root",
    ):
        assert watching.may_watch(as_reader(alice), f"ib://BnK4JV/{uri}")
    tenant.move(first, photos)
    sync(alices_link.connection)
    changed = list(Change.objects.filter(kind="ib_resource").order_by("pk"))
    assert [change.ref for change in changed] == [first]
    for uri in (f"resources/{first}", f"folders/{logos}/resources", f"folders/{photos}/resources"):
        assert watching.matches(changed[0], f"ib://BnK4JV/{uri}")
        assert not watching.matches(changed[0], f"ib://6M0B/{uri}")
    pks = [changed[0].pk]
    assert watching.visible_among(alice.pk, pks) == set(pks)
    assert watching.visible_among(bob.pk, pks) == set()
    tenant.delete(first)
    sync(alices_link.connection)
    removed = Change.objects.filter(kind="ib_resource").order_by("pk").last()
    assert removed.action == "remove" and watching.visible_among(alice.pk, [removed.pk])


def test_addresses_are_taken_to_the_letter(alices_link: IBLink, alice: User) -> None:
    from resources_app.errors import BacklogError

    for uri in (
        "ib://BnK4JV/folders/ROOT",
        "ib://bnk4jv/folders/root",
        "ib://BnK4JV/folders/" + "A" * 32,
        "ib://BnK4JV/folders/" + "a" * 31,
        "ib://BnK4JV/resources/root",
        "ib://BnK4JV/folders/root/resources/x",
        "ib://B.n/folders/root",
        "ib://user@BnK4JV/folders/root",
        "ib://BnK4JV:80/folders/root",
        "ib://BnK4JV/folders/%2e%2e",
        "ib://BnK4JV/folders/a%2Fb",
        "ib://BnK4JV/search",
        "ib://BnK4JV/search?q=a&q=b",
        "ib://BnK4JV/search?q=" + "a" * 257,
    ):
        with pytest.raises(BacklogError):
            read(as_reader(alice), uri)


def test_the_ids_that_search_returns_are_read_and_have_a_context(
    alices_link: IBLink, alice: User, bob: User
) -> None:
    for hit in [*found(alice)["results"][:2], *found(alice, "Marketing")["results"][:1]]:
        [shown] = read_many(as_reader(alice), [hit["id"]], 4000, None)["results"]
        assert shown["uri"] == hit["uri"] and "error" not in shown
        for name in (hit["id"], hit["uri"]):
            context = build_context(alice, id=name)
            assert context["focus"] == hit["uri"] and context["parts"][0]["role"] == "focus"
        [hidden] = read_many(as_reader(bob), [hit["id"]], 4000, None)["results"]
        assert "error" in hidden
        with pytest.raises(BacklogError):
            build_context(bob, id=hit["id"])
