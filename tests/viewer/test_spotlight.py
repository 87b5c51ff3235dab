"""The search box counts and marks its hits as the search itself does."""

import pytest
from django.contrib.auth.models import User
from django.test import RequestFactory

from search_app import admin_box
from search_app.semantic import worker
from search_app.semantic.snapshot import SNAPSHOT
from tests.factories import make_task
from tests.viewer.browsing import folded, signed_in


@pytest.fixture(autouse=True)
def texts(db: None) -> None:
    SNAPSHOT.forget()
    make_task(title="The automobile's ignition fails")
    make_task(title="Start of the year")
    while worker.embed_some(fence=lambda: None):
        pass


def shown(user: User, typed: str) -> str:
    return folded(signed_in(user).get("/spotlight/", {"q": typed}))


def test_hits_by_meaning_are_counted_apart(bob: User) -> None:
    answer = shown(bob, "car does not start")
    assert "In texts · 1 · Similar meaning · 1" in answer
    assert answer.count('<span class="sn">Similar meaning</span>') == 1
    assert "In texts" not in shown(bob, "car does not") and "Similar meaning · 1" in shown(
        bob, "car does not begin"
    )


@pytest.mark.parametrize("typed", ["zebra", "zzqqx", "cache"])
def test_nonsense_shows_nothing_here_and_in_the_admin(bob: User, carol: User, typed: str) -> None:
    assert "In texts" not in shown(bob, typed) and f"No text has “{typed}”" in shown(bob, typed)
    request = RequestFactory().get("/admin/")
    request.user = carol
    assert admin_box.find(request, typed) == []


def test_an_epic_that_does_not_exist_shows_nothing(bob: User) -> None:
    answer = signed_in(bob).get("/spotlight/", {"q": "automobile epic:EPIC-9999"})
    assert answer.status_code == 200 and "No text has" in answer.content.decode()
