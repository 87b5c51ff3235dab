"""Prepare a site for its pictures, in a separate process: users, an agent, and files of other
kinds.
"""

from django.contrib.auth.models import User

from resources_app.identity import tokens
from resources_app.identity.roles import Actor
from resources_app.writing import stored_files
from tests.factories import make_user

# Erin joined after the library: her account there is not linked.
PEOPLE: dict[str, tuple[str, ...]] = {
    "mallory": (),
    "alice": ("contributor",),
    "admin": ("admin",),
    "erin": ("viewer",),
}
SOURCE = '''"""One page of the folder tree at a time; a run that was killed goes on where it stood."""

from collections.abc import Iterator


def walk(client: Client, folder_id: str, depth: int = 0) -> Iterator[tuple[int, Node]]:
    for page in client.pages(f"/folders/{folder_id}/children"):
        for node in page.items:
            yield depth, node
            yield from walk(client, node.id, depth + 1)
'''
PICTURE = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 480 240" font-family="sans-serif" font-size="16">
<rect width="480" height="240" rx="12" fill="#eef0ff"/><g fill="#4f52d4"><rect x="30" y="90" width="120" height="60" rx="8"/>
<rect x="330" y="90" width="120" height="60" rx="8"/></g>
<path d="M160 120h150m-12-8 12 8-12 8" stroke="#4f52d4" stroke-width="3" fill="none"/>
<g fill="#fff" text-anchor="middle"><text x="90" y="126">source</text><text x="390" y="126">mirror</text></g></svg>"""


def create() -> str:
    """Return the token of an agent. `mallory` has no role; the empty site has no other user yet."""
    for name, roles in PEOPLE.items():
        if not User.objects.filter(username=name).exists():
            make_user(name, *roles)
    alice = User.objects.get(username="alice")
    return tokens.create(alice, "claude-code", "write")[1]


def set_password(password: str) -> None:
    for user in User.objects.filter(username__in=PEOPLE):
        user.set_password(password)
        user.save()


def store() -> None:
    actor = Actor(User.objects.get(username="alice"), "mcp", "claude-code")
    for name, content in (("sync.py", SOURCE), ("mirror.svg", PICTURE)):
        stored_files.create_resource(actor, f"resources/demo/{name}", content)
