"""Select the documents a search may find, by visibility and filters, as one queryset that joins the
query.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.contrib.auth.models import User
from django.db import connection
from django.db.models import Exists, F, OuterRef, Q, QuerySet, Value
from django.db.models.functions import StrIndex

from resources_app.database.prepared import BoundedCache
from resources_app.errors import ValidationFailed
from resources_app.fields.declarations import parse_ref
from resources_app.identity.roles import Person, is_admin, may_read, visibility_key
from resources_app.models import IBLink
from resources_app.querying.conditions import ME
from resources_app.querying.named_values import require_items, require_person
from resources_app.vocabulary import IB_KINDS, Status
from search_app.backends.base import Allowed
from search_app.backends.visibility_tokens import LIMITED, SHARED, marks_asked_for
from search_app.index.documents import SEPARATOR, SOURCES
from search_app.models import Document

TYPES = ("task", "epic", "resource", "ib_folder", "ib_resource")
MAX_VALUES = 50
NOBODY = -1
Words = str | Sequence[str] | None

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_INTERPRETED = re.compile(
    r"(?:(?P<status>open|in["
    r" _-]progress|blocked|done|cancell?ed)\s+)?(?P<type>task|epic|resource|file)s?"
    r"(?:\s+(?:about|regarding|concerning|mentioning|named|called)\s+(?P<rest>\S.*))?",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True)
class Filters:
    types: tuple[str, ...] = ()
    status: tuple[str, ...] = ()
    parent_id: str = ""
    # The user's id, 0 for an unknown user, -1 for unassigned.
    assignee: int | None = None
    labels: tuple[str, ...] = ()


# Building SQL takes longer than running it; it depends only on its key.
_made: BoundedCache[Any] = BoundedCache(500)


def parse_filters(
    user: Person, types: Words, status: Words, parent_id: Any, assignee: Any, label: Words
) -> Filters:
    return Filters(
        types=_known("types", types, TYPES),
        status=_known("status", status, tuple(Status.labels)),
        parent_id=_parent(user, parent_id),
        assignee=None if assignee is None else _person(user, _text("assignee", assignee)),
        labels=_values("label", label, split=False),
    )


def interpret(text: str, filters: Filters) -> tuple[str, Filters]:
    """Turn "blocked tasks about login" into "login" among the blocked tasks, and "blocked tasks"
    into no words.

    Explicit filters take precedence.
    """
    match = _INTERPRETED.fullmatch(text.strip())
    if match is None or not (match["status"] or match["rest"]):
        return text, filters
    if filters.types or (match["status"] and filters.status):
        return text, filters
    kind = match["type"].lower().replace("file", "resource")
    if match["status"]:
        status = re.sub("[ -]", "_", match["status"].lower()).replace("canceled", "cancelled")
        filters = replace(filters, status=(status,))
    return match["rest"] or "", replace(filters, types=(kind,))


def allowed_documents(
    user: Person, slot: str, filters: Filters, limited: Sequence[str]
) -> Allowed | None:
    """Return the allowed documents. `limited` is the result of `limited_kinds`.

    Returns None when nothing can be found. A user without read access learns nothing, not even from
    timing.
    """
    if not may_read(user):
        return None
    key = (slot, filters, user.pk, visibility_key(user), limited)
    made: Allowed = _made.get(
        key, lambda: _allowed(_documents(user, slot, filters, limited), filters, bool(limited))
    )
    return made


def _allowed(rows: QuerySet[Document], filters: Filters, with_limited: bool) -> Allowed:
    statuses = _numbers(filters.status)
    return Allowed(
        *_as_sql(rows.order_by().values_list(*Allowed.COLUMNS)),
        shared=marks_asked_for(SHARED, filters.types, statuses),
        limited=marks_asked_for(LIMITED, filters.types, statuses) if with_limited else (),
        marks_suffice=filters == Filters(types=filters.types, status=filters.status),
    )


def limited_kinds(user: Person) -> tuple[str, ...]:
    """Return the kinds of which the caller sees restricted objects.

    Most users see none, so no document is checked for it.
    """
    if not may_read(user):
        return ()
    if is_admin(user):
        return tuple(SOURCES)
    key = (user.pk, visibility_key(user))
    sql, params = _made.get(
        key, lambda: _as_sql(User.objects.filter(pk=user.pk or 0).values_list(*_sights(user)))
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        found = cursor.fetchone() or ()
    return tuple(kind for kind, some in zip(SOURCES, found, strict=False) if some)


def _sights(user: Person) -> list[Exists]:
    """Return an Exists per kind of restricted object.

    The mirror's own query decides what a link opens.
    """
    links = IBLink.objects.filter(user=user.pk)
    return [
        Exists(links if kind in IB_KINDS else source.model.objects.limited_to_groups_of(user))
        for kind, source in SOURCES.items()
    ]


def _as_sql(rows: QuerySet[Any, Any]) -> tuple[str, tuple[Any, ...]]:
    sql, params = rows.query.sql_with_params()
    return sql, tuple(params)


def documents(user: Person, slot: str, filters: Filters) -> QuerySet[Document]:
    return _documents(user, slot, filters, limited_kinds(user))


def _documents(
    user: Person, slot: str, filters: Filters, limited: Sequence[str]
) -> QuerySet[Document]:
    """Return the matching documents.

    Databases check conditions in this order: cheap and selective first, visibility last.
    """
    rows = Document.objects.filter(slot=slot)
    if filters.types:
        rows = rows.filter(kind__in=filters.types)
    if filters.status:
        rows = rows.filter(status__in=_numbers(filters.status))
    if filters.parent_id:
        rows = rows.filter(_below(filters.parent_id))
    if filters.assignee is not None:
        rows = rows.filter(_assigned(filters.assignee))
    if filters.labels:
        rows = _labelled(rows, filters.labels)
    return rows.filter(archived=False).filter(
        _visible(user, [kind for kind in limited if kind in (filters.types or SOURCES)])
    )


def _numbers(statuses: Sequence[str]) -> list[int]:
    return [Status[name.upper()] for name in statuses]


def _labelled(rows: QuerySet[Document], labels: Sequence[str]) -> QuerySet[Document]:
    """Filter by any of the labels.

    Searching the column is exact in each database, which LIKE is not.
    """
    wanted = Q()
    for position, label in enumerate(labels):
        place = StrIndex(F("labels"), Value(f"{SEPARATOR}{label}{SEPARATOR}"))
        rows = rows.alias(**{f"label_{position}": place})
        wanted |= Q(**{f"label_{position}__gt": 0})
    return rows.filter(wanted)


def _visible(user: Person, kinds: Sequence[str]) -> Q:
    """Check restricted documents on the objects themselves, through the one place that decides
    visibility.

    Admins see everything except what IntelligenceBank decides about.
    """
    admin = is_admin(user)
    visible = ~Q(kind__in=IB_KINDS) if admin else Q(restricted=False)
    for kind in kinds:
        things = SOURCES[kind].model.objects
        if kind in IB_KINDS:
            visible |= Q(
                Exists(things.visible_to(user).filter(pk=OuterRef("object_id"))), kind=kind
            )
        elif not admin:
            visible |= Q(kind=kind, object_id__in=things.limited_to_groups_of(user).values("pk"))
    return visible


def _below(parent: str) -> Q:
    return (
        Q(parent=parent)
        if parse_ref(parent, "EPIC")
        else Q(parent=parent) | Q(parent__startswith=f"{parent}/")
    )


def _assigned(number: int) -> Q:
    return (
        Q(assignee_id__isnull=True, kind__in=("task", "epic"))
        if number == NOBODY
        else Q(assignee_id=number)
    )


def _person(user: Person, username: str) -> int:
    if not username:
        return NOBODY
    if not may_read(user):
        return 0
    return require_person("assignee", user.get_username() if username == ME else username)


def _known(name: str, given: Words, known: Sequence[str]) -> tuple[str, ...]:
    values = _values(name, given)
    for value in values:
        if value not in known:
            raise ValidationFailed(
                f"{name} cannot be {value!r}.", field=name, value=value, allowed_values=list(known)
            )
    return values


def _values(name: str, given: Words, *, split: bool = True) -> tuple[str, ...]:
    """Return the values of a list, or of one text with commas."""
    if given is None:
        return ()
    if isinstance(given, str):
        given = given.split(",") if split else [given]
    if not isinstance(given, list | tuple) or len(given) > MAX_VALUES:
        raise ValidationFailed(
            f"{name} must be a list of at most {MAX_VALUES} texts.", field=name, value=given
        )
    return tuple(text for value in given if (text := _text(name, value)))


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or len(value) > 1000 or _UNSTORABLE.search(value):
        raise ValidationFailed(f"{name} must be a text.", field=name, value=value)
    return value.strip()


def _parent(user: Person, given: Any) -> str:
    parent = "" if given is None else _text("parent_id", given)
    if (
        parent
        and not parse_ref(parent, "EPIC")
        and not re.match(r"(resources|artifacts)(/|$)|ib://\w", parent)
    ):
        raise ValidationFailed(
            "parent_id must be an epic's id or a folder's path.",
            field="parent_id",
            value=parent,
            allowed_values=[
                "EPIC-0001",
                "resources/folder",
                "artifacts/folder",
                "ib://{clientid}/folders/{id}",
            ],
        )
    if may_read(user):
        require_items(user, "parent_id", [parent])
    return parent.rstrip("/")
