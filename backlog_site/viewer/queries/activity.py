"""Query the activity, newest first: one row per write, with runs of one writer folded together."""

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.utils import timezone

from resources_app.errors import ValidationFailed
from resources_app.identity.roles import Person
from resources_app.models import Change, Comment, Epic, IBFolder, IBResource, Revision, Task
from resources_app.vocabulary import IB_KINDS, Kind

PAGE = 100
# Filter value → kinds of changes.
KINDS: dict[str, tuple[str, ...]] = {
    "task": (Kind.TASK,),
    "epic": (Kind.EPIC,),
    "comment": (Kind.COMMENT,),
    "resource": (Kind.RESOURCE,),
    "ib": IB_KINDS,
}


@dataclass(frozen=True)
class Activity:
    at: datetime.datetime
    author: str
    agent: str
    token: str
    via: str
    action: str
    fields: list[str]
    kind: str
    ref: str
    uri: str
    title: str
    batch: str
    # The status a task or an epic was moved to.
    status: str = ""

    @property
    def is_move(self) -> bool:
        return self.fields == ["status"]

    @property
    def is_file(self) -> bool:
        """Return whether it is a file here or in IntelligenceBank, identified by its address."""
        return self.kind not in {Kind.TASK, Kind.EPIC, Kind.COMMENT}

    @property
    def who(self) -> str:
        return self.agent or self.author or "the system"


@dataclass(frozen=True)
class Deeds:
    rows: list[Activity]
    older: int | None


@dataclass(frozen=True)
class Fold:
    """Group one activity, or many similar ones by the same writer on the same day."""

    first: Activity
    rest: list[Activity]


@dataclass(frozen=True)
class ActivityDay:
    day: datetime.date
    folds: list[Fold]

    @property
    def by_writer(self) -> list[tuple[str, str, list[Activity]]]:
        """Return the journal: what each writer changed that day, each item once."""
        writers: dict[tuple[str, str], dict[str, Activity]] = {}
        for fold in self.folds:
            for deed in (fold.first, *fold.rest):
                writers.setdefault((deed.who, "mcp" if deed.agent else deed.via), {}).setdefault(
                    deed.uri, deed
                )
        return [(who, via, list(deeds.values())) for (who, via), deeds in writers.items()]


def deeds(
    user: Person,
    *,
    before: int | None = None,
    source: str = "",
    author: str = "",
    kind: str = "",
    limit: int = PAGE,
) -> Deeds:
    """Return activities.

    `source` is people or agents, `kind` one of KINDS; empty selects everything.
    """
    rows = (
        Change.objects.visible_to(user).select_related("author").defer("operation").order_by("-id")
    )
    if before:
        rows = rows.filter(pk__lt=before)
    if source == "agents":
        rows = rows.exclude(agent="")
    elif source == "people":
        rows = rows.filter(agent="", author__isnull=False)
    if kind:
        rows = rows.filter(kind__in=_kinds(kind))
    if author:
        rows = rows.filter(author__username=author)
    found = list(rows[: limit + 1])
    page = found[:limit]
    titles, statuses = _titles(user, page), _statuses(page)
    shown = [_deed(change, titles, statuses.get(change.pk) or "") for change in page]
    return Deeds(shown, page[-1].pk if len(found) > limit else None)


def _kinds(kind: str) -> tuple[str, ...]:
    if kind not in KINDS:
        raise ValidationFailed(
            f"There is no activity of {kind!r}.",
            field="type",
            value=kind,
            allowed_values=list(KINDS),
        )
    return KINDS[kind]


def by_day(rows: Iterable[Activity]) -> list[ActivityDay]:
    days: dict[datetime.date, list[Fold]] = {}
    for deed in rows:
        folds = days.setdefault(timezone.localdate(deed.at), [])
        last = folds[-1] if folds else None
        if last and deed.batch and last.first.batch == deed.batch:
            last.rest.append(deed)
        else:
            folds.append(Fold(deed, []))
    return [ActivityDay(day, folds) for day, folds in days.items()]


def _deed(change: Change, titles: dict[tuple[str, int], tuple[str, str]], status: str) -> Activity:
    ref, title = titles.get((change.kind, change.object_id), (change.ref, ""))
    return Activity(
        at=change.created_at,
        author=change.author.get_username() if change.author else "",
        agent=change.agent,
        token=change.token,
        via=change.via,
        action=change.action,
        fields=change.fields,
        kind=change.kind,
        ref=ref,
        uri=change.uri,
        title=title,
        batch=str(change.batch or ""),
        status=status,
    )


def _statuses(page: Sequence[Change]) -> dict[int, str]:
    """Return the new statuses of moves.

    The caller may see them all, because the changes are already filtered.
    """
    moves = [
        change.pk for change in page if change.action == "update" and "status" in change.fields
    ]
    return dict(Revision.objects.filter(pk__in=moves).values_list("pk", "delta__status__set"))


def _titles(user: Person, page: Sequence[Change]) -> dict[tuple[str, int], tuple[str, str]]:
    """Return the current titles. A comment is shown by its item."""
    titles: dict[tuple[str, int], tuple[str, str]] = {}
    for model, kind in ((Task, Kind.TASK), (Epic, Kind.EPIC)):
        wanted = {change.object_id for change in page if change.kind == kind}
        rows = model.objects.visible_to(user).filter(pk__in=wanted).only("number", "title")
        titles |= {(kind, item.pk): (item.ref, item.title) for item in rows}
    for mirrored in (IBFolder, IBResource):
        wanted = {change.object_id for change in page if change.kind == mirrored.KIND}
        named = mirrored.objects.visible_to(user).filter(pk__in=wanted) if wanted else ()
        titles |= {(mirrored.KIND, one.pk): (one.ref, one.name) for one in named}
    said = {change.object_id for change in page if change.kind == Kind.COMMENT}
    comments = Comment.objects.visible_to(user).filter(pk__in=said).select_related("task", "epic")
    return titles | {(Kind.COMMENT, one.pk): (one.item.ref, one.item.title) for one in comments}
