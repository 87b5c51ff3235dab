"""Test that the fake answers searches as the vendor's own connectors send them: words, extensions
and wrapped conditions.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from resources_app.intelligencebank.client import IBClient, Listing, Session
from resources_app.intelligencebank.failures import Refused
from resources_app.intelligencebank.fake.service import FakeIB
from resources_app.intelligencebank.fake.world import Tenant
from tests.intelligencebank.worlds import (
    ALICE,
    client_for,
    fill_tenant,
    folder_named,
    running_fake,
    service_session,
)


@pytest.fixture
def fake() -> Iterator[FakeIB]:
    with running_fake() as fake:
        yield fake


@pytest.fixture
def tenant(fake: FakeIB) -> Tenant:
    tenant = fill_tenant(fake)
    logos, legal = folder_named(tenant, "Logos"), folder_named(tenant, "Legal")
    tenant.add_resource(logos, name="Spring banner", description="Wide", tags=["hero"])
    tenant.add_resource(logos, name="Autumn banner", description="Narrow", tags=["spring cleaning"])
    tenant.add_resource(legal, name="Contract", description="About the spring banner", tags=[])
    return tenant


@pytest.fixture
def client(fake: FakeIB, tenant: Tenant) -> Iterator[IBClient]:
    client = client_for(fake)
    yield client
    client.close()


def condition(field: str, op: str, value: str, union: str = "and") -> dict[str, str]:
    return {"field": field, "value": value, "union": union, "type": "text", "op": op}


def names(client: IBClient, session: Session, **search: Any) -> list[str]:
    page = client.fetch(session, Listing("resource", search=tuple(search.items())))
    assert page.count == len(page.rows)
    return sorted(row["name"] for row in page.rows)


def test_words_are_looked_for_in_all_texts_or_in_those_that_are_named(
    client: IBClient, tenant: Tenant
) -> None:
    session = service_session(client)
    assert names(client, session, keywords="SPRING banner") == [
        "Autumn banner",
        "Contract",
        "Spring banner",
    ]
    assert names(client, session, keywords="spring banner", content=["name"], isSearching=True) == [
        "Spring banner"
    ]
    assert names(client, session, keywords="spring", ib_folder_s=folder_named(tenant, "Legal")) == [
        "Contract"
    ]
    assert names(client, session, keywords="nothing of this kind") == []
    [row] = client.fetch(session, Listing("resource", search=(("keywords", "hero"),))).rows
    assert row["matched"] == {"tags": "hero"}


def test_a_search_finds_only_what_the_person_may_see(client: IBClient) -> None:
    session = client.login(ALICE, "alice-secret-word")
    assert names(client, session, keywords="spring banner") == ["Autumn banner", "Spring banner"]


def test_files_are_found_by_their_extension(client: IBClient, tenant: Tenant) -> None:
    session = service_session(client)
    found = names(client, session, extension="gif", ib_folder_s=folder_named(tenant, "Legal"))
    assert 0 < len(found) < len(tenant.in_folder[folder_named(tenant, "Legal")])


def test_conditions_are_joined_as_they_say(client: IBClient, tenant: Tenant) -> None:
    session = service_session(client)
    spring, autumn = (
        condition("name", "equals", "Spring banner"),
        condition("name", "equals", "Autumn banner", "or"),
    )
    assert names(client, session, wrapped_conditions=[[spring]]) == ["Spring banner"]
    assert names(client, session, wrapped_conditions=[[spring, autumn]]) == [
        "Autumn banner",
        "Spring banner",
    ]
    assert names(client, session, wrapped_conditions=[[spring], [autumn]]) == []
    [row] = client.fetch(session, Listing("resource", search=(("keywords", "hero"),))).rows
    assert names(
        client, session, wrapped_conditions=[[condition("ib_uuid", "equals", row["_id"])]]
    ) == [row["name"]]


def test_the_same_search_may_stand_in_the_address(fake: FakeIB, client: IBClient) -> None:
    session = service_session(client)
    params = {
        f"searchParams[wrapped_conditions][0][0][{name}]": value
        for name, value in condition("name", "equals", "Spring banner").items()
    } | {"searchParams[keywords]": "spring", "searchParams[content][]": "name"}
    url = f"{fake.urls['v3']}/api/3.0.0/BnK4JV/resource.limit(0,10)"
    answer = httpx.get(url, params=params, headers={"sid": session.sid}, trust_env=False).json()[
        "response"
    ]
    assert [row["name"] for row in answer["rows"]] == ["Spring banner"] and answer["count"] == 1


@pytest.mark.parametrize("ranges", ["refused", "ignored", "honoured"])
def test_what_a_range_of_times_does_is_a_switch(
    fake: FakeIB, client: IBClient, tenant: Tenant, ranges: str
) -> None:
    fake.profile = replace(fake.profile, ranges=ranges)
    session = service_session(client)
    tenant.update(
        client.fetch(session, Listing("resource", limit=1)).rows[0]["_id"], name="Touched"
    )
    since = [[condition("lastUpdateTime", "gte", tenant.clock.strftime("%Y-%m-%dT%H:%M:%SZ"))]]
    if ranges == "refused":
        with pytest.raises(Refused):
            names(client, session, wrapped_conditions=since)
    else:
        found = names(client, session, wrapped_conditions=since)
        assert found == ["Touched"] if ranges == "honoured" else len(found) == 43
