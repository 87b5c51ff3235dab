import os
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.mcp.site import Site, running_site


@dataclass(frozen=True)
class Tokens:
    """Hold the tokens: alice writes, bob reads, carol administers, mallory has no role."""

    alice: str
    bob: str
    carol: str
    mallory: str


@pytest.fixture(scope="session")
def site() -> Iterator[Site]:
    with running_site(os.environ["REDIS_URL"]) as running:
        yield running


@pytest.fixture(scope="session")
def tokens(site: Site) -> Tokens:
    return Tokens(
        alice=site.elsewhere.token(name="alice", roles=["contributor"]),
        bob=site.elsewhere.token(name="bob", roles=["viewer"], scope="read"),
        carol=site.elsewhere.token(name="carol", roles=["admin"], scope="admin"),
        mallory=site.elsewhere.token(name="mallory", roles=[], scope="read"),
    )
