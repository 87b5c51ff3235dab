"""Build the demo tenant, the library of a small marketing team, and a large tenant for
benchmarks.
"""

from resources_app.intelligencebank.fake.service import FakeIB
from resources_app.intelligencebank.fake.world import ROOT_ID, Tenant

CLIENT_ID = "DEMO42"
LARGE_ID = "LARGE1"
SERVICE, LARGE_SERVICE = "mirror@example.com", "large@example.com"
# Passwords of a fake that only this machine can reach.
PASSWORD = "demo-mirror-password"  # noqa: S105
PEOPLE_PASSWORD = "demo-person-password"  # noqa: S105
FOLDERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "Brand": ("Logos, colours and the guide to both", ("Logos", "Guidelines", "Fonts")),
    "Campaigns": ("What is running and what ran", ("Spring launch", "Summer sale", "Trade fair")),
    "Photos": ("Pictures that may be used, with their licences", ("Team", "Product", "Places")),
    "Legal": ("Contracts and releases; not for everybody", ("Releases",)),
}
NAMES = (
    *(
        "Logo on white",
        "Logo on dark",
        "Wordmark",
        "Brand guide 2026",
        "Colour sheet",
        "Hero banner",
        "Newsletter header",
    ),
    *(
        "Poster A2",
        "Booth panorama",
        "Team at work",
        "Founder portrait",
        "Product front",
        "Product side",
        "Packaging",
    ),
    *(
        "Skyline at dusk",
        "Office entrance",
        "Model release form",
        "Photo licence",
        "Social square",
        "Roll-up banner",
    ),
)
# Folder levels by user. Each member of the demo team signs in as name@example.com.
GRANTS: dict[str, dict[str, str]] = {
    "admin": {"Brand": "admin", "Campaigns": "admin", "Photos": "admin", "Legal": "admin"},
    "alice": {"Brand": "access", "Campaigns": "publish", "Photos": "access"},
    "bob": {"Brand": "preview", "Photos": "preview"},
}


def fill(fake: FakeIB) -> Tenant:
    tenant = fake.tenant(CLIENT_ID)
    tenant.add_person(SERVICE, PASSWORD, main_admin=True)
    for name, (description, below) in FOLDERS.items():
        parent = tenant.add_folder(name, description=description)
        for child in below:
            tenant.add_folder(child, parent)
    homes = [folder for folder in tenant.folders if folder != ROOT_ID]
    for index in range(3 * len(NAMES)):
        name = NAMES[index % len(NAMES)]
        described = f"{name}, version {index // len(NAMES) + 1}; used by the marketing team."
        fields = {
            "name": f"{name} {index // len(NAMES) + 1}",
            "description": described,
            "tags": name.lower().split()[:2],
        }
        tenant.add_resource(homes[index * 5 % len(homes)], **fields)
    for person, grants in GRANTS.items():
        added = tenant.add_person(f"{person}@example.com", PEOPLE_PASSWORD)
        added.grants |= {
            folder.id: grants[folder.name]
            for folder in tenant.folders.values()
            if folder.name in grants
        }
    return tenant


def fill_large(fake: FakeIB, resources: int) -> Tenant:
    """Create one folder per two thousand resources, up to fifty, each with ten subfolders."""
    areas = max(1, min(50, resources // 2_000))
    tenant = fake.tenant(LARGE_ID)
    tenant.add_person(LARGE_SERVICE, PASSWORD, main_admin=True)
    parents = [tenant.add_folder(f"Area {number}") for number in range(areas)]
    leaves = [
        tenant.add_folder(f"Shelf {number}", parents[number % areas])
        for number in range(10 * areas)
    ]
    tenant.fill(resources, leaves)
    return tenant
