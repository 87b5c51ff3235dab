"""Define forms over the public document.

They track the version they were opened with and the user's changes.
"""

import datetime
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from django import forms
from django.contrib.auth.models import Group, User
from unfold.widgets import UnfoldAdminSelect2MultipleWidget, UnfoldAdminTextareaWidget

from resources_app.addresses import uris
from resources_app.errors import BacklogError, Conflict, NotFound
from resources_app.fields.declarations import Field, Type, field_of, writable_fields
from resources_app.history import revisions
from resources_app.history.documents import document_of, uri_of
from resources_app.history.etags import version_in
from resources_app.history.revisions import Document
from resources_app.history.timeline import TimelineEntry, timeline
from resources_app.models import Comment, Epic, Resource, Task
from resources_app.models.base import Versioned
from resources_app.reading.registry import target_of
from resources_app.vocabulary import Kind
from resources_app.writing.session import current_etag

CONTINUED = "  "
STALE = (
    "{ref} was changed since you opened it; nothing was saved. What changed is shown below. "
    "Your own input is kept, everything else is now up to date: check it and save again."
)
ALSO_CHANGED = "Also changed by another user. Saving replaces their value."
_FORM_NAMES = {
    field.name: field.name.removesuffix("_id")
    for field in writable_fields(Kind.TASK)
    if field.type == "epic"
}
_PUBLIC_NAMES = {form_name: public for public, form_name in _FORM_NAMES.items()}


def etag_of(thing: Versioned) -> str:
    return current_etag(thing, target_of(uris.parse(uri_of(thing))))


def plain(value: Any) -> Any:
    """Normalize line endings as a browser does: a textarea converts every kind to its own."""
    if isinstance(value, str):
        return value.replace("\r\n", "\n").replace("\r", "\n")
    if isinstance(value, list):
        return [plain(entry) for entry in value]
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    return value


class Textarea(UnfoldAdminTextareaWidget):  # type: ignore[misc]  # unfold has no types
    # Django's template starts the text on a new line. Unfold's does not, and a browser then drops a
    # leading empty line.
    template_name = "django/forms/widgets/textarea.html"


class TextField(forms.CharField):
    """Keep a text exactly as is, including leading and trailing spaces."""

    def __init__(self, *, rows: int = 12, **kwargs: Any) -> None:
        super().__init__(strip=False, widget=Textarea({"rows": rows}), **kwargs)


class LinesField(forms.CharField):
    """Edit a list with one entry per line. Indented lines continue a multi-line entry."""

    def __init__(self, *, rows: int = 3, help_text: str = "One per line.", **kwargs: Any) -> None:
        # Existing entries keep their exact value; only new lines are parsed.
        self.kept: dict[str, Any] = {}
        super().__init__(
            strip=False,
            required=False,
            widget=Textarea({"rows": rows}),
            help_text=help_text,
            **kwargs,
        )

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(map(self.write_entry, value)) if isinstance(value, list) else value

    def clean(self, value: Any) -> list[Any]:
        return [self.read_entry(entry) for entry in self._split(plain(super().clean(value)))]

    def keep(self, entries: Iterable[Any]) -> None:
        self.kept = {plain(self.line_of(entry)): entry for entry in entries}

    def write_entry(self, entry: Any) -> str:
        return str(plain(self.line_of(entry)).replace("\n", f"\n{CONTINUED}"))

    def read_entry(self, text: str) -> Any:
        return self.kept[text] if text in self.kept else self.entry_in(text.strip())

    def line_of(self, entry: Any) -> str:
        return str(entry)

    def entry_in(self, line: str) -> Any:
        return line

    @staticmethod
    def _split(text: str) -> list[str]:
        entries: list[str] = []
        for line in text.split("\n"):
            if line.startswith(CONTINUED) and entries:
                entries[-1] += "\n" + line.removeprefix(CONTINUED)
            elif line.strip():
                entries.append(line)
        return entries


class ReferencesField(LinesField):
    def line_of(self, entry: dict[str, str]) -> str:
        return f"{entry['url']} | {entry['title']}" if entry.get("title") else entry["url"]

    def entry_in(self, line: str) -> dict[str, str]:
        url, _, title = line.partition(" | ")
        return {"url": url.strip(), "title": title.strip()}


class GroupsField(forms.MultipleChoiceField):
    """Select group names.

    A deleted group stays listed while an object names it, since dropping it would lift the
    restriction.
    """

    widget = UnfoldAdminSelect2MultipleWidget

    def __init__(self) -> None:
        super().__init__(
            required=False, help_text="Limited to these groups; empty means the whole team."
        )

    def offer(self, named: list[str]) -> None:
        known = list(Group.objects.order_by("name").values_list("name", flat=True))
        gone = [name for name in named if name not in known]
        self.choices = [
            *((name, name) for name in known),
            *((name, f"{name} (deleted)") for name in gone),
        ]


class RefusableForm(forms.ModelForm):  # type: ignore[type-arg]  # not subscriptable at run time
    """Show a domain error as form errors, with the input kept."""

    # Set on the class created for one request.
    refusal: ClassVar[BacklogError | None] = None
    instance: Any

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if self.refusal:
            self.show(self.refusal)
        return cleaned

    def _post_clean(self) -> None:
        """Leave the row untouched: the domain validates and writes."""

    def show(self, error: BacklogError) -> None:
        message = error.message
        if error.suggestion != type(error).suggestion:
            message = f"{message} {error.suggestion}"
        public = str(error.details.get("field", "")).partition(".")[0]
        name = _FORM_NAMES.get(public, public)
        self.add_error(name if name in self.fields else None, message)


