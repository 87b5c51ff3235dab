"""Query a task or an epic with everything its page shows."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from backlog_site.viewer.queries.cards import Card, Line, cards_of, line_of, with_last_agent
from resources_app.addresses.hidden_refs import NAMING_FIELDS, Mask
from resources_app.addresses.targets import item_target, visible_thing
from resources_app.editing.merge import merge_texts
from resources_app.errors import NotFound
from resources_app.fields.declarations import FIELDS, parse_ref, writable_names
from resources_app.history import timeline
from resources_app.history.documents import document_of, uri_of
from resources_app.history.etags import make_etag, version_in
from resources_app.history.revisions import Document, document_at
from resources_app.identity.roles import Actor, Person
from resources_app.models import Comment, Epic, Task
from resources_app.reading.serializers import comment_json, item_json

MOST = 200
HISTORY_PAGE = 20


@dataclass(frozen=True)
class Progress:
    """Hold the progress of an epic. Cancelled tasks do not count."""

    done: int
    started: int
    total: int

    @property
    def percent(self) -> int:
        return round(100 * self.done / self.total) if self.total else 0


@dataclass(frozen=True)
class ItemPage:
    uri: str
    item: dict[str, Any]
    etags: dict[str, str]
    may_write: bool
    epic: Line | None
    needs: list[Line]
    needed_by: list[Line]
    tasks: list[Card]
    progress: Progress | None
    comments: list[dict[str, Any]]
    history: timeline.TimelinePage


@dataclass(frozen=True)
class FieldEdit:
    """Hold a new value of one field, and the ETag of the value it replaces."""

    name: str
    value: Any
    etag: str


@dataclass(frozen=True)
class Clash:
    """Hold one edited field beside its saved value.

    `merged` combines two texts; a field that is not stale has no conflict.
    """

    name: str
    mine: Any
    theirs: Any
    etag: str
    is_stale: bool = True
    merged: str = ""
    conflicts: int = 0
    writers: list[str] = field(default_factory=list)

    @property
    def is_text(self) -> bool:
        return FIELDS["task"][self.name].shape == "text"

    @property
    def result(self) -> str:
        """Return the text that the merge form offers."""
        return self.merged or str(self.mine)


def item_page(actor: Actor, ref: str) -> ItemPage:
    item = _item(actor, ref)
    tasks = _tasks_of(actor.user, item) if isinstance(item, Epic) else []
    return ItemPage(
        uri=uri_of(item),
        item=item_json(item, actor.user),
        etags={name: _etag(item, name) for name in writable_names(item.KIND)},
        may_write=actor.may_write and not item.archived_at,
        epic=_epic_of(actor.user, item),
        needs=_lines(actor.user, item, dependent_rows__task=item.pk),
        needed_by=_lines(actor.user, item, dependency_rows__needs=item.pk),
        tasks=tasks,
        progress=_progress(tasks) if isinstance(item, Epic) else None,
        comments=_comments(actor, item),
        history=_history(actor.user, item),
    )


def history_page(actor: Actor, ref: str, before: int) -> timeline.TimelinePage:
    return _history(actor.user, _item(actor, ref), before=before)


def known_by(actor: Actor, ref: str) -> tuple[Line, dict[str, Any], Line | None]:
    """Return the data of the hover card of a link."""
    item = _item(actor, ref)
    return line_of(item), item_json(item, actor.user), _epic_of(actor.user, item)


def changed(actor: Actor, ref: str, edits: Iterable[FieldEdit]) -> list[FieldEdit]:
    """Drop edits that change nothing: a form sends every field, also the untouched ones."""
    item = _item(actor, ref)
    saved = Mask(actor.user).shown(document_of(item))
    return [
        edit
        for edit in edits
        if saved.get(edit.name) != edit.value and not _repeats_its_base(item, edit)
    ]


def clashes(actor: Actor, ref: str, edits: Iterable[FieldEdit]) -> list[Clash]:
    """Return, after a conflict, each edit beside the saved value, and for a text the merge from
    their common base.
    """
    item = _item(actor, ref)
    saved = Mask(actor.user).shown(document_of(item))
    return [_clash(item, saved, edit) for edit in edits]


def _clash(item: Task | Epic, saved: Document, edit: FieldEdit) -> Clash:
    name, mine = edit.name, edit.value
    theirs, now = saved[name], _etag(item, name)
    if edit.etag == now:
        return Clash(name, mine, theirs, now, is_stale=False)
    writers = _writers(item, name, since=version_in(edit.etag, item.ref, name) or item.version)
    if not isinstance(theirs, str) or "\n" not in f"{mine}{theirs}":
        return Clash(name, mine, theirs, now, writers=writers)
    merged = merge_texts(str(_value_at(item, edit) or ""), str(mine), theirs)
    return Clash(
        name, mine, theirs, now, merged=merged.text, conflicts=merged.conflicts, writers=writers
    )


def collection_of(ref: str) -> str:
    return "epics" if ref.startswith(Epic.PREFIX) else "tasks"


def epics(user: Person) -> list[tuple[Line, Progress, Any]]:
    """Return all epics with their progress. One query counts the tasks of all."""
    rows = list(
        Epic.objects.visible_to(user)
        .live()
        .select_related("assignee")
        .order_by("status", "number")[:MOST]
    )
    live = Task.objects.visible_to(user).live().filter(epic__in=[epic.pk for epic in rows])
    counts: Counter[tuple[int, int]] = Counter()
    for epic_id, status in live.values_list("epic_id", "status"):
        counts[epic_id, status] += 1
    return [(line_of(epic), _counted(counts, epic.pk), item_json(epic, user)) for epic in rows]


def _counted(counts: Counter[tuple[int, int]], epic: int) -> Progress:
    opened, started, blocked, done = (counts[epic, status] for status in (1, 2, 3, 4))
    return Progress(done, started + blocked, opened + started + blocked + done)


def _item(actor: Actor, ref: str) -> Task | Epic:
    if parse_ref(ref, Task.PREFIX) is None and parse_ref(ref, Epic.PREFIX) is None:
        raise NotFound(
            f"There is no task or epic {ref!r}.",
            suggestion="Ids look like TASK-0001 or EPIC-0001.",
            id=ref,
        )
    thing = visible_thing(actor.user, item_target(collection_of(ref), ref))
    assert isinstance(thing, Task | Epic)  # noqa: S101  the collection says so
    return thing


def _etag(item: Task | Epic, name: str) -> str:
    return make_etag(item.ref, item.field_versions.get(name, 1), name)


def _epic_of(user: Person, item: Task | Epic) -> Line | None:
    number = item.epic_id if isinstance(item, Task) else None
    epic = Epic.objects.visible_to(user).filter(pk=number).first() if number else None
    return line_of(epic) if epic else None


def _lines(user: Person, item: Task | Epic, **related: int) -> list[Line]:
    if not isinstance(item, Task):
        return []
    rows = Task.objects.visible_to(user).filter(**related).order_by("number")
    return [line_of(task) for task in rows[:MOST]]


def _tasks_of(user: Person, epic: Epic) -> list[Card]:
    rows = Task.objects.visible_to(user).live().in_epic(epic.pk).select_related("assignee")
    return cards_of(user, with_last_agent(rows).order_by("status", "-priority", "number")[:MOST])


def _progress(tasks: list[Card]) -> Progress:
    counts = Counter(task.status for task in tasks)
    started = counts["in_progress"] + counts["blocked"]
    return Progress(counts["done"], started, counts["open"] + started + counts["done"])


def _history(user: Person, item: Task | Epic, before: int | None = None) -> timeline.TimelinePage:
    """Return the timeline with ids hidden from the user masked, in one query."""
    page = timeline.timeline(item, before=before, limit=HISTORY_PAGE)
    named = [diff for entry in page.entries for diff in entry.diffs if diff.field in NAMING_FIELDS]
    values = Mask(user).value([[diff.before, diff.after] for diff in named])
    shown = {
        id(diff): replace(diff, before=old, after=new)
        for diff, (old, new) in zip(named, values, strict=True)
    }
    entries = [
        replace(one, diffs=tuple(shown.get(id(diff), diff) for diff in one.diffs))
        for one in page.entries
    ]
    return replace(page, entries=entries)


def _comments(actor: Actor, item: Task | Epic) -> list[dict[str, Any]]:
    rows = Comment.objects.visible_to(actor.user).live().filter(**{item.KIND: item.pk})
    newest = rows.select_related("task", "epic", "author").order_by("-pk")[:MOST]
    return [
        comment_json(one) | {"may_edit": not item.archived_at and actor.may_reword(one.author_id)}
        for one in reversed(newest)
    ]


def _repeats_its_base(item: Task | Epic, edit: FieldEdit) -> bool:
    return (
        version_in(edit.etag, item.ref, edit.name) is not None
        and _value_at(item, edit) == edit.value
    )


def _value_at(item: Task | Epic, edit: FieldEdit) -> Any:
    """Return the value that the ETag of the edit names, or None if it names no version."""
    version = version_in(edit.etag, item.ref, edit.name)
    try:
        return document_at(item.KIND, item.pk, version)[edit.name] if version else None
    except NotFound:
        return None


def _writers(item: Task | Epic, name: str, since: int) -> list[str]:
    entries = timeline.timeline(item, limit=HISTORY_PAGE).entries
    later = [
        one
        for one in entries
        if one.version > since and any(diff.field == name for diff in one.diffs)
    ]
    return list(dict.fromkeys(one.agent or one.author for one in later))
