"""Run a site with a mirrored tenant: Alice and Bob are linked with different rights, Carol and
Mallory are not.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from resources_app.intelligencebank.fake.service import FakeIB
from resources_app.intelligencebank.fake.world import Tenant
from tests.intelligencebank.worlds import ALICE, BOB, fill_tenant, running_fake
from tests.mcp.site import Site, running_site

CLIENT_ID = "vvVq"


@dataclass
class Library:
    site: Site
    fake: FakeIB
    tenant: Tenant
    tokens: dict[str, str]


@pytest.fixture(scope="module", name="library")
def running_library() -> Iterator[Library]:
    with running_fake() as fake:
        tenant = fill_tenant(fake, CLIENT_ID)
        origins = ",".join(fake.urls.values())
        with running_site(
            os.environ["REDIS_URL"], BACKLOG_IB_LOCAL_ORIGINS=origins, BACKLOG_LOG_LEVEL="DEBUG"
        ) as site:
            roles = {"alice": ["contributor"], "bob": ["viewer"], "carol": ["admin"], "mallory": []}
            tokens = {
                name: site.elsewhere.token(name=name, roles=of, scope="read")
                for name, of in roles.items()
            }
            assert (
                site.elsewhere.sync_tenant(platform_url=fake.urls["platform"], client_id=CLIENT_ID)
                == "complete"
            )
            for name, email, word in (
                ("alice", ALICE, "alice-secret-word"),
                ("bob", BOB, "bob-secret-word"),
            ):
                site.elsewhere.link_person(
                    name=name, client_id=CLIENT_ID, email=email, password=word
                )
            yield Library(site, fake, tenant, tokens)
