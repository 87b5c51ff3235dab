"""Translate an operation on a URI into the fields it changes. No rows are written here."""

from dataclasses import dataclass, field
from typing import Any

from resources_app.addresses.targets import Target
from resources_app.editing.operations import (
    ALLOWED,
    TEXT_OPERATIONS,
    Shape,
    apply_operation,
    check,
    string_argument,
    text_splices,
)
from resources_app.editing.text import Splice, apply_splices
from resources_app.errors import NotFound, OperationFailed, ValidationFailed
from resources_app.fields.declarations import FIELDS, Field, field_of
from resources_app.history import revisions
from resources_app.history.documents import protected_field
from resources_app.history.revisions import Document
from resources_app.models.base import Versioned
from resources_app.vocabulary import Kind, Priority

# A null in a merge clears a field. Among the choice fields, only priority has a value for that.
NO_PRIORITY = Priority.NONE.label


@dataclass(frozen=True)
class Edit:
    """Describe an edit.

    `changed` is requested by the caller and validated; `internal` is set only by our own code.
    """

    operation: dict[str, Any]
    changed: Document = field(default_factory=dict)
    internal: Document = field(default_factory=dict)
    splices: dict[str, list[Splice]] = field(default_factory=dict)

    def splices_to(self, after: Document) -> dict[str, list[Splice]]:
        """Return the splices that still apply.

        Cleaning may alter a text (it trims a title), which invalidates them.
        """
        return {
            name: made for name, made in self.splices.items() if self.changed[name] == after[name]
        }


def allowed_operations(target: Target, *, is_text: bool = True) -> tuple[str, ...]:
    """Return the operations allowed on a target.

    `is_text` applies to files: only the metadata of binary files is editable.
    """
    if target.field is None:
        files = TEXT_OPERATIONS if target.kind == Kind.RESOURCE and is_text else ()
        return (*files, *ALLOWED["object"], "restore")
    if target.index is not None:
        return ALLOWED["text"] if target.field.name != "references" else ALLOWED["object"]
    return (*target.field.operations, "restore") if target.field.writable else ()


def make_edit(thing: Versioned, target: Target, document: Document, operation: Any) -> Edit:
    if target.field and not target.field.writable:
        raise protected_field(target.kind, target.field.name)
    is_text = target.kind != Kind.RESOURCE or document["content"] is not None
    kind = check(operation, allowed_operations(target, is_text=is_text))
    if kind == "restore":
        return _restore(thing, target, operation)
    if target.field is None:
        return _edit_whole(target, document, operation)
    if target.index is not None:
        return _edit_element(target.field, target.index, document, operation)
    return _edit_field(target.field, document.get(target.field.name), operation)


def _restore(thing: Versioned, target: Target, operation: dict[str, Any]) -> Edit:
    version = operation["version"]
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ValidationFailed(
            "version must be a whole number from 1.", field="version", value=version
        )
    then = revisions.document_at(thing.KIND, thing.pk, version)
    if thing.KIND == Kind.RESOURCE:
        refuse_lost_bytes(then, version)
    if target.field:
        return Edit(operation, {target.field.name: then.get(target.field.name, target.field.empty)})
    return Edit(
        operation,
        {
            name: value
            for name, value in then.items()
            if field_of(thing.KIND, name) in _writable(thing)
        },
    )


def refuse_lost_bytes(then: Document, version: int) -> None:
    if then["content"] is None:
        raise OperationFailed(
            f"Version {version} was binary, and only texts keep their earlier versions.",
            suggestion="Upload the file again.",
            version=version,
        )


def _writable(thing: Versioned) -> list[Field]:
    return [declared for declared in FIELDS[thing.KIND].values() if declared.writable]


def _edit_whole(target: Target, document: Document, operation: dict[str, Any]) -> Edit:
    """Edit a whole object. A task or epic is an object; a file is its text plus metadata."""
    if (
        target.kind == Kind.RESOURCE
        and _addresses_text(operation)
        and document["content"] is not None
    ):
        return _edit_field(FIELDS[Kind.RESOURCE]["content"], document["content"], operation)
    if operation["type"] == "delete_field":
        name = string_argument(operation, "field")
        changed = {name: _empty(target.kind, name)}
    else:
        merged = apply_operation(document, operation, "object")
        named = [operation["field"]] if operation["type"] == "set" else list(operation["value"])
        changed = {name: merged[name] for name in named}
        if operation["type"] == "merge":
            changed |= {
                name: NO_PRIORITY
                for name in changed
                if name == "priority" and changed[name] is None
            }
    if target.kind == Kind.RESOURCE and "content" in changed and document["content"] is None:
        raise ValidationFailed(
            "This file is binary: upload it again instead of editing its text.", field="content"
        )
    return Edit(operation, changed)


def _addresses_text(operation: dict[str, Any]) -> bool:
    return operation["type"] in TEXT_OPERATIONS or (
        operation["type"] == "set" and "field" not in operation
    )


def _empty(kind: str, name: str) -> Any:
    declared = field_of(kind, name)
    return declared.empty if declared else None


def _edit_field(declared: Field, value: Any, operation: dict[str, Any]) -> Edit:
    if declared.shape == "text" and operation["type"] in TEXT_OPERATIONS:
        splices = text_splices(value, operation)
        return Edit(
            operation,
            {declared.name: apply_splices(value, splices)},
            splices={declared.name: splices},
        )
    return Edit(operation, {declared.name: apply_operation(value, operation, declared.shape)})


def _edit_element(
    declared: Field, index: int, document: Document, operation: dict[str, Any]
) -> Edit:
    entries: list[Any] = document[declared.name]
    if index >= len(entries):
        raise NotFound(
            f"{declared.name} has {len(entries)} elements; there is no {index}.",
            field=declared.name,
        )
    replaced = operation["type"] == "set" and "field" not in operation
    shape: Shape = "object" if isinstance(entries[index], dict) else "text"
    changed = operation["value"] if replaced else apply_operation(entries[index], operation, shape)
    return Edit(operation, {declared.name: [*entries[:index], changed, *entries[index + 1 :]]})
