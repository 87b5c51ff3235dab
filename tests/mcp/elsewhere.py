"""Run another process of the site that executes commands from JSON lines, as a worker, the admin or
a command would.
"""

import json
import sys
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import Group, User
from django.db import transaction
from django.utils import timezone

from resources_app.identity import tokens
from resources_app.identity.roles import Actor
from resources_app.intelligencebank import connections
from resources_app.intelligencebank.sync.pages import Mirror
from resources_app.models import ApiToken, Change, IBConnection, IBEntitlement, IBFolder, IBLink
from resources_app.writing import batches, stored_files, write_path
from tests.factories import make_user
from tests.intelligencebank import mirrors, worlds
from tests.security.callers import grant


def token(name: str, roles: list[str], scope: str = "write", label: str = "test") -> str:
    user = make_user(name, *roles)
    return tokens.create(user, label, scope)[1]


def granted(name: str, client: str, resources: list[str]) -> str:
    return grant(User.objects.get(username=name), client, "read write", resources)


def person(name: str, roles: list[str], password: str) -> None:
    user = make_user(name, *roles)
    user.set_password(password)
    user.save()


def deactivate(name: str) -> None:
    User.objects.filter(username=name).update(is_active=False)


def last_change(by: str) -> dict[str, Any]:
    change = Change.objects.filter(author__username=by).latest("pk")
    return {
        name: getattr(change, name)
        for name in ("via", "agent", "client", "scope", "address", "request_id")
    }


def revoke(name: str) -> None:
    for kept in ApiToken.objects.filter(user__username=name):
        tokens.revoke(kept)


def create(values: dict[str, Any], kind: str = "task", by: str = "carol") -> str:
    return write_path.create_item(_actor(by), kind, values).ref


def store(path: str, content: str, by: str = "carol") -> str:
    return stored_files.create_resource(_actor(by), path, content).path


def write(uri: str, operation: dict[str, Any], by: str = "carol") -> int:
    return int(write_path.write(_actor(by), uri, operation)["version"])


def write_many(operations: list[dict[str, Any]], by: str = "carol") -> int:
    return len(batches.write_batch(_actor(by), operations)["results"])


def write_and_roll_back(uri: str, operation: dict[str, Any], by: str = "carol") -> None:
    with transaction.atomic():
        write_path.write(_actor(by), uri, operation)
        transaction.set_rollback(True)


def archive(uri: str, by: str = "carol") -> None:
    write_path.archive(_actor(by), uri)


def join_group(name: str, group: str) -> None:
    User.objects.get(username=name).groups.add(Group.objects.get_or_create(name=group)[0])


def mirror(client_id: str, folder: str, resource: str, people: list[str]) -> None:
    """Mirror a tenant with one folder and one resource in it, and users who may see both."""
    ends = timezone.now() + timedelta(days=1)
    connection = connections.create(
        client_id, "Demo", "https://demo.intelligencebank.com", email="e", password="p"
    )
    with transaction.atomic():
        mirror = Mirror(connection, 1)
        mirror.keep_folders([{"_id": folder, "name": "Brand", "parent": ""}])
        mirror.keep_resources(
            [{"_id": resource, "folder": folder, "name": "A logo", "tags": ["logo"]}]
        )
        kept = IBFolder.objects.get(connection=connection)
        for name in people:
            link = IBLink.objects.create(
                user=User.objects.get(username=name), connection=connection, expires_at=ends
            )
            rights = {
                "may_list": True,
                "is_top": True,
                "verified_at": timezone.now(),
                "expires_at": ends,
            }
            IBEntitlement.objects.create(link=link, folder=kept, **rights)


def sync_tenant(platform_url: str, client_id: str) -> str:
    account = {"email": worlds.SERVICE, "password": worlds.SERVICE_PASSWORD}
    known = IBConnection.objects.filter(client_id=client_id).first()
    return mirrors.sync(
        known or connections.create(client_id, "Library", platform_url, **account)
    ).status


def link_person(name: str, client_id: str, email: str, password: str) -> int:
    connection = IBConnection.objects.get(client_id=client_id)
    linked = mirrors.link(User.objects.get(username=name), connection, email, password)
    return linked.entitlements.count()


def _actor(name: str) -> Actor:
    return Actor(User.objects.get(username=name), "admin", agent="elsewhere")


COMMANDS = {
    command.__name__: command
    for command in (
        *(token, granted, person, deactivate, last_change, revoke),
        *(create, store, write, write_many, write_and_roll_back, archive, join_group),
        *(mirror, sync_tenant, link_person),
    )
}


def obey() -> None:
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        name, arguments = json.loads(line)
        print(json.dumps(COMMANDS[name](**arguments)), flush=True)
