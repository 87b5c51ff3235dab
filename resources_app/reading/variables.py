"""Describe the variables of patterns: an example, the valid values and the completion of each."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db.models import Q

from resources_app.addresses.intelligencebank import ROOT
from resources_app.addresses.targets import AREAS
from resources_app.fields.declarations import FIELDS
from resources_app.identity.roles import Actor, Person
from resources_app.models import Epic, Folder, IBConnection, IBFolder, IBResource, Resource, Task
from resources_app.reading.system import workflow_ids
from resources_app.reading.templates import TEMPLATES
from resources_app.vocabulary import Kind, Priority, Status

MAX_COMPLETIONS = 100
_LARGEST_NUMBER_WIDTH = 9

Completer = Callable[[Actor, str], list[str]]


@dataclass(frozen=True)
class Variable:
    """Describe a variable of a pattern.

    `complete` returns the values that start with a prefix and are visible to the actor. `values` is
    set where the valid values are few. `is_free` allows any text.
    """

    name: str
    example: str
    complete: Completer
    values: tuple[str, ...] = ()
    is_free: bool = False


def _nothing(_actor: Actor, _value: str) -> list[str]:
    """Complete nothing, for values that cannot be enumerated."""
    return []


def _choice(name: str, example: str, values: tuple[str, ...]) -> Variable:
    def complete(_actor: Actor, value: str) -> list[str]:
        return [word for word in values if word.startswith(value)][:MAX_COMPLETIONS]

    return Variable(name, example, complete, values)


def _run_ids(_actor: Actor, value: str) -> list[str]:
    return [name for name in workflow_ids() if name.startswith(value)][:MAX_COMPLETIONS]


def _refs(
    models: tuple[type[Task] | type[Epic], ...], actor: Actor, value: str, *, archived: bool = False
) -> list[str]:
    found = [
        ref for model in models for ref in _refs_of(actor.user, model, value, archived=archived)
    ]
    return found[:MAX_COMPLETIONS]


def _refs_of(
    user: Person, model: type[Task] | type[Epic], value: str, *, archived: bool
) -> list[str]:
    """Complete refs: TASK-004 → TASK-0040 … TASK-0049.

    The prefix becomes ranges of the primary key.
    """
    prefix = f"{model.PREFIX}-"
    digits = value.removeprefix(prefix) if value.startswith(prefix) else ""
    if (digits and not (digits.isascii() and digits.isdigit())) or not (
        prefix.startswith(value) or digits
    ):
        return []
    seen = model.objects.visible_to(user)
    rows = (
        (seen.archived() if archived else seen.live()).filter(_ranges(digits)).order_by("-number")
    )
    return [
        model.make_ref(number) for number in rows.values_list("number", flat=True)[:MAX_COMPLETIONS]
    ]


def _ranges(digits: str) -> Q:
    condition = Q(number__gte=1) if not digits else Q(pk__in=[])
    for width in range(max(4, len(digits)), _LARGEST_NUMBER_WIDTH + 1) if digits else ():
        low, high = int(digits.ljust(width, "0")), int(digits.ljust(width, "9"))
        if width == 4 or not digits.startswith("0"):
            condition |= Q(number__gte=low, number__lte=high)
    return condition


def _paths(area: str, actor: Actor, value: str) -> list[str]:
    """Complete the folders and files of the level being typed."""
    folder, _, name = f"{area}/{value}".rpartition("/")
    folders = Folder.objects.visible_to(actor.user).filter(parent__path=folder)
    files = Resource.objects.visible_to(actor.user).live().filter(folder__path=folder)
    found = [
        *(
            f"{path}/"
            for path in folders.order_by("path").values_list("path", flat=True)[
                : 10 * MAX_COMPLETIONS
            ]
        ),
        *files.order_by("path").values_list("path", flat=True)[: 10 * MAX_COMPLETIONS],
    ]
    typed = f"{folder}/{name}"
    return [path.removeprefix(f"{area}/") for path in found if path.startswith(typed)][
        :MAX_COMPLETIONS
    ]


def _archived_paths(area: str, actor: Actor, value: str) -> list[str]:
    files = Resource.objects.visible_to(actor.user).archived()
    found = files.filter(path__startswith=f"{area}/{value}").order_by("path")
    paths = found.values_list("path", flat=True)[:MAX_COMPLETIONS]
    return [path.removeprefix(f"{area}/") for path in paths]


def _client_ids(actor: Actor, value: str) -> list[str]:
    rows: Any = (
        IBConnection.objects.visible_to(actor.user)
        .filter(client_id__startswith=value)
        .order_by("client_id")
    )
    return list(rows.values_list("client_id", flat=True)[:MAX_COMPLETIONS])


def _ib_ids(model: type[IBFolder] | type[IBResource], actor: Actor, value: str) -> list[str]:
    # "g" sorts after every hex digit of an id, so the prefix becomes an index range.
    prefixed: Any = model.objects.filter(
        connection__links__user_id=actor.user.pk or 0, ib_id__gte=value, ib_id__lt=f"{value}g"
    )
    found = prefixed.visible_to(actor.user).order_by("ib_id")
    return list(found.values_list("ib_id", flat=True)[:MAX_COMPLETIONS])


def _ib_folder_ids(actor: Actor, value: str) -> list[str]:
    root = [ROOT] if ROOT.startswith(value) else []
    return [*root, *_ib_ids(IBFolder, actor, value)][:MAX_COMPLETIONS]


def _path(complete: Completer) -> Variable:
    return Variable("path", "docs/guide.md", complete, is_free=True)


TASK_ID = Variable("id", "TASK-0001", partial(_refs, (Task,)))
EPIC_ID = Variable("id", "EPIC-0001", partial(_refs, (Epic,)))
ITEM_ID = Variable("id", "TASK-0001", partial(_refs, (Task, Epic)))
ARCHIVED_ID = Variable("id", "TASK-0001", partial(_refs, (Task, Epic), archived=True))
ARCHIVED_EPIC_ID = Variable("id", "EPIC-0001", partial(_refs, (Epic,), archived=True))
TASK_FIELD = _choice("field", "description", tuple(FIELDS[Kind.TASK]))
EPIC_FIELD = _choice("field", "description", tuple(FIELDS[Kind.EPIC]))
INDEX = Variable("index", "0", _nothing)
COMMENT_NUMBER = Variable("number", "1", _nothing)
PATHS = {area: _path(partial(_paths, area)) for area in AREAS}
ARCHIVED_PATHS = {area: _path(partial(_archived_paths, area)) for area in AREAS}
# Paths of this machine are not disclosed.
LOCAL_PATH = _path(_nothing)
CLIENT_ID = Variable("clientid", "Acme", _client_ids)
IB_FOLDER_ID = Variable("id", ROOT, _ib_folder_ids)
IB_RESOURCE_ID = Variable("id", "0123456789abcdef" * 2, partial(_ib_ids, IBResource))
QUERY = Variable("query", "logo", _nothing, is_free=True)
TEMPLATE = _choice("template", "bug", tuple(TEMPLATES))
RUN_ID = Variable("id", "1", _run_ids)
# Parameters of queries and arguments of prompts, which no pattern declares.
PARAMETERS = {
    "id": TASK_ID,
    "epic_id": EPIC_ID,
    "field": TASK_FIELD,
    "template": TEMPLATE,
    "status": _choice("status", "open", tuple(str(label) for label in Status.labels)),
    "priority": _choice("priority", "high", tuple(str(label) for label in Priority.labels)),
}
