"""Watch URIs: read changes after a position, match them to URIs, and check which users may be
notified.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from django.contrib.auth.models import User

from resources_app.addresses import uris
from resources_app.addresses.hidden_refs import visible_refs, without_refs
from resources_app.addresses.intelligencebank import ROOT
from resources_app.addresses.targets import Variables, file_path
from resources_app.addresses.uris import Uri
from resources_app.errors import InvalidOperation, InvalidUri, NotFound, ValidationFailed
from resources_app.fields.declarations import field_of
from resources_app.history import revisions, sequencing
from resources_app.history.documents import document_of
from resources_app.history.etags import make_etag
from resources_app.history.revisions import Document
from resources_app.history.sequencing import SEQUENCED
from resources_app.history.sequencing import Position as Position
from resources_app.history.sequencing import position_of as position_of
from resources_app.identity.roles import Actor
from resources_app.models import Change, Comment, Epic, Task
from resources_app.querying.queries import Pairs, may_select, parse_query, query_of
from resources_app.querying.snapshots import Snapshot
from resources_app.reading import by_address
from resources_app.reading.patterns import Rule, Watch
from resources_app.reading.registry import REGISTRY
from resources_app.reading.serializers import change_json
from resources_app.vocabulary import Kind

# Fields that change with every write.
_WHOLE_ITEM = frozenset({"updated_at", "version", "etag"})
_DECIDE_READINESS = frozenset({"status", "depends_on", "archived_at"})


@dataclass(frozen=True)
class FeedPage:
    """Hold a page of changes.

    `more` means that changes exist after `end`, possibly without a position yet.
    """

    changes: list[Change]
    end: Position
    more: bool


def end_of_feed() -> Position:
    """Return the position that precedes everything committed from now on."""
    sequencing.sequence()
    return Position(SEQUENCED, sequencing.newest_number())


def changes_after(position: Position, limit: int, until: Position | None = None) -> FeedPage:
    """Return changes for a reader that serves many users.

    Nothing is filtered yet; see `visible_among`.
    """
    is_complete = sequencing.sequence()
    start = sequencing.resolve(position)
    rows = Change.objects.after(start)
    if until:
        rows = rows.filter(position__lte=sequencing.resolve(until))
    found = list(rows.select_related("author")[:limit])
    if len(found) == limit:
        return FeedPage(found, position_of(found[-1]), more=True)
    end = until or (position_of(found[-1]) if found else Position(SEQUENCED, start))
    return FeedPage(found, end, more=until is not None or not is_complete)


def visible_among(user_id: int, changes: Collection[int]) -> set[int]:
    """Return the ids of the changes that the user can see now, with the user's current roles."""
    user = User.objects.filter(pk=user_id, is_active=True).first()
    if user is None:
        return set()
    return set(Change.objects.visible_to(user).filter(pk__in=changes).values_list("pk", flat=True))


def may_list(user_id: int, uri: str) -> bool:
    """Return whether a watched collection still answers the user.

    An epic or task that its query names may have been hidden since. The list is then refused as if
    the item did not exist, so a notice about an entry would disclose where that entry belongs.
    """
    watched = _watched(uri)
    if watched is None or watched.watch.rule not in _COLLECTIONS:
        return True
    user = User.objects.get(pk=user_id)
    model, pairs = _collection_of(watched)
    epic = watched.values.get("id")
    try:
        query_of(user, model, pairs)
    except ValidationFailed:
        return False
    return epic is None or epic in visible_refs(user, [epic])


def may_watch(actor: Actor, uri: str) -> bool:
    """Return True if the actor can watch the URI, that is, can read it and it can change.

    Raises the reason otherwise.
    """
    if uris.parse(uri).version:
        raise InvalidUri("A version never changes; watch the address without it.", uri=uri)
    if not by_address.read(actor, uri).subscribable:
        raise InvalidOperation("This address cannot be watched.", uri=uri, allowed=["read"])
    return True


def names_one_thing(uri: str) -> bool:
    """Return whether the URI names one object and disappears with it.

    Collections and folders remain when an entry is lost.
    """
    watched = _watched(uri)
    return (
        watched is not None and watched.watch.names_one_thing and watched.values.get("id") != ROOT
    )


def alters_list(change: Change) -> bool:
    """Return whether the change adds to or removes from the list of all resources."""
    return change.kind not in {Kind.COMMENT, Kind.IB_RESOURCE} and change.action != "update"


