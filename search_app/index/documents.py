"""Define the searchable content of each kind: its fields as texts, and its row and tokens in the
index.
"""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from django.db.models import BigIntegerField, ExpressionWrapper, F

from resources_app.addresses.intelligencebank import parent_uri
from resources_app.database.prepared import run_for
from resources_app.fields import declarations
from resources_app.files.contents import is_markdown
from resources_app.models import Comment, Epic, IBFolder, IBResource, Resource, Task
from resources_app.models.backlog import Item
from resources_app.models.base import Versioned
from resources_app.vocabulary import Kind
from search_app.backends.base import Text, pad
from search_app.backends.visibility_tokens import marks_of
from search_app.models import Document
from search_app.tokens import AS_WRITTEN, analyse, fold

# Only the beginning and the end of a longer text are indexed, so that appended text is found. Write
# time must not grow with the text, and a search must not read megabytes for one candidate.
MAX_INDEXED = 48_000
ENDING = 16_000
SEPARATOR = "\x1f"


class TextField(NamedTuple):
    name: str
    text: str
    is_markdown: bool = False


@dataclass(frozen=True)
class Source:
    """Describe an indexed kind.

    A write that changes none of `texts` leaves the indexed words unchanged.
    """

    kind: str
    model: type[Any]
    fields: Callable[[Any, Sequence[str]], list[TextField]]
    texts: frozenset[str]
    parent: Callable[[Any], str]
    has_comments: bool = False


def _item_fields(item: Item, comments: Sequence[str]) -> list[TextField]:
    return [
        *(
            _item_field(declared, getattr(item, declared.name))
            for declared in _SEARCHED[Kind(item.KIND)]
        ),
        TextField("comments", "\n".join(comments), True),
        TextField("id", item.ref),
    ]


def _item_field(declared: declarations.Field, value: Any) -> TextField:
    text = _TEXTS[declared.type](value)
    return TextField(declared.name, text, declared.type in ("markdown", "texts"))


# The text of a field in the index, by type.
_TEXTS: dict[declarations.Type, Callable[[Any], str]] = {
    "text": str,
    "markdown": str,
    "texts": "\n".join,
    "words": ", ".join,
    "references": lambda entries: "\n".join(
        f"{entry.get('title', '')} {entry['url']}".strip() for entry in entries
    ),
}


def _resource_fields(resource: Resource, _: Sequence[str]) -> list[TextField]:
    return [
        TextField("title", resource.title or PurePosixPath(resource.path).name),
        TextField("description", resource.description),
        TextField("tags", ", ".join(resource.tags)),
        TextField("content", resource.content or "", is_markdown(resource.path)),
        TextField("path", resource.path),
    ]


def _mirrored_fields(thing: IBFolder | IBResource, _: Sequence[str]) -> list[TextField]:
    return [
        TextField("title", thing.name),
        TextField("description", thing.description),
        TextField("tags", ", ".join(thing.tags)),
        TextField("file_name", thing.file_name if isinstance(thing, IBResource) else ""),
        TextField("id", thing.ib_id),
    ]


_SEARCHED = {
    kind: sorted(
        (declared for declared in declarations.FIELDS[kind].values() if declared.searched),
        key=lambda declared: declared.searched,
    )
    for kind in (Kind.TASK, Kind.EPIC)
}
_ITEM_TEXTS = {
    kind: frozenset(declared.name for declared in fields) for kind, fields in _SEARCHED.items()
}
_RESOURCE_TEXTS = frozenset({"title", "description", "tags", "content", "path", "sha256"})
# A mirror delivers whole pages without naming single fields.
_NONE: frozenset[str] = frozenset()

SOURCES: dict[str, Source] = {
    source.kind: source
    for source in (
        Source(
            "task",
            Task,
            _item_fields,
            _ITEM_TEXTS[Kind.TASK],
            lambda task: _epic(task.epic_id),
            has_comments=True,
        ),
        Source(
            "epic", Epic, _item_fields, _ITEM_TEXTS[Kind.EPIC], lambda epic: "", has_comments=True
        ),
        Source(
            "resource", Resource, _resource_fields, _RESOURCE_TEXTS, lambda file: _folder(file.path)
        ),
        Source("ib_folder", IBFolder, _mirrored_fields, _NONE, parent_uri),
        Source("ib_resource", IBResource, _mirrored_fields, _NONE, parent_uri),
    )
}


