"""Create, replace, move and remove stored files, each in one transaction with its change and
revision.

A path belongs to one row forever: creating a file at the path of an archived one continues it with
a new version.
"""

from dataclasses import replace
from typing import Any

from resources_app.addresses import uris
from resources_app.addresses.targets import resource_target
from resources_app.errors import BacklogError, PermissionDenied, ValidationFailed
from resources_app.files import folders
from resources_app.files.contents import (
    Contents,
    derived_columns,
    examine_upload,
    facts_of,
    mime_type_by_name,
)
from resources_app.files.disk import mount_of
from resources_app.history.documents import clean_changes, columns_for, uri_of
from resources_app.history.preconditions import preconditions
from resources_app.history.revisions import Document
from resources_app.identity.roles import Actor
from resources_app.models import Folder, Resource
from resources_app.models.base import Versioned
from resources_app.vocabulary import Kind
from resources_app.writing import write_path
from resources_app.writing.edits import Edit
from resources_app.writing.session import WriteSession, refuse_read_only
from resources_app.writing.write_path import Etag, write_transaction


def create_resource(
    actor: Actor,
    path: str,
    content: str | bytes,
    *,
    mime_type: str | None = None,
    title: str = "",
    description: str = "",
    tags: list[str] | None = None,
    groups: list[str] | None = None,
) -> Resource:
    """Create a file.

    Metadata that is not given is taken from the frontmatter of a markdown file.
    """
    _refuse_mounted(folders.check_path(path))
    found = examine_upload(path, content, mime_type)
    given = {"title": title, "description": description, "tags": tags, "groups": groups}
    facts = facts_of(path, found.text or "") | {
        name: value for name, value in given.items() if value
    }
    with write_transaction():
        session = WriteSession(actor)
        chain = folders.claim_for(path)
        old = _at_path(actor, path)
        folders.refuse_clash(actor.user, path)
        if old is None:
            return insert(session, path, chain, found, facts)
        renew(session, old, found, {"groups": []} | facts, action="create")
        return old


def upload(
    actor: Actor, path: str, content: bytes, *, mime_type: str | None = None, etag: Etag = None
) -> tuple[Resource, bool]:
    """Create the file or replace the existing one. Return it and whether it is new."""
    exists = Resource.objects.visible_to(actor.user).live().filter(path=path).exists()
    if exists or preconditions(etag).need_existence:
        return replace_content(actor, path, content, etag), False
    return create_resource(actor, path, content, mime_type=mime_type), True


def replace_content(actor: Actor, path: str, content: str | bytes, etag: Etag = None) -> Resource:
    """Replace a file's content, text or binary. Identical bytes change nothing."""
    found = examine_upload(path, content)
    with write_transaction():
        session = WriteSession(actor)
        resource = _lock(session, path, etag)
        if resource.sha256 != found.sha256:
            if (found.text is None) == (resource.content is None):
                found = replace(found, mime_type=resource.mime_type)
            renew(session, resource, found, {}, action="update")
    return resource


def move(actor: Actor, path: str, new_path: str, etag: Etag = None) -> Resource:
    _refuse_mounted(folders.check_path(new_path))
    with write_transaction():
        session = WriteSession(actor)
        resource = _lock(session, path, etag)
        if path == new_path:
            return resource
        folders.claim_for(new_path)
        if other := Resource.objects.filter(path=new_path).first():
            raise _taken(actor, other)
        folders.refuse_clash(actor.user, new_path, besides=resource.pk)
        _set_columns(resource, _named_columns(resource, new_path))
        edit = Edit({"type": "move", "from": path, "to": new_path}, internal={"path": new_path})
        session.save(resource, edit, uri=uris.build_path(new_path), action="move")
    return resource


def revise(actor: Actor, path: str, values: dict[str, Any], etag: Etag = None) -> str:
    """Move the file if `values` has another path, and set its other metadata, atomically.

    Return its path afterwards.
    """
    facts = {name: value for name, value in values.items() if name != "path"}
    with write_transaction():
        if "path" in values:
            path, etag = move(actor, path, values["path"], etag).path, None
        if facts or "path" not in values:
            write_path.write(actor, uris.build_path(path), {"type": "merge", "value": facts}, etag)
    return path