def describe(change: Change, uri: str) -> dict[str, Any]:
    """Describe the change behind a notification."""
    return {
        "etag": _etag(change, _watched(uri)),
        "author": change.author.username if change.author else None,
        "timestamp": change.created_at.isoformat(),
        # Many users get the same notification, so ids are masked. Each user reads the details
        # separately.
        "change": without_refs(change_json(change)),
    }


def matches(change: Change, uri: str) -> bool:
    """Return whether the change may alter the content at the URI."""
    watched = _watched(uri)
    if watched is None:
        return False
    kinds, touches = _RULES[watched.watch.rule]
    return change.kind in kinds and touches(change, watched)


@dataclass(frozen=True)
class _Watched:
    """Hold a watched URI with its entry's watch and the values of its variables."""

    uri: Uri
    watch: Watch
    values: Variables


@lru_cache(maxsize=4096)
def _watched(uri: str) -> _Watched | None:
    """Return None if the URI cannot be watched."""
    parsed = uris.parse(uri)
    found = REGISTRY.match(parsed)
    if found is None or found[0].watch is None:
        return None
    return _Watched(parsed, found[0].watch, found[1])


def _item_touched(change: Change, watched: _Watched) -> bool:
    return change.ref == watched.values["id"]


def _field_touched(change: Change, watched: _Watched) -> bool:
    name = watched.values["field"]
    if change.ref != watched.values["id"] or name in _WHOLE_ITEM:
        return change.ref == watched.values["id"]
    declared = field_of(change.kind, name)
    return declared is not None and (declared.name in change.fields or change.action == "create")


def _mirrored(change: Change, watched: _Watched) -> bool:
    return change.uri.startswith(f"ib://{watched.uri.authority}/")


def _ib_resource_touched(change: Change, watched: _Watched) -> bool:
    return _mirrored(change, watched) and change.ref == watched.values["id"]


def _ib_folder_touched(change: Change, watched: _Watched) -> bool:
    """Match the folder itself, its parent and the parent it has left."""
    ids = {ROOT, change.ref, *change.operation.get("folders", ())}
    return _mirrored(change, watched) and watched.values["id"] in ids


def _ib_contents_touched(change: Change, watched: _Watched) -> bool:
    """Match the folder of a resource and the folder it has left."""
    homes = change.operation.get("folders", ())
    return _mirrored(change, watched) and watched.values["id"] in homes


def _path_touched(change: Change, watched: _Watched) -> bool:
    return _path_matches(change, file_path(watched.uri))


def _file_part_touched(change: Change, watched: _Watched) -> bool:
    """Match the file, or what is itself called `versions` or `schema`."""
    path = file_path(watched.uri)
    return _path_matches(change, path) or path.rpartition("/")[0] in _paths_of(change)


def _archived_files_touched(change: Change, watched: _Watched) -> bool:
    return _path_touched(change, watched) and any(
        document is None or document.get("archived_at") for document in _before_and_after(change)
    )


def _path_matches(change: Change, watched: str) -> bool:
    """Match the file itself or an ancestor folder."""
    return any(f"{path}/".startswith(f"{watched}/") for path in _paths_of(change))


def _paths_of(change: Change) -> set[str]:
    """Return the path of the file. A moved file has two."""
    paths = {change.ref}
    if "path" in change.fields:
        paths |= {str(document["path"]) for document in _before_and_after(change) if document}
    return paths


def _comment_touched(change: Change, watched: _Watched) -> bool:
    return change.ref == watched.values["number"]


def _comments_touched(change: Change, watched: _Watched) -> bool:
    wanted = dict(watched.uri.query).get("item")
    return wanted is None or wanted == _commented_item(change)


def _item_comments_touched(change: Change, watched: _Watched) -> bool:
    return watched.values["id"] == _commented_item(change)


def _commented_item(change: Change) -> str | None:
    comment = Comment.objects.select_related("task", "epic").filter(pk=change.object_id).first()
    return comment.item.ref if comment else None


def _collection_matches(change: Change, watched: _Watched) -> bool:
    """Match items that enter, leave or change inside a collection, by comparing them before and
    after.
    """
    archived, epic = watched.watch.rule is Rule.ARCHIVE, watched.values.get("id")
    model, pairs = _collection_of(watched)
    query = parse_query(model, pairs)

    def belongs(item: Snapshot) -> bool:
        return (
            bool(item.document.get("archived_at")) is archived
            and (epic is None or item.document.get("epic_id") == epic)
            and may_select(query, item)
        )

    if change.kind == Kind.COMMENT and query.search:
        if change.action != "create":
            query = replace(query, search="")  # the words may have been removed
        item = _commented_snapshot(change, model)
        return item is not None and belongs(item)
    if change.kind != model.KIND:
        return False
    if query.ready is not None and (
        change.action != "update" or _DECIDE_READINESS & set(change.fields)
    ):
        return True  # another task may depend on it
    return any(item is None or belongs(item) for item in _snapshots(change, model))


