"""Serve thumbnails from a disk cache, and downloads with the user's own session after a live
check.
"""

import hashlib
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import IO

from django.conf import settings

from resources_app.errors import NotFound, PermissionDenied, Unavailable
from resources_app.identity.roles import Person
from resources_app.intelligencebank import browsing, connections, linking, mapping, metrics
from resources_app.intelligencebank import client as api
from resources_app.intelligencebank.client import IBClient, Session
from resources_app.intelligencebank.failures import (
    AuthRequired,
    ForbiddenHost,
    IBFailure,
    Refused,
    SessionExpired,
)
from resources_app.intelligencebank.linking import connection_for
from resources_app.intelligencebank.sync import refreshing
from resources_app.intelligencebank.transport import decoded
from resources_app.models import IBConnection, IBFolder, IBResource

MAX_THUMBNAIL = 2_000_000
MAX_DOWNLOAD = 500_000_000
IN_MEMORY = 8_000_000
CHUNK = 262_144
# Detected by magic bytes, regardless of what the server claims. No SVG, because it can carry
# scripts.
_PICTURES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}


@dataclass(frozen=True)
class Picture:
    content: bytes
    mime_type: str


@dataclass(frozen=True)
class Download:
    name: str
    size: int
    file: IO[bytes]

    def chunks(self) -> Iterator[bytes]:
        with self.file:
            while part := self.file.read(CHUNK):
                yield part


def thumbnail(user: Person, client_id: str, area: str, ib_id: str) -> Picture:
    """Return a thumbnail the user can see. It is fetched from the CDN once, without a session."""
    connection = connection_for(user, client_id)
    thing = _visible(user, connection, area, ib_id)
    if not thing.thumbnail:
        raise NotFound("There is no thumbnail.")
    place = _place(thing)
    if place.exists():
        metrics.count(client_id, "thumbnail_hits")
        return _picture(place.read_bytes())
    metrics.count(client_id, "thumbnail_misses")
    picture = _picture(_fetch_public(connection, thing.thumbnail))
    _keep(place, picture.content)
    return picture


def _visible(
    user: Person, connection: IBConnection, area: str, ib_id: str
) -> IBFolder | IBResource:
    if area == "resources":
        return browsing.visible_resource(user, connection, ib_id)
    folder = IBFolder.objects.visible_to(user).filter(connection=connection, ib_id=ib_id).first()
    if folder is None:
        raise NotFound("There is no such folder in IntelligenceBank (or it is not visible to you).")
    return folder


def _fetch_public(connection: IBConnection, url: str) -> bytes:
    client = connections.client_for(connection, hurried=True)
    try:
        answer = client.open_public(url)
    except ForbiddenHost:
        raise NotFound("The thumbnail lies on a host that is not allowed.") from None
    except IBFailure as failure:
        raise Unavailable(str(failure)) from None
    finally:
        client.close()
    if answer.status != 200 or len(answer.body) > MAX_THUMBNAIL:
        raise NotFound("There is no thumbnail.")
    return answer.body


def _picture(content: bytes) -> Picture:
    for start, mime_type in _PICTURES.items():
        if content.startswith(start):
            return Picture(content, mime_type)
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return Picture(content, "image/webp")
    raise NotFound("There is no thumbnail that can be shown.")


def _place(thing: IBFolder | IBResource) -> Path:
    """Return the cache path.

    It changes with each version, and no IntelligenceBank name becomes part of it.
    """
    named = f"{thing.client_id}/{thing.ib_id}/{thing.thumbnail}/{getattr(thing, 'file_hash', '')}"
    digest = hashlib.sha256(named.encode()).hexdigest()
    return Path(settings.DATA_DIR) / "ib-thumbnails" / digest[:2] / digest


def _keep(place: Path, content: bytes) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=place.parent, delete=False) as draft:
        draft.write(content)
    Path(draft.name).replace(place)


def download(user: Person, client_id: str, resource_id: str) -> Download:
    """Download a file after a live check as this user.

    The mirror alone does not authorize a download.
    """
    connection = connection_for(user, client_id)
    resource = browsing.visible_resource(user, connection, resource_id)
    link = linking.link_of(user, connection)
    if link is None:
        raise NotFound(
            "There is no such resource in IntelligenceBank (or it is not visible to you)."
        )
    client = connections.client_for(connection, hurried=True)
    try:
        session = linking.session_of(link)
        _check_live(client, session, resource)
        return _fetch(client, session, resource)
    except (AuthRequired, SessionExpired) as failure:
        linking.end_session(link, str(failure))
        raise PermissionDenied(
            "Your session in IntelligenceBank has ended.", suggestion="Link it again."
        ) from None
    except IBFailure as failure:
        raise Unavailable(str(failure)) from None
    finally:
        client.close()


def _check_live(client: IBClient, session: Session, resource: IBResource) -> None:
    page = client.fetch(session, api.resources_by_id([resource.ib_id]))
    rows = [row for row in page.rows if mapping.id_of(row) == resource.ib_id]
    if not rows:
        refreshing.request_refresh(resource)
        raise NotFound(
            "There is no such resource in IntelligenceBank (or it is not visible to you)."
        )
    if not {"view", "publish", "admin"} & set(mapping.allowed_actions(rows[0])):
        raise PermissionDenied("IntelligenceBank lets you see this resource, but not download it.")


def _fetch(client: IBClient, session: Session, resource: IBResource) -> Download:
    """Fetch the whole file before responding: an interrupted download is an error, not half a
    file.
    """
    spool: IO[bytes] = tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115  # closed by the response
    with client.open_file(session, resource.ib_id) as response:
        if response.status_code == 401:
            raise SessionExpired("The session has expired.")
        if response.status_code != 200:
            raise Refused("IntelligenceBank did not hand out the file.", response.status_code)
        size = sum(spool.write(part) for part in decoded(response, MAX_DOWNLOAD))
        name = (
            _file_name(response.headers.get("content-disposition", ""))
            or resource.file_name
            or resource.ib_id
        )
    spool.seek(0)
    return Download(name, size, spool)


def _file_name(disposition: str) -> str:
    message = Message()
    message["content-disposition"] = disposition
    return re.sub(r"[\x00-\x1f\x7f/\\\"]", "", message.get_filename() or "")[:200]
