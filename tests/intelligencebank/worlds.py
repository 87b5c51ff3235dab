"""Build small worlds of the fake, and clients for them that do not wait."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from resources_app.intelligencebank.client import IBClient, Session
from resources_app.intelligencebank.fake.profile import Profile
from resources_app.intelligencebank.fake.server import serving
from resources_app.intelligencebank.fake.service import FakeIB
from resources_app.intelligencebank.fake.world import ROOT_ID, Tenant
from resources_app.intelligencebank.hosts import HostPolicy
from resources_app.intelligencebank.retrying import Patience
from resources_app.intelligencebank.transport import Limits, Transport

SERVICE, SERVICE_PASSWORD = "service@example.com", "correct-horse-battery"
ALICE, BOB = "alice@example.com", "bob@example.com"


def fill_tenant(fake: FakeIB, client_id: str = "BnK4JV", resources: int = 40) -> Tenant:
    """Create Resources → Marketing → Logos, Photos; Resources → Legal.

    Alice sees Marketing, Bob Legal.
    """
    tenant = fake.tenant(client_id)
    tenant.add_person(SERVICE, SERVICE_PASSWORD, main_admin=True)
    marketing = tenant.add_folder("Marketing", description="Campaigns and brand")
    logos, photos = tenant.add_folder("Logos", marketing), tenant.add_folder("Photos", marketing)
    legal = tenant.add_folder("Legal")
    tenant.add_person(ALICE, "alice-secret-word").grants[marketing] = "access"
    tenant.add_person(BOB, "bob-secret-word").grants[legal] = "preview"
    tenant.fill(resources, [logos, photos, legal, ROOT_ID])
    return tenant


def folder_named(tenant: Tenant, name: str) -> str:
    return next(folder.id for folder in tenant.folders.values() if folder.name == name)


@contextmanager
def running_fake(profile: Profile | None = None, **options: Any) -> Iterator[FakeIB]:
    with serving(FakeIB(profile, **options)) as fake:
        yield fake


def local_hosts(fake: FakeIB) -> HostPolicy:
    return HostPolicy(local_origins=frozenset(fake.urls.values()))


def impatient(attempts: int = 6) -> Patience:
    return Patience(attempts=attempts, sleep=lambda seconds: None)


def client_for(fake: FakeIB, *, attempts: int = 6, **limits: Any) -> IBClient:
    return IBClient(
        fake.urls["platform"],
        Transport(local_hosts(fake), Limits(**limits)),
        patience=impatient(attempts),
    )


def service_session(client: IBClient) -> Session:
    return client.login(SERVICE, SERVICE_PASSWORD)
