"""Store each write as a delta, with occasional snapshots, so that storage is proportional to the
edits.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from resources_app.editing.text import Splice, apply_splices, splices_between
from resources_app.errors import NotFound
from resources_app.fields.declarations import FIELDS, empty_values
from resources_app.models import Change, Revision
from resources_app.models.base import Versioned

# A snapshot is due when the deltas since the last one weigh as much as the document (so it at most
# doubles the cost), or when there are so many deltas that reading a version would become slow.
MAX_DELTAS = 200
DELTA_COST = 64
MIN_WEIGHT = 4096

Document = dict[str, Any]
Delta = dict[str, dict[str, Any]]


def make_delta(
    old: Document, new: Document, splices: Mapping[str, list[Splice]], kind: str
) -> Delta:
    delta: Delta = {}
    for name in new:
        if old.get(name) == new[name]:
            continue
        field = FIELDS[kind].get(name)
        if (
            field
            and field.shape == "text"
            and isinstance(old.get(name), str)
            and isinstance(new[name], str)
        ):
            delta[name] = {"splices": splices.get(name) or splices_between(old[name], new[name])}
        else:
            delta[name] = {"set": new[name]}
    return delta


def apply_delta(document: Document, delta: Delta) -> Document:
    changed = dict(document)
    for name, step in delta.items():
        changed[name] = (
            apply_splices(changed[name], step["splices"]) if "splices" in step else step["set"]
        )
    return changed


def weigh(delta: Delta) -> int:
    return DELTA_COST + sum(_weight(step) for step in delta.values())


def snapshot_due(thing: Versioned, weight: int, document: Document) -> bool:
    whole = sum(len(str(value)) for value in document.values())
    return weight > max(whole, MIN_WEIGHT) or thing.version - thing.snapshot_version >= MAX_DELTAS


def write_revisions(written: Iterable[tuple[Change, Delta, Document | None]]) -> None:
    """Save the delta and the snapshot, if one is due, of each recorded change."""
    Revision.objects.bulk_create(
        Revision(
            change=change,
            kind=change.kind,
            object_id=change.object_id,
            version=change.version,
            delta=delta,
            snapshot=snapshot,
        )
        for change, delta, snapshot in written
    )


def document_at(kind: str, object_id: int, version: int) -> Document:
    """Return the document at a version: the latest snapshot up to it, plus the deltas since."""
    revisions = Revision.objects.filter(kind=kind, object_id=object_id, version__lte=version)
    base = revisions.filter(snapshot__isnull=False).order_by("-version").first()
    if base is None or base.snapshot is None or not revisions.filter(version=version).exists():
        raise NotFound(f"There is no version {version}.", version=version)
    # A field that was added later was empty then.
    document: Document = empty_values(kind) | base.snapshot
    later = revisions.filter(version__gt=base.version).order_by("version")
    for delta in later.values_list("delta", flat=True):
        document = apply_delta(document, delta)
    return document


def moment_of(thing: Versioned, version: int) -> datetime:
    """Return the time a version was written."""
    written = Change.objects.filter(kind=thing.KIND, object_id=thing.pk, version=version)
    moment = written.values_list("created_at", flat=True).first()
    if moment is None:
        raise NotFound(f"There is no version {version}.", version=version)
    return moment


def _weight(step: Mapping[str, Any]) -> int:
    if "splices" in step:
        return sum(len(inserted) + 16 for _, _, inserted in step["splices"])
    return len(str(step["set"]))
