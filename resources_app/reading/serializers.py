"""Build the JSON of every kind as plain dictionaries, for REST, MCP and the viewer."""

from collections.abc import Iterable, Sequence
from typing import Any

from resources_app.addresses.hidden_refs import Mask
from resources_app.fields.declarations import FIELDS, writable_names
from resources_app.history.documents import document_of, part_of, uri_of
from resources_app.history.etags import make_etag
from resources_app.history.revisions import Document
from resources_app.history.sequencing import position_of
from resources_app.identity.roles import Person
from resources_app.intelligencebank.sync.advice import ADVICE
from resources_app.models import Change, Comment, Epic, Folder, IBSyncRun, Job, Resource, Task
from resources_app.querying.queries import field_names
from resources_app.vocabulary import Kind
from resources_app.writing.results import warnings_about

# Kept in history but not shown to callers.
_INTERNAL = ("extra", "path")
# The fields of an item in a list read by agents: enough to choose by.
LINE_FIELDS = tuple(field.name for field in FIELDS[Kind.TASK].values() if field.is_listed)


def item_json(item: Task | Epic, user: Person) -> dict[str, Any]:
    return items_json([item], user)[0]


def items_json(
    items: Iterable[Task | Epic], user: Person, fields: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Return a page of items as the user sees them, with all fields or the given ones.

    Hidden ids are masked with one query.
    """
    return Mask(user).all_shown(
        _selected_json(item, fields) if fields else whole_item_json(item) for item in items
    )


def _selected_json(item: Task | Epic, fields: Sequence[str]) -> dict[str, Any]:
    named = {"epic_id" if name == "parent_id" else name for name in fields}
    document = part_of(item, named.intersection(writable_names(item.KIND)))
    document["archived_at"] = item.archived_at.isoformat() if item.archived_at else None
    shown = item_json_at(item, document, item.version)
    return {name: shown[name] for name in fields}


def whole_item_json(item: Task | Epic) -> dict[str, Any]:
    """Return the item with every id it names.

    Mask it before showing it to any user but its author.
    """
    return item_json_at(item, document_of(item), item.version)


def item_json_at(item: Task | Epic, document: Document, version: int) -> dict[str, Any]:
    """Return the item as of a version: fields from the document, identity from the row."""
    shown: dict[str, Any] = {"id": item.ref, "type": item.KIND}
    shown |= {name: value for name, value in document.items() if name not in _INTERNAL}
    if item.KIND == "task":
        shown["parent_id"] = shown.get("epic_id")
    return shown | {
        "created_at": item.created_at.isoformat(),
        "updated_at": item.updated_at.isoformat(),
        "version": version,
        "etag": make_etag(item.ref, version),
    }


def created_json(item: Task | Epic) -> dict[str, Any]:
    """Return a created item unmasked: it names nothing that is hidden from the caller who just
    wrote it.
    """
    warnings = warnings_about(item.description)
    return whole_item_json(item) | ({"warnings": warnings} if warnings else {})


def item_line(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item for a list read by agents: enough to choose by, without empty values or long
    text.
    """
    return {name: item[name] for name in LINE_FIELDS if item.get(name) not in (None, [], "none")}


def line_query(kind: str) -> tuple[str, str]:
    """Return the query parameter that reads the fields of `item_line` and no others."""
    known = field_names(kind)
    return "fields", ",".join(name for name in LINE_FIELDS if name in known)


def comment_json(comment: Comment) -> dict[str, Any]:
    return {
        "id": comment.pk,
        "uri": uri_of(comment),
        "item_id": comment.item.ref,
        "author": comment.author.username if comment.author else None,
        "agent": comment.agent,
        "body": comment.body,
        "created_at": comment.created_at.isoformat(),
        "updated_at": comment.updated_at.isoformat(),
        "version": comment.version,
        "etag": make_etag(comment.ref, comment.field_versions.get("body", 1), "body"),
    }


def resource_json(resource: Resource) -> dict[str, Any]:
    """Return the metadata of a file, without its content."""
    return {
        "path": resource.path,
        "uri": uri_of(resource),
        "type": "resource",
        "title": resource.title,
        "description": resource.description,
        "mime_type": resource.mime_type,
        "size": resource.size,
        "sha256": resource.sha256,
        "tags": resource.tags,
        "groups": resource.groups,
        "frontmatter": resource.frontmatter,
        "root": resource.root or None,
        "created_at": resource.created_at.isoformat(),
        "updated_at": resource.updated_at.isoformat(),
        "archived_at": resource.archived_at.isoformat() if resource.archived_at else None,
        "version": resource.version,
        "etag": make_etag(resource.ref, resource.version),
    }


def folder_json(folder: Folder, uri: str) -> dict[str, Any]:
    return {"path": folder.path, "uri": uri, "type": "folder"}


def change_json(change: Change) -> dict[str, Any]:
    return {
        "cursor": str(position_of(change)) if change.position else None,
        "uri": change.uri,
        "kind": change.kind,
        "id": change.ref,
        "version": change.version,
        "action": change.action,
        "fields": change.fields,
        "operation": change.operation,
        "author": change.author.username if change.author else None,
        "agent": change.agent,
        "token": change.token or None,
        "via": change.via,
        "batch": str(change.batch) if change.batch else None,
        "timestamp": change.created_at.isoformat(),
    }


def version_json(change: Change, etag: str) -> dict[str, Any]:
    return {
        "version": change.version,
        "etag": etag,
        "timestamp": change.created_at.isoformat(),
        "author": change.author.username if change.author else None,
        "agent": change.agent,
        "token": change.token or None,
        "via": change.via,
        "action": change.action,
        "fields": change.fields,
        "operation": change.operation,
    }


def sync_run_json(run: IBSyncRun) -> dict[str, Any]:
    """Present an IntelligenceBank sync run like a job. The worker jobs behind it are not shown."""
    states = {"running": "running", "paused": "pending", "complete": "done"}
    return {
        "id": f"sync-{run.pk}",
        "kind": f"ib_{run.kind}",
        "state": states.get(run.status, "failed"),
        "status": run.status,
        "client_id": run.connection.client_id,
        "progress": _sync_progress(run),
        "counters": run.counters,
        "error": run.error or None,
        "suggestion": ADVICE.get(run.status),
        "resumes_at": run.resume_at.isoformat() if run.resume_at else None,
        "created_at": run.started_at.isoformat(),
        "finished_at": run.finished_at.isoformat() if run.finished_at else None,
    }


def _sync_progress(run: IBSyncRun) -> dict[str, Any]:
    """Estimate the progress. Overlapping pages count rows twice, so the totals are approximate."""
    rows = run.counters.get("rows", 0)
    if run.finished_at:
        return {"done": rows, "total": 0, "note": f"{rows} rows read"}
    return {
        "done": rows,
        "total": max(rows, run.checkpoint.get("count") or 0),
        "note": run.checkpoint.get("stage", ""),
    }


def job_json(job: Job) -> dict[str, Any]:
    return {
        "id": job.pk,
        "kind": job.kind,
        "state": job.state,
        "attempts": job.attempts,
        "progress": job.progress,
        "error": job.last_error or None,
        "created_at": job.created_at.isoformat(),
        "finished_at": job.finished_at.isoformat() if job.finished_at else None,
    }
