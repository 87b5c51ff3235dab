"""Build the response of a write (new ETag and diff) and of a conflict (diff from the caller's
version to now).
"""

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from resources_app.addresses.targets import Target
from resources_app.editing.text import Splice, splices_between, unified_diff
from resources_app.errors import NotFound
from resources_app.fields.declarations import FIELDS, Field
from resources_app.files.links import machine_specific_paths
from resources_app.history import revisions
from resources_app.history.etags import make_etag
from resources_app.history.revisions import Document
from resources_app.models import Resource
from resources_app.models.base import Versioned
from resources_app.vocabulary import Kind

MAX_WARNINGS = 10


def outcome_of(
    thing: Versioned,
    target: Target,
    uri: str,
    before: Document,
    after: Document,
    splices: Mapping[str, list[Splice]],
    *,
    asked: Collection[str],
) -> dict[str, Any]:
    """Return the response of a write.

    `before` and `after` are masked for the caller. `asked` names the fields the caller changed;
    metadata derived from a file's frontmatter follows its text.
    """
    warnings = warnings_about("\n".join(_added_texts(thing, before, after, splices)))
    version = thing.field_versions.get(target.etag_field, 1) if target.field else thing.version
    return {
        "uri": uri,
        "etag": make_etag(thing.ref, version, target.etag_field),
        "version": thing.version,
        "mime_type": mime_type_of(thing, target),
        "size": size_of(value_at(target, after)),
        "diff": _diff(thing, _text_alone(target, asked), before, after, splices),
        **({"warnings": warnings} if warnings else {}),
    }


def warnings_about(text: str) -> list[str]:
    """Return warnings about text that is saved as is but will cause trouble."""
    return [
        f"{path} works on one machine only; write mcp://backlog/resources/… instead (manage.py"
        " convert_uris)."
        for path in machine_specific_paths(text)[:MAX_WARNINGS]
    ]


def _added_texts(
    thing: Versioned, before: Document, after: Document, splices: Mapping[str, list[Splice]]
) -> Iterator[str]:
    """Yield only the text added by this write, so that the cost depends on the edit and not on the
    whole text.
    """
    for name, field in FIELDS[thing.KIND].items():
        old, new = before.get(name), after.get(name)
        if field.shape == "text" and isinstance(old, str) and isinstance(new, str) and old != new:
            yield from (
                inserted for _, _, inserted in splices.get(name) or splices_between(old, new)
            )


def describe_change(
    thing: Versioned,
    target: Target,
    since_version: int,
    now: Document,
    as_seen: Callable[[list[Document]], list[Document]],
) -> Any:
    """Return the diff for a conflict, or None if the history of that version is gone."""
    try:
        then = revisions.document_at(thing.KIND, thing.pk, since_version)
    except NotFound:
        return None
    then, now = as_seen([then, now])
    return _diff(thing, target, then, now, {})


def mime_type_of(thing: Versioned, target: Target) -> str:
    if target.index is not None:
        return (
            "text/plain"
            if target.field and target.field.name != "references"
            else "application/json"
        )
    if target.field:
        return target.field.mime_type
    return thing.mime_type if isinstance(thing, Resource) else "application/json"


def value_at(target: Target, document: Document) -> Any:
    if target.field is None:
        return document.get("content", document)
    value = document.get(target.field.name)
    if target.index is None:
        return value
    if not isinstance(value, list) or target.index >= len(value):
        raise NotFound(
            f"{target.field.name} has no element {target.index}.", field=target.field.name
        )
    return value[target.index]


def size_of(value: Any) -> int:
    """Return the size in bytes as transmitted."""
    return len(
        (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)).encode()
    )


def _diff(
    thing: Versioned,
    target: Target,
    before: Document,
    after: Document,
    splices: Mapping[str, list[Splice]],
) -> Any:
    declared = FIELDS[thing.KIND]
    if target.field and target.index is not None:
        return _element_diff(target.field, target.index, before, after)
    if target.field:
        return _field_diff(target.field, before, after, splices)
    changed = [name for name in declared if name in after and before.get(name) != after[name]]
    if thing.KIND == "resource" and changed == ["content"]:
        return _field_diff(declared["content"], before, after, splices)
    return {name: _field_diff(declared[name], before, after, splices) for name in changed}


def _text_alone(target: Target, asked: Collection[str]) -> Target:
    is_text = target.kind == Kind.RESOURCE and set(asked) == {"content"}
    return replace(target, field=FIELDS[Kind.RESOURCE]["content"]) if is_text else target


def _element_diff(field: Field, index: int, before: Document, after: Document) -> Any:
    old, new = (_element(document.get(field.name), index) for document in (before, after))
    if not isinstance(old, str) or not isinstance(new, str):
        return {"before": old, "after": new}
    return unified_diff(old, splices_between(old, new), f"{field.name}/{index}")


def _element(entries: Any, index: int) -> Any:
    return entries[index] if isinstance(entries, list) and index < len(entries) else None


def _field_diff(
    field: Field, before: Document, after: Document, splices: Mapping[str, list[Splice]]
) -> Any:
    old, new = before.get(field.name), after.get(field.name)
    if field.shape != "text" or not isinstance(old, str) or not isinstance(new, str):
        return {"before": old, "after": new}
    return unified_diff(old, splices.get(field.name) or splices_between(old, new), field.name)
