"""Import one stored file with the metadata file beside it."""

import datetime
from typing import Any

from django.contrib.auth.models import Group
from django.utils import timezone

from resources_app.errors import ValidationFailed
from resources_app.files.contents import MAX_BINARY_BYTES, Contents, examine_upload, facts_of
from resources_app.files.folders import check_path
from resources_app.history import revisions
from resources_app.history.documents import document_of, uri_of
from resources_app.history.revisions import Document
from resources_app.identity.roles import Actor
from resources_app.interchange.tree import ARCHIVE, AREAS, Report, Tree
from resources_app.models import Change, Resource
from resources_app.vocabulary import Kind, Via
from resources_app.writing import stored_files
from resources_app.writing.edits import Edit
from resources_app.writing.session import WriteSession
from resources_app.writing.write_path import write_transaction

_FACTS = ("title", "description", "tags", "groups")


def import_file(
    actor: Actor, tree: Tree, path: str, report: Report, *, as_document: bool = False
) -> None:
    """Import a file. It wins where it differs from the last import; local changes made since then
    stay.

    A document is a file outside the folders of the backlog. It is stored below resources/.
    """
    stored = check_path(f"{AREAS[0]}/{path}" if as_document else path.removeprefix(f"{ARCHIVE}/"))
    beside = tree.read_facts_beside(path)
    found = examine_upload(stored, tree.read(path, MAX_BINARY_BYTES), beside.get("mime_type"))
    facts = (
        facts_of(stored, found.text or "")
        | {"groups": []}
        | {name: beside[name] for name in _FACTS if name in beside}
    )
    archived_at = _archived_at(beside) if path == f"{ARCHIVE}/{stored}" else None
    with write_transaction():
        resource = Resource.objects.filter(path=stored).first()
        version = resource.version if resource else 0
        resource = _bring_in_line(actor, resource, stored, found, facts, archived_at)
    outcome = "unchanged" if resource.version == version else "updated" if version else "created"
    report.counts[f"resources {outcome}"] += 1


def _bring_in_line(
    actor: Actor,
    resource: Resource | None,
    path: str,
    found: Contents,
    facts: Document,
    archived_at: datetime.datetime | None,
) -> Resource:
    base = _last_imported(resource) if resource else {}
    if resource is None or (resource.archived_at and not archived_at and base.get("archived_at")):
        resource = _create(actor, path, found, facts)
    elif resource.root:
        raise ValidationFailed(
            "A mirrored file lies at this path; edit it where it is mirrored from."
        )
    elif _text_changed(resource, found, base) and not resource.archived_at:
        resource = stored_files.replace_content(actor, path, found.raw)
    now = document_of(resource)
    changed = {
        name: value
        for name, value in facts.items()
        if value != now[name] and value != base.get(name)
    }
    internal: Document = {}
    if archived_at and not resource.archived_at and not base.get("archived_at"):
        internal["archived_at"] = archived_at.isoformat()
    _make_groups(changed.get("groups", []))
    edit = Edit({"type": "merge", "value": changed}, changed, internal)
    WriteSession(actor).save(
        resource, edit, uri=uri_of(resource), action="archive" if internal else "update"
    )
    return resource


def _create(actor: Actor, path: str, found: Contents, facts: Document) -> Resource:
    _make_groups(facts["groups"])
    content = found.raw if found.text is None else found.text
    return stored_files.create_resource(actor, path, content, mime_type=found.mime_type, **facts)


def _text_changed(resource: Resource, found: Contents, base: Document) -> bool:
    same_as_imported = found.text is not None and base.get("content") == found.text
    return resource.sha256 != found.sha256 and not same_as_imported


def _last_imported(resource: Resource) -> Document:
    """Return the resource as the last import left it, or nothing if it was never imported."""
    imports = Change.objects.filter(
        kind=Kind.RESOURCE, object_id=resource.pk, via=Via.IMPORT
    ).order_by("-version")
    version = imports.values_list("version", flat=True).first()
    return revisions.document_at(Kind.RESOURCE, resource.pk, version) if version else {}


def _make_groups(names: Any) -> None:
    """Create missing groups.

    An empty group keeps the restriction; omitting it would show the file to the whole team.
    """
    for name in names if isinstance(names, list) else []:
        Group.objects.get_or_create(name=str(name)[:150])


def _archived_at(beside: dict[str, Any]) -> datetime.datetime:
    if "archived_at" not in beside:
        return timezone.now()
    try:
        moment = datetime.datetime.fromisoformat(beside["archived_at"])
        return (moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)).astimezone(
            datetime.UTC
        )
    except (TypeError, ValueError, OverflowError) as error:
        raise ValidationFailed(f"archived_at is not a time: {beside['archived_at']!r}.") from error
