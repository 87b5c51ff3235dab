"""Test the folder page: as thumbnails or as a list, by name or by time, searched, paged; all state
is in the URL.
"""

import re
from html import unescape

import pytest
from django.contrib.auth.models import User
from django.test import Client

from resources_app.intelligencebank.fake.world import Tenant
from resources_app.models import IBLink, IBResource
from tests.intelligencebank.mirrors import sync
from tests.intelligencebank.worlds import folder_named
from tests.viewer.browsing import signed_in, text_of

LIBRARY = "/ib/BnK4JV"


@pytest.fixture
def logos(tenant: Tenant, alices_link: IBLink) -> str:
    folder = folder_named(tenant, "Logos")
    tenant.fill(80, [folder])
    sync(alices_link.connection)
    return f"{LIBRARY}/{folder}/"


def shown(page: str) -> list[str]:
    return re.findall(r'data-uri="ib://BnK4JV/resources/(\w+)"', page)


def all_pages(client: Client, path: str) -> list[str]:
    seen: list[str] = []
    folder, query = path.split("?")
    while query:
        page = text_of(client.get(f"{folder}?{query}"))
        seen += shown(page)
        more = re.search(r'href="\?([^"]*cursor=[^"]+)">Next page', page)
        query = unescape(more[1]) if more else ""
    return seen


def in_folder(logos: str, *order: str) -> list[str]:
    rows = IBResource.objects.filter(folder__ib_id=logos.split("/")[3])
    return list(rows.order_by(*order, "ib_id").values_list("ib_id", flat=True))


def test_a_list_keeps_its_order_from_page_to_page(logos: str, alice: User) -> None:
    client = signed_in(alice)
    assert all_pages(client, f"{logos}?view=list") == in_folder(logos, "sort_name")
    assert all_pages(client, f"{logos}?sort=changed") == in_folder(logos, "-updated_at")


def test_pictures_or_a_list_and_the_choice_stays_on_the_way(
    logos: str, tenant: Tenant, alice: User
) -> None:
    client = signed_in(alice)
    as_list = text_of(client.get(f"{logos}?view=list&sort=changed"))
    assert 'class="grid rows"' in as_list
    assert f"{LIBRARY}/{folder_named(tenant, 'Marketing')}/?view=list&amp;sort=changed" in as_list
    assert 'class="grid rows"' not in text_of(client.get(logos))


def test_a_search_stays_in_the_folder_and_from_the_top_finds_all(
    logos: str, tenant: Tenant, alice: User
) -> None:
    client, photos = signed_in(alice), f"{LIBRARY}/{folder_named(tenant, 'Photos')}/"
    wanted = (
        IBResource.objects.filter(folder__ib_id=logos.split("/")[3]).order_by("sort_name").first()
    )
    assert wanted is not None
    for sort in ("", "changed"):
        assert wanted.ib_id in all_pages(client, f"{logos}?search={wanted.name}&sort={sort}")
        assert wanted.ib_id in all_pages(
            client, f"{LIBRARY}/root/?search={wanted.name}&sort={sort}"
        )
        assert wanted.ib_id not in all_pages(client, f"{photos}?search={wanted.name}&sort={sort}")
    assert set(all_pages(client, f"{logos}?search=logo")) <= set(in_folder(logos))
    nothing = text_of(client.get(f"{photos}?search=xylophone"))
    assert (
        "Nothing here has “xylophone”" in nothing and f"{LIBRARY}/root/?search=xylophone" in nothing
    )


def test_nobody_finds_what_they_may_not_see(logos: str, bobs_link: IBLink, bob: User) -> None:
    client = signed_in(bob)
    for query in ("sort=changed", "search=logo"):
        assert client.get(f"{logos}?{query}").status_code == 404
    theirs = set(all_pages(client, f"{LIBRARY}/root/?search=logo"))
    assert not theirs & set(in_folder(logos))