def _epic(number: int | None) -> str:
    return Epic.make_ref(number) if number else ""


def _folder(path: str) -> str:
    return str(PurePosixPath(path).parent)


def title_of(thing: Versioned) -> str:
    return SOURCES[thing.KIND].fields(thing, ())[0].text


def fields_of(thing: Versioned, comments: Sequence[str]) -> list[TextField]:
    return SOURCES[thing.KIND].fields(thing, comments)


class Comments(NamedTuple):
    bodies: tuple[str, ...] = ()
    # Grows with every comment and edit; falls when a comment is archived.
    version: int = 0


def comments_on(kind: str, numbers: list[int]) -> dict[int, Comments]:
    if not SOURCES[kind].has_comments:
        return {}
    column = f"{kind}_id"

    def rows(given: list[Any]) -> Any:
        # As a plain number: a relation does not accept prepared statement parameters.
        about = ExpressionWrapper(F(column), BigIntegerField())
        rows = (
            Comment.objects.live()
            .alias(about=about)
            .filter(about__in=given)
            .order_by("created_at", "pk")
        )
        return rows.values_list(column, "body", "version")

    found: dict[int, list[tuple[str, int]]] = defaultdict(list)
    for number, body, version in run_for(numbers, ("comments", kind), rows):
        found[number].append((body, version))
    return {
        number: Comments(tuple(body for body, _ in said), sum(version for _, version in said))
        for number, said in found.items()
    }


def tokens_of(fields: Sequence[TextField]) -> tuple[list[str], list[str]]:
    """Return the tokens of the title and of everything else."""
    title, *rest = fields
    return analyse(title.text), analyse(_body(rest))


def build(thing: Any, slot: str, comments: Comments) -> tuple[Document, Text]:
    fields = fields_of(thing, comments.bodies)
    title, body = tokens_of(fields)
    columns = columns_beside_text(thing)
    text = Text(pad(title), pad(body), marks_of(thing.KIND, columns))
    document = Document(
        slot=slot,
        kind=thing.KIND,
        object_id=thing.pk,
        length=_terms(text.title) + _terms(text.body),
        comments_version=comments.version,
        title_key=title_key(fields[0].text),
        labels=_joined(thing.labels if isinstance(thing, Item) else thing.tags),
        **columns,
    )
    return document, text


def columns_beside_text(thing: Any) -> dict[str, Any]:
    return {
        "status": getattr(thing, "status", None),
        "parent": SOURCES[thing.KIND].parent(thing),
        "assignee_id": getattr(thing, "assignee_id", None),
        "restricted": thing.restricted,
        "archived": thing.archived_at is not None,
        "updated_at": thing.updated_at,
        "version": thing.version,
    }


def title_key(title: str) -> int:
    """Return a key that is equal for titles that differ only in case, accents and spaces.

    A number keeps counted rows short.
    """
    folded = " ".join(fold(title).split())[:250]
    return int.from_bytes(
        hashlib.md5(folded.encode(), usedforsecurity=False).digest()[:8], "big", signed=True
    )


def _terms(text: str) -> int:
    return len(text.split()) - text.count(AS_WRITTEN)


def indexed_spans(text: str) -> list[tuple[int, int]]:
    if len(text) <= MAX_INDEXED:
        return [(0, len(text))]
    return [(0, MAX_INDEXED - ENDING), (len(text) - ENDING, len(text))]


def _body(fields: Sequence[TextField]) -> str:
    """Join the fields, shortest first. All but the longest easily fit."""
    texts = sorted((field.text for field in fields), key=len)
    return _shortened("\n".join(map(_shortened, texts)))


def _shortened(text: str) -> str:
    return "\n".join(text[start:end] for start, end in indexed_spans(text))


def _joined(labels: Sequence[str]) -> str:
    return "".join(f"{SEPARATOR}{label}{SEPARATOR}" for label in labels)
