"""Resolve query values that name a user, an epic or a task.

Unknown names are rejected with the closest matches.
"""

from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches

from django.contrib.auth.models import User

from resources_app.errors import ValidationFailed
from resources_app.fields.declarations import HIDDEN, parse_ref
from resources_app.identity.roles import Person, may_read
from resources_app.models import Epic, Task
from resources_app.querying.conditions import ME, Condition

MOST_SUGGESTED = 5
MOST_COMPARED = 1000
_ITEMS: dict[str, type[Task] | type[Epic]] = {
    "epic_id": Epic,
    "parent_id": Epic,
    "depends_on": Task,
}
_READERS_OWN = {"assignee": ME, "epic_id": HIDDEN, "parent_id": HIDDEN}


class UnknownName(ValidationFailed):
    """Report a well-formed value that names nothing the caller can see."""


def resolved(conditions: Sequence[Condition], user: Person) -> tuple[Condition, ...]:
    """Replace `@me` with the caller and reject unknown names.

    A caller without a role learns no names from this.
    """
    named = tuple(_with_caller(condition, user) for condition in conditions)
    if may_read(user):
        for condition in named:
            _check(condition, user)
    return named


def names_reader(condition: Condition) -> bool:
    """Return whether a value means something else for each reader."""
    return _READERS_OWN.get(condition.name) in condition.values


def require_person(name: str, value: str) -> int:
    """Return the id of a user. Raises UnknownName."""
    number = User.objects.filter(username=value).values_list("pk", flat=True).first()
    if number is None:
        known = list(
            User.objects.filter(is_active=True)
            .order_by("username")
            .values_list("username", flat=True)
        )
        raise _unknown(name, value, "user", known[:MOST_COMPARED])
    return int(number)


def require_items(user: Person, name: str, values: Sequence[str]) -> None:
    """Check that the items exist and are visible. Raises UnknownName.

    Malformed ids are left to the field that parses them.
    """
    model = _ITEMS[name]
    numbers = {number: value for value in values if (number := parse_ref(value, model.PREFIX))}
    rows = model.objects.visible_to(user)
    missing = (
        numbers.keys() - set(rows.filter(pk__in=numbers).values_list("pk", flat=True))
        if numbers
        else set()
    )
    if missing:
        newest = rows.live().order_by("-pk").values_list("pk", flat=True)[:MOST_COMPARED]
        raise _unknown(
            name, numbers[min(missing)], model.KIND, [model.make_ref(number) for number in newest]
        )


def _with_caller(condition: Condition, user: Person) -> Condition:
    if condition.name != "assignee" or ME not in condition.values:
        return condition
    return replace(
        condition,
        values=tuple(user.get_username() if one == ME else one for one in condition.values),
    )


def _check(condition: Condition, user: Person) -> None:
    if condition.name == "assignee":
        for value in filter(None, condition.values):
            require_person(condition.name, value)
    elif condition.name in _ITEMS:
        require_items(user, condition.name, condition.values)


def _unknown(name: str, value: str, kind: str, known: Sequence[str]) -> UnknownName:
    folded = {one.casefold(): one for one in known}
    near = [folded[one] for one in get_close_matches(value.casefold(), folded, MOST_SUGGESTED)]
    return UnknownName(
        f"There is no {kind} {value!r} (or it is not visible to you).",
        suggestion=f"Did you mean {', '.join(near)}?"
        if near
        else f"Give the {kind} as lists show it.",
        field=name,
        value=value,
        allowed_values=near or list(known[:MOST_SUGGESTED]),
    )
