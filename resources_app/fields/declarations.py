"""Declare the fields of each kind, once.

A declaration drives validation, history, schemas, filters, sorts, forms, admin, frontmatter, JSON
and tool arguments. The order here is the order everywhere, so a new field goes to the end. Other
modules know types, not names.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

from resources_app.editing.operations import ALLOWED, Shape
from resources_app.fields import cleaning
from resources_app.fields.cleaning import HIDDEN as HIDDEN
from resources_app.fields.cleaning import MAX_ENTRIES as MAX_ENTRIES
from resources_app.fields.cleaning import MAX_LABELS as MAX_LABELS
from resources_app.fields.cleaning import MAX_TEXT as MAX_TEXT
from resources_app.fields.cleaning import clean_line as clean_line
from resources_app.fields.cleaning import clean_text as clean_text
from resources_app.fields.cleaning import parse_ref as parse_ref
from resources_app.vocabulary import Kind, Priority, Status

Type = Literal[
    "text",
    "markdown",
    "choice",
    "date",
    "number",
    "person",
    "epic",
    "tasks",
    "words",
    "texts",
    "references",
    "groups",
    "id",
    "moment",
    "count",
    "word",
]
Vocabulary = type[Status] | type[Priority]
Comparison = Literal["", "equal", "ordered", "text"]
_SHAPES: dict[Type, Shape] = {
    "text": "text",
    "markdown": "text",
    "tasks": "array",
    "words": "array",
    "texts": "array",
    "references": "array",
    "groups": "array",
}


@dataclass(frozen=True, eq=False)
class Field:
    """Describe a field.

    `column` is the attribute of the row where its name differs from the field's. `compared` says
    which operators filter it, under the name `filter_name`. `sort_column` is never null and has an
    index. `searched` is its place in the text of the search index.
    """

    name: str
    type: Type
    clean: Callable[[str, Any], Any]
    description: str
    empty: Any = None
    label: str = ""
    writable: bool = True
    required: bool = False
    vocabulary: Vocabulary | None = None
    max_length: int | None = None
    minimum: float | None = None
    maximum: float | None = None
    decimals: int = 0
    column: str = ""
    compared: Comparison = ""
    filter_name: str = ""
    sort_column: str = ""
    searched: int = 0
    aliases: tuple[str, ...] = ()
    is_argument: bool = True
    is_list_argument: bool = False
    is_listed: bool = False
    only_tasks: bool = False

    @property
    def shape(self) -> Shape:
        return _SHAPES.get(self.type, "scalar")

    @property
    def mime_type(self) -> str:
        if self.type == "markdown":
            return "text/markdown"
        return "application/json" if self.shape == "array" else "text/plain"

    @property
    def choices(self) -> tuple[str, ...]:
        return tuple(map(str, self.vocabulary.labels)) if self.vocabulary else ()

    @property
    def operations(self) -> tuple[str, ...]:
        return ALLOWED[self.shape] if self.writable else ()

    @property
    def title(self) -> str:
        return self.label or self.name.replace("_", " ").capitalize()

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, *self.aliases)


def _chosen(name: str, vocabulary: Vocabulary, description: str) -> Field:
    return Field(
        name,
        "choice",
        cleaning.choice(tuple(map(str, vocabulary.labels))),
        description,
        vocabulary.labels[0],
        vocabulary=vocabulary,
        compared="equal" if vocabulary is Status else "ordered",
        sort_column=name,
        is_list_argument=True,
        is_listed=True,
    )


def _number(
    name: str, description: str, least: float, most: float, decimals: int, **more: Any
) -> Field:
    """Declare an optional number. Its rows have a column `<name>_order` that puts null last."""
    return Field(
        name,
        "number",
        cleaning.number(least, most, decimals),
        description,
        minimum=least,
        maximum=most,
        decimals=decimals,
        compared="ordered",
        sort_column=f"{name}_order",
        is_list_argument=True,
        is_listed=True,
        **more,
    )


def _protected(name: str, type: Type, description: str, **more: Any) -> Field:
    return Field(name, type, cleaning.refused, description, writable=False, **more)


_GROUPS = cleaning.strings(150, 20, unique=True)
_WORDS = cleaning.strings(50, MAX_LABELS, unique=True)
_TEXTS = cleaning.strings(10_000, MAX_ENTRIES)
_TASK = (
    _protected(
        "id",
        "id",
        "The id",
        column="number",
        compared="equal",
        sort_column="number",
        is_listed=True,
    ),
    Field(
        "title",
        "text",
        cleaning.title,
        "One line that says what is to be done",
        "",
        required=True,
        max_length=200,
        compared="text",
        sort_column="title",
        searched=1,
        is_listed=True,
    ),
    Field(
        "description",
        "markdown",
        cleaning.markdown,
        "The description in markdown",
        "",
        max_length=MAX_TEXT,
        compared="text",
        searched=2,
    ),
    Field(
        "epic_id",
        "epic",
        cleaning.ref("EPIC"),
        "The epic it belongs to; parent_id is the same",
        label="Epic",
        compared="equal",
        aliases=("parent_id",),
        is_list_argument=True,
        is_listed=True,
        only_tasks=True,
    ),
    _chosen("status", Status, "Where the work stands"),
    _chosen("priority", Priority, "How urgent it is"),
    Field(
        "labels",
        "words",
        _WORDS,
        "Words to filter by",
        [],
        compared="equal",
        filter_name="label",
        searched=5,
        is_list_argument=True,
        is_listed=True,
    ),
    Field(
        "assignee",
        "person",
        cleaning.username,
        "The username of who does it",
        max_length=150,
        column="assignee_id",
        compared="equal",
        is_list_argument=True,
        is_listed=True,
    ),
    Field(
        "due_date",
        "date",
        cleaning.date,
        "The day it is due, as YYYY-MM-DD",
        compared="ordered",
        sort_column="due_order",
        is_listed=True,
    ),
    Field(
        "depends_on",
        "tasks",
        cleaning.refs("TASK"),
        "Tasks that must be finished first",
        [],
        label="Dependencies",
        compared="equal",
        only_tasks=True,
    ),
    Field(
        "references", "references", cleaning.references, "Links, each {url, title}", [], searched=6
    ),
    Field("evidence", "texts", _TEXTS, "What shows that it is done", [], searched=3),
    Field(
        "blocked_reason",
        "texts",
        _TEXTS,
        "What stands in the way",
        [],
        label="Reasons for being blocked",
        searched=4,
    ),
    Field(
        "groups",
        "groups",
        _GROUPS,
        "Groups it is limited to; empty: whole team",
        [],
        is_argument=False,
    ),
    _protected("type", "word", "task or epic"),
    _protected(
        "created_at", "moment", "When it was created", compared="ordered", sort_column="created_at"
    ),
    _protected(
        "updated_at",
        "moment",
        "When it last changed",
        compared="ordered",
        sort_column="updated_at",
        is_listed=True,
    ),
    _protected("archived_at", "moment", "When it was archived; archive with DELETE"),
    _protected("version", "count", "Counts the writes"),
    _protected("etag", "word", "Changes with every write"),
    _number(
        "estimate",
        "The expected effort, in the unit the team uses",
        least=0,
        most=10_000,
        decimals=2,
        only_tasks=True,
    ),
)
_COMMENT = (Field("body", "markdown", cleaning.body, "The comment in markdown", "", required=True),)
_RESOURCE = (
    Field(
        "content", "markdown", cleaning.markdown, "The text of the file", "", max_length=MAX_TEXT
    ),
    Field("title", "text", cleaning.optional_line(200), "A title", "", max_length=200),
    Field(
        "description",
        "text",
        cleaning.optional_text(2000),
        "What the file is for",
        "",
        max_length=2000,
    ),
    Field("tags", "words", _WORDS, "Words to filter by", []),
    Field("groups", "groups", _GROUPS, "Groups it is limited to", []),
)


def _by_name(fields: Iterable[Field]) -> dict[str, Field]:
    return {field.name: field for field in fields}


FIELDS: dict[str, dict[str, Field]] = {
    Kind.TASK: _by_name(_TASK),
    Kind.EPIC: _by_name(field for field in _TASK if not field.only_tasks),
    Kind.COMMENT: _by_name(_COMMENT),
    Kind.RESOURCE: _by_name(_RESOURCE),
}
# The columns of tasks and epics that may hold megabytes.
LONG_COLUMNS = tuple(
    field.name for field in _TASK if field.type in ("markdown", "texts", "references")
)
_ALIASES = {
    kind: {alias: field for field in fields.values() for alias in field.aliases}
    for kind, fields in FIELDS.items()
}


def field_of(kind: str, name: str) -> Field | None:
    return FIELDS[kind].get(name) or _ALIASES[kind].get(name)


def writable_fields(kind: str) -> list[Field]:
    return [field for field in FIELDS[kind].values() if field.writable]


def writable_names(kind: str) -> list[str]:
    return [field.name for field in writable_fields(kind)]


def empty_values(kind: str) -> dict[str, Any]:
    return {field.name: field.empty for field in writable_fields(kind)}
