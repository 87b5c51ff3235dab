"""Convert file:// links to mcp:// URIs where a configured root holds the file, and report the
others.
"""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Q

from resources_app.addresses import uris
from resources_app.addresses.targets import Target
from resources_app.errors import BacklogError, InvalidUri
from resources_app.files.disk import locate, mount_of
from resources_app.files.links import find_file_links, replace_file_links
from resources_app.history.documents import document_of, uri_of
from resources_app.identity.roles import Actor, system_actor
from resources_app.models import Comment, Epic, Folder, Resource, Task
from resources_app.models.base import Versioned
from resources_app.reading.by_address import read
from resources_app.writing.edits import Edit
from resources_app.writing.session import WriteSession
from resources_app.writing.write_path import write, write_transaction

SCHEME = "file://"
# Fields searched for links, by kind.
_FIELDS = {
    Task.KIND: ("description", "references", "evidence"),
    Epic.KIND: ("description", "references", "evidence"),
    Comment.KIND: ("body",),
    Resource.KIND: ("content", "description"),
}


@dataclass(frozen=True)
class FoundLink:
    """Describe a link. `target` is its replacement; without one, `reason` says why it stays."""

    where: str
    field: str
    link: str
    target: str | None
    reason: str = ""


@dataclass
class Conversion:
    found: list[FoundLink] = field(default_factory=list)
    # Objects that could not be written, with the reason.
    failed: list[tuple[str, str]] = field(default_factory=list)
    things_written: int = 0

    @property
    def convertible(self) -> list[FoundLink]:
        return [one for one in self.found if one.target]

    @property
    def warnings(self) -> list[FoundLink]:
        return [one for one in self.found if not one.target]


def convert_links(*, apply: bool) -> Conversion:
    conversion = Conversion()
    for thing in _things_with_links():
        found = _links_of(thing)
        conversion.found += found
        if apply and any(one.target for one in found):
            _write(thing, conversion)
    return conversion


def convert_description(actor: Actor, item_uri: str) -> int:
    """Convert the links of one description as the actor and return the number converted.

    Links to files that the actor cannot see stay.
    """
    uri = f"{item_uri}/description"
    reading = read(actor, uri)
    targets = {
        link.uri: _portable_for(actor, link.uri) for link in find_file_links(reading.contents)
    }
    text = replace_file_links(reading.contents, targets.get)
    if text != reading.contents:
        write(actor, uri, {"type": "set", "value": text}, reading.etag)
    return sum(target is not None for target in targets.values())


def _portable_for(actor: Actor, link: str) -> str | None:
    target, _ = portable(link)
    try:
        return target if target and read(actor, target) else None
    except BacklogError:
        return None


def portable(link: str) -> tuple[str | None, str]:
    """Return the machine-independent URI, or the reason why there is none."""
    try:
        uri = uris.parse(link)
    except InvalidUri as error:
        return None, error.message
    place = locate("/" + uri.path)
    if place is None:
        return None, "lies in no configured folder"
    path = place[0].path_of(place[1])
    if mount_of(path) != place:
        return None, f"another folder is shown at {path}"
    if not (
        Resource.objects.live().filter(path=path).exists()
        or Folder.objects.filter(path=path).exists()
    ):
        return None, f"is not mirrored at {path}; scan_resources may bring it"
    return uris.build_path(path) + (f"#{uri.fragment}" if uri.fragment else ""), ""


def _things_with_links() -> Iterator[Versioned]:
    """Yield the writable objects that may contain links: nothing archived or mirrored."""
    for model in (Task, Epic):
        maybe = Q(description__contains=SCHEME) | ~Q(references=[]) | ~Q(evidence=[])
        yield from (
            model.objects.live().filter(maybe).select_related("assignee").order_by("pk").iterator()
        )
    yield from (
        Comment.objects.live()
        .filter(body__contains=SCHEME)
        .select_related("task", "epic")
        .order_by("pk")
        .iterator()
    )
    texts = Q(content__contains=SCHEME) | Q(description__contains=SCHEME)
    yield from Resource.objects.live().filter(texts, root="").order_by("pk").iterator()


def _links_of(thing: Versioned) -> list[FoundLink]:
    document, where = document_of(thing), uri_of(thing)
    return [
        FoundLink(where, name, link.uri, *portable(link.uri))
        for name in _FIELDS[thing.KIND]
        for text in _texts(document[name])
        for link in find_file_links(text)
    ]


def _texts(value: Any) -> list[str]:
    if isinstance(value, list):
        return [entry["url"] if isinstance(entry, dict) else entry for entry in value]
    return [value] if value else []


def _write(thing: Versioned, conversion: Conversion) -> None:
    """Write each object in a separate transaction and batch, based on its current state."""
    try:
        with write_transaction():
            session = WriteSession(system_actor("import"), uuid.uuid4())
            locked = session.lock(Target(thing.KIND, ("pk", thing.pk)))
            document = document_of(locked)
            changed = {
                name: _converted(document[name]) for name in _FIELDS[thing.KIND] if document[name]
            }
            session.save(
                locked, Edit({"type": "convert_uris"}, changed), uri=uri_of(locked), action="update"
            )
    except BacklogError as error:
        conversion.failed.append((uri_of(thing), error.message))
    else:
        conversion.things_written += 1


def _converted(value: Any) -> Any:
    if isinstance(value, list):
        return [_converted(entry) for entry in value]
    if isinstance(value, dict):
        return value | {"url": _converted(value["url"])}
    return replace_file_links(value, lambda link: portable(link)[0])