def remove(actor: Actor, path: str, etag: Etag = None) -> Versioned:
    """Archive a file. Its history and its path are kept."""
    _refuse_mounted(path)
    return write_path.archive(actor, uris.build_path(path), etag)


def insert(
    session: WriteSession,
    path: str,
    chain: list[Folder],
    found: Contents,
    facts: Document,
    root: str = "",
) -> Resource:
    """Insert a new row in the claimed folders."""
    document = clean_changes(Kind.RESOURCE, facts) | {"content": found.text}
    resource = Resource(
        path=path,
        folder=chain[-1],
        root=root,
        mime_type=found.mime_type,
        **(
            _binary_columns(found, root)
            if found.text is None
            else derived_columns(path, found.text)
        ),
        **columns_for(session.actor, Kind.RESOURCE, document),
    )
    session.insert(resource, document)
    resource.ancestors.add(*chain)
    return resource


def renew(
    session: WriteSession,
    resource: Resource,
    found: Contents,
    facts: Document,
    *,
    action: str,
    root: str = "",
) -> None:
    """Write a new version with other bytes.

    History keeps texts; of binary files it keeps only the hash.
    """
    binary = _binary_columns(found, root) if found.text is None else {}
    _set_columns(resource, {"root": root, "mime_type": found.mime_type, **binary})
    identity = {"sha256": found.sha256} if binary else {}
    edit = Edit(
        {"type": action, "sha256": found.sha256},
        changed=facts,
        internal={"content": found.text, "archived_at": None, **identity},
    )
    session.save(resource, edit, uri=uri_of(resource), action=action)


def _at_path(actor: Actor, path: str) -> Resource | None:
    """Return the archived resource that a new one at this path continues.

    Raises if the path is taken.
    """
    old = Resource.objects.select_for_update(no_key=True).filter(path=path).first()
    if old is None:
        return None
    if not old.archived_at or not _sees(actor, old):
        raise _taken(actor, old)
    return old


def _sees(actor: Actor, resource: Resource) -> bool:
    return Resource.objects.visible_to(actor.user).filter(pk=resource.pk).exists()


def _lock(session: WriteSession, path: str, etag: Etag) -> Resource:
    target = resource_target(path)
    resource = session.lock(target)
    assert isinstance(resource, Resource)  # noqa: S101  for the type checker: the target is a resource
    refuse_read_only(resource)
    session.check_etag(resource, target, etag)
    return resource


def _binary_columns(found: Contents, root: str) -> dict[str, Any]:
    """Return the columns of a binary file; those of a text are derived.

    The bytes of a mirrored file stay on disk.
    """
    return {
        "size": found.size,
        "sha256": found.sha256,
        "frontmatter": {},
        "blob": None if root else found.raw,
    }


def _named_columns(resource: Resource, new_path: str) -> dict[str, Any]:
    """Return the columns that depend on the file name, unless a user set them explicitly."""
    columns = derived_columns(new_path, resource.content) if resource.content is not None else {}
    by_name = mime_type_by_name(new_path)
    if (
        by_name
        and resource.content is not None
        and resource.mime_type == mime_type_by_name(resource.path)
    ):
        columns["mime_type"] = by_name
    return columns


def _set_columns(resource: Resource, columns: dict[str, Any]) -> None:
    """Set columns without history before the version is written, so that change listeners see the
    whole row.
    """
    Resource.objects.filter(pk=resource.pk).update(**columns)
    for name, value in columns.items():
        setattr(resource, name, value)


def _refuse_mounted(path: str) -> None:
    if place := mount_of(path):
        raise PermissionDenied(
            f"{place[0].prefix} is mirrored from a folder and read-only.",
            suggestion=(
                "Choose a path outside it, or edit the file where it lives; the next scan brings it"
                " here."
            ),
            path=path,
        )


def _taken(actor: Actor, by: Resource) -> BacklogError:
    path = by.path
    if not _sees(actor, by):
        return folders.reserved(path)
    return ValidationFailed(
        f"There is something at {path} already.",
        suggestion=(
            "Choose another path, or write to what is there. Creating it again continues an"
            " archived resource."
        ),
        field="path",
        value=path,
    )