class WritePathForm(RefusableForm):
    """Carry the ETag the form was opened with, so that saving a stale form overwrites no other
    user's work.
    """

    etag = forms.CharField(required=False, widget=forms.HiddenInput)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.now: Document = document_of(self.instance) if self.instance.pk else {}
        # Changes by other users since the form was opened, shown above it.
        self.missed: list[TimelineEntry] = []
        if self.now:
            self.initial["etag"] = etag_of(self.instance)
        for name, field in self.fields.items():
            if isinstance(field, LinesField):
                field.keep(self.now.get(name, []))
            elif isinstance(field, GroupsField):
                field.offer(self.now.get(name, []))

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        if self.now and not cleaned.get("etag"):
            self.add_error(
                None, "The form does not say which version it was opened with. Open it again."
            )
        return cleaned

    def show(self, error: BacklogError) -> None:
        if not isinstance(error, Conflict) or not self._catch_up():
            super().show(error)

    def changes(self) -> Document:
        return self._changes_since(self.now)

    def values(self) -> Document:
        """Return the cleaned input as public names and values."""
        return {
            _PUBLIC_NAMES.get(name, name): self._public_value(name, value)
            for name, value in self.cleaned_data.items()
            if name != "etag"
        }

    def _changes_since(self, then: Document) -> Document:
        return {
            name: value
            for name, value in self.values().items()
            if not _same(name, value, then.get(name))
        }

    def _public_value(self, name: str, value: Any) -> Any:
        declared = field_of(self.instance.KIND, name)
        if declared and declared.vocabulary:
            return declared.vocabulary(value).label
        if isinstance(value, Epic):
            return value.ref
        if isinstance(value, User):
            return value.get_username()
        if isinstance(value, datetime.date):
            return value.isoformat()
        if isinstance(value, str):
            return plain(value).replace(
                "\n", "\r\n" if "\r\n" in (self.now.get(name) or "") else "\n"
            )
        return value

    def _catch_up(self) -> bool:
        """Update the fields the user left alone to their current values.

        The user's own input stays, to be saved knowingly.
        """
        version = version_in(self.cleaned_data["etag"], self.instance.ref, self._etag_field()) or 0
        try:
            then = revisions.document_at(self.instance.KIND, self.instance.pk, version)
        except NotFound:
            return False
        mine = self._changes_since(then)
        theirs = [name for name in self.values() if self.now.get(name) != then.get(name)]
        self._refresh([name for name in theirs if name not in mine])
        self.missed = [
            entry for entry in timeline(self.instance).entries if entry.version > version
        ]
        self.add_error(None, STALE.format(ref=self.instance.ref))
        for name in theirs:
            if name in mine:
                self.add_error(_FORM_NAMES.get(name, name), ALSO_CHANGED)
        return True

    def _refresh(self, names: list[str]) -> None:
        """Replace these fields and the ETag in the posted input with their current values."""
        posted: Any = self.data
        self.data = fresh = posted.copy()
        for name in ("etag", *(_FORM_NAMES.get(name, name) for name in names)):
            value = self.fields[name].prepare_value(self.initial.get(name))
            entries = value if isinstance(value, list) else [value]
            fresh.setlist(
                self.add_prefix(name), ["" if entry is None else str(entry) for entry in entries]
            )

    def _etag_field(self) -> str:
        return target_of(uris.parse(uri_of(self.instance))).etag_field


def _same(name: str, value: Any, before: Any) -> bool:
    if name == "groups":
        return set(value) == set(before or [])
    return bool(plain(value) == plain(before))


def _lines(field: Field, kind: type[LinesField] = LinesField, more: str = "") -> LinesField:
    return kind(help_text=f"{field.description}. One per line{more}.")


# The form field of a type. Every other type is edited with the form field of its column.
_FORM_FIELDS: dict[Type, Callable[[Field], forms.Field]] = {
    "markdown": lambda field: TextField(required=field.required, help_text="Markdown."),
    "words": _lines,
    "tasks": lambda field: _lines(field, more=", such as TASK-0001"),
    "texts": lambda field: _lines(field, more="; indented lines belong to the one above"),
    "references": lambda field: _lines(
        field, ReferencesField, ": a URL, or a URL and a title separated by |"
    ),
    "groups": lambda field: GroupsField(),
}


def form_name(field: Field) -> str:
    return _FORM_NAMES.get(field.name, field.name)


def _item_form(model: type[Task] | type[Epic]) -> type[WritePathForm]:
    """Build the form of a kind from its declared fields."""
    declared = writable_fields(model.KIND)
    made: dict[str, Any] = {
        field.name: _FORM_FIELDS[field.type](field)
        for field in declared
        if field.type in _FORM_FIELDS
    }
    names = [form_name(field) for field in declared if field.type not in _FORM_FIELDS]
    meta = type("Meta", (), {"model": model, "fields": names})
    return type(f"{model.__name__}Form", (WritePathForm,), {**made, "Meta": meta})


EpicForm = _item_form(Epic)
TaskForm = _item_form(Task)


class CommentForm(WritePathForm):
    body = TextField(help_text="Markdown.")

    class Meta:
        model = Comment
        fields = ["task", "epic"]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        if not self.now and bool(cleaned.get("task")) == bool(cleaned.get("epic")):
            self.add_error(None, "A comment belongs to one task or to one epic.")
        return cleaned

    def values(self) -> Document:
        return {"body": super().values()["body"]} if "body" in self.cleaned_data else {}


class ResourceForm(WritePathForm):
    description = TextField(rows=3, required=False, help_text="What the file is for.")
    tags = LinesField()
    groups = GroupsField()
    content = TextField(rows=20, required=False)

    class Meta:
        model = Resource
        fields = ["path", "title"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.now and self.now["content"] is None:
            del self.fields["content"]