def _commented_snapshot(change: Change, model: type[Task] | type[Epic]) -> Snapshot | None:
    """Return the item of a comment, whose text is searched with it."""
    item = model.objects.filter(comments=change.object_id).first()
    return Snapshot(model, item.pk, item.version, document_of(item)) if item else None


def _snapshots(change: Change, model: type[Task] | type[Epic]) -> list[Snapshot | None]:
    """Return the item before and after, cached on the change because every watched collection
    needs it.
    """
    known: list[Snapshot | None] | None = getattr(change, "_snapshots", None)
    if known is None:
        documents = _before_and_after(change)
        known = [
            Snapshot(model, change.object_id, version, document) if document else None
            for version, document in enumerate(documents, change.version - len(documents) + 1)
        ]
        change._snapshots = known  # type: ignore[attr-defined]  # cached on the object on purpose
    return known


def _collection_of(watched: _Watched) -> tuple[type[Task] | type[Epic], Pairs]:
    is_of_epics = watched.watch.rule is Rule.EPICS or dict(watched.uri.query).get("type") == "epic"
    pairs = [pair for pair in watched.uri.query if pair[0] != "type"]
    return Epic if is_of_epics else Task, pairs


def _before_and_after(change: Change) -> list[Document | None]:
    """Return the documents before and after the change."""
    versions = [change.version - 1, change.version] if change.version > 1 else [change.version]
    return [_document(change, version) for version in versions]


def _document(change: Change, version: int) -> Document | None:
    """Return the document at a version, or None if its history is gone."""
    try:
        return revisions.document_at(change.kind, change.object_id, version)
    except NotFound:
        return None


def _etag(change: Change, watched: _Watched | None) -> str | None:
    """Return the ETag of the addressed object or part after the change."""
    if watched is None:
        return None
    part, values = watched.watch.part, watched.values
    ref = values.get("id") or values.get("number") or file_path(watched.uri)
    if part is None or ref != change.ref:
        return None
    if part != "{field}":
        return make_etag(change.ref, change.version, part)
    declared = field_of(change.kind, values["field"])
    return make_etag(change.ref, change.version, declared.name) if declared else None


def _always(_change: Change, _watched: _Watched) -> bool:
    return True


_COLLECTIONS = {Rule.TASKS, Rule.EPICS, Rule.EPIC_TASKS, Rule.ARCHIVE}
_ITEMS, _ITEMS_AND_COMMENTS = {Kind.TASK, Kind.EPIC}, {Kind.TASK, Kind.EPIC, Kind.COMMENT}
# The kinds of changes that each rule concerns, and how it decides.
_RULES: dict[Rule, tuple[Collection[Kind], Callable[[Change, _Watched], bool]]] = {
    Rule.FEED: (tuple(Kind), _always),
    Rule.TASKS: (_ITEMS_AND_COMMENTS, _collection_matches),
    Rule.EPICS: (_ITEMS_AND_COMMENTS, _collection_matches),
    Rule.EPIC_TASKS: (_ITEMS_AND_COMMENTS, _collection_matches),
    Rule.ARCHIVE: (_ITEMS_AND_COMMENTS, _collection_matches),
    Rule.ITEM: (_ITEMS, _item_touched),
    Rule.FIELD: (_ITEMS, _field_touched),
    Rule.COMMENTS: ({Kind.COMMENT}, _comments_touched),
    Rule.ITEM_COMMENTS: ({Kind.COMMENT}, _item_comments_touched),
    Rule.COMMENT: ({Kind.COMMENT}, _comment_touched),
    Rule.PATH: ({Kind.RESOURCE}, _path_touched),
    Rule.FILE_PART: ({Kind.RESOURCE}, _file_part_touched),
    Rule.ARCHIVED_FILES: ({Kind.RESOURCE}, _archived_files_touched),
    Rule.IB_FOLDER: ({Kind.IB_FOLDER}, _ib_folder_touched),
    Rule.IB_FOLDER_RESOURCES: ({Kind.IB_RESOURCE}, _ib_contents_touched),
    Rule.IB_RESOURCE: ({Kind.IB_RESOURCE}, _ib_resource_touched),
}
