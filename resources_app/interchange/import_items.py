"""Import one task or epic and its comments: create it, or update the fields that changed in the
file.
"""

from collections import defaultdict
from dataclasses import replace
from typing import Any

from django.contrib.auth.models import Group, User
from django.utils import timezone

from resources_app.fields.declarations import parse_ref
from resources_app.history import change_log
from resources_app.history.documents import MODELS, document_of, uri_of, visible_tasks
from resources_app.history.revisions import Document
from resources_app.identity.roles import Actor
from resources_app.interchange.comment_files import (
    AUTHORS,
    CommentLine,
    author_key,
    remembered_authors,
)
from resources_app.interchange.file_layout import LAYOUT, item_text, needed_layout
from resources_app.interchange.import_folders import FOLDERS_AS
from resources_app.interchange.item_files import ItemFile, digest_of
from resources_app.interchange.tree import Report
from resources_app.jobs.time_slices import time_slices
from resources_app.models import Comment, Epic, Task
from resources_app.reading.markdown import BOOKKEEPING, kept_keys
from resources_app.writing.edits import Edit
from resources_app.writing.session import WriteSession
from resources_app.writing.write_path import create_item, write_transaction

DIGESTS = "digests"
_ONE_REFERENCE = ("assignee", "epic_id")

# Existing comments by time, author and agent.
Present = dict[tuple[Any, str | None, str], list[Comment]]


class ItemImport:
    def __init__(
        self, actor: Actor, file: ItemFile, comments: list[CommentLine], report: Report
    ) -> None:
        self.actor = actor
        self.file = file
        self.comments = comments
        self.report = report
        self.said = file.digests()
        self.must_archive = file.archived

    def run(self) -> None:
        with write_transaction():
            session = WriteSession(self.actor)
            item = self._find()
            if item is None:
                outcome, item = "created", self._create()
            else:
                outcome = "updated" if self._update(session, item) else "unchanged"
        self.report.counts[f"{self.file.kind}s {outcome}"] += 1
        if self.comments:
            self._add_comments(item)

    def settle_archive(self) -> None:
        """Archive last, because tasks can only be put into an epic that is not archived yet."""
        item = self._find()
        if not self.must_archive or item is None or item.archived_at:
            return
        times = self.file.times
        at = (
            times.get("archived_at")
            or times.get("updated_at")
            or times.get("created_at")
            or timezone.now()
        )
        with write_transaction():
            internal = {"archived_at": at.isoformat(), "extra": self._extra(document_of(item))}
            edit = Edit({"type": "archive"}, internal=internal)
            actor = replace(self.actor, at=times.get("updated_at", at))
            WriteSession(actor).save(item, edit, uri=uri_of(item), action="archive")

    def _find(self) -> Task | Epic | None:
        rows: Any = MODELS[self.file.kind].objects
        found: Task | Epic | None = (
            rows.select_related("assignee").filter(pk=self.file.number).first()
        )
        return found

    # Items

    def _create(self) -> Task | Epic:
        self._settle_references(None)
        created, updated = self.file.times.get("created_at"), self.file.times.get("updated_at")
        return create_item(
            self.actor,
            self.file.kind,
            self.file.values,
            number=self.file.number,
            created_at=created or updated,
            updated_at=updated,
            extra=self._extra({}),
        )

    def _update(self, session: WriteSession, item: Task | Epic) -> bool:
        before = document_of(item)
        self._settle_references(before)
        changed = {
            name: value
            for name, value in self._wanted(item, before).items()
            if value != before[name]
        }
        internal: Document = {"extra": self._extra(before)}
        moved = self._base(item).get("archived") != self.said["archived"]
        self.must_archive = self.file.archived and moved and not self._is_outdated(item)
        if item.archived_at and not self.file.archived and moved:
            internal["archived_at"] = None
        as_before = _lasting(internal) == _lasting(before) and self._has_layout(item, internal)
        if not changed and "archived_at" not in internal and as_before:
            return False
        if self._is_outdated(item):
            self.file.warnings.append(
                "It was changed here after the file was written; the file was not taken over."
            )
            return False
        session.save(
            item,
            Edit({"type": "merge", "value": changed}, changed, internal),
            uri=uri_of(item),
            action="update",
        )
        return True

    def _wanted(self, item: Task | Epic, before: Document) -> Document:
        """Return the wanted value of each field: from the file if the file changed, else the
        current one.
        """
        wanted: Document = {}
        for name, value in self.file.values.items():
            if self._base(item).get(name) != self.said[name]:
                wanted[name] = value
            else:
                wanted[name] = self._found_since(name, value, before)
        return wanted

    def _found_since(self, name: str, value: Any, before: Document) -> Any:
        """Return the value with users, epics or tasks named in the file that did not exist at the
        last import.
        """
        missed = kept_keys(before).get(name)
        if missed and name in _ONE_REFERENCE and before[name] is None:
            return value
        if missed and name == "depends_on":
            return [
                *before[name],
                *(ref for ref in value if ref in missed and ref not in before[name]),
            ]
        return before[name]

    def _base(self, item: Task | Epic) -> dict[str, str]:
        base: dict[str, str] = item.extra.get(BOOKKEEPING, {}).get(DIGESTS, {})
        return base

    def _is_outdated(self, item: Task | Epic) -> bool:
        """Return whether the file is older than the item.

        Only relevant if the item was never imported.
        """
        written = self.file.times.get("updated_at")
        return not self._base(item) and written is not None and written < item.updated_at

    def _has_layout(self, item: Task | Epic, internal: Document) -> bool:
        """Return whether an export would reproduce the file."""
        stored, found = (
            extra.get(BOOKKEEPING, {}).get(LAYOUT) for extra in (item.extra, internal["extra"])
        )
        return stored == found or digest_of(item_text(item)) == self.file.digest

    def _extra(self, before: Document) -> dict[str, Any]:
        noted = dict(before.get("extra", {}).get(BOOKKEEPING, {})) | {DIGESTS: self.said}
        for name in (LAYOUT, FOLDERS_AS):
            noted.pop(name, None)
        if self.file.folders_as:
            noted[FOLDERS_AS] = self.file.folders_as
        if layout := needed_layout(self.file):
            noted[LAYOUT] = layout
        strangers = self._strangers()
        if strangers:
            noted[AUTHORS] = noted.get(AUTHORS, {}) | strangers
        return {**self.file.kept, BOOKKEEPING: noted}

    # References

    def _settle_references(self, before: Document | None) -> None:
        """Set aside names that do not exist here, so that an export restores them."""
        values = self.file.values
        for name in _ONE_REFERENCE:
            value = values.get(name)
            if value and not (before and before[name] == value) and not self._exists(name, value):
                self.file.keep(
                    name,
                    value,
                    f"There is no {'user' if name == 'assignee' else 'live epic'} {value}.",
                )
                values[name] = None
        if values.get("depends_on"):
            self._settle_dependencies(values["depends_on"])
        for name in values["groups"]:
            if Group.objects.get_or_create(name=name)[1]:
                self.file.warnings.append(f"The group {name!r} was created; it has no members yet.")

    def _settle_dependencies(self, refs: list[str]) -> None:
        known = visible_tasks(self.actor, [ref for ref in refs if ref != self.file.ref])
        for ref in refs:
            if ref not in known:
                self.file.keep(
                    "depends_on",
                    [ref],
                    f"It cannot depend on {ref}, which does not exist or is itself.",
                )
        self.file.values["depends_on"] = [ref for ref in refs if ref in known]

    def _exists(self, name: str, value: str) -> bool:
        if name == "assignee":
            return User.objects.filter(username=value, is_active=True).exists()
        return Epic.objects.live().filter(pk=parse_ref(value, Epic.PREFIX) or 0).exists()

    # Comments

    def _strangers(self) -> dict[str, list[str]]:
        """Return comment authors without an account here, by the time of the comment."""
        names = {line.author for line in self.comments if line.author}
        known = (
            set(User.objects.filter(username__in=names).values_list("username", flat=True))
            if names
            else set()
        )
        strangers: dict[str, list[str]] = defaultdict(list)
        for line in self.comments:
            if line.author and line.author not in known:
                strangers[author_key(line.created_at)].append(line.author)
        return dict(strangers)

    def _add_comments(self, item: Task | Epic) -> None:
        """Add the comments in separate transactions, since there may be thousands."""
        present = self._present_comments(item)
        authors = self._authors()
        with change_log.listeners_called_once():
            for part in time_slices(self.comments):
                with write_transaction():
                    session = WriteSession(self.actor)
                    for line in part:
                        self._add_comment(session, item, line, present, authors)

    def _add_comment(
        self,
        session: WriteSession,
        item: Task | Epic,
        line: CommentLine,
        present: Present,
        authors: dict[str, User],
    ) -> None:
        twins = present.get((line.created_at, line.author, line.agent), [])
        comment = twins.pop(0) if twins else None
        if comment is None:
            session.insert(_comment(item, line, authors.get(line.author or "")), {})
            self.report.counts["comments created"] += 1
        elif comment.body != line.body and comment.updated_at < line.updated_at:
            edit = Edit({"type": "set", "value": line.body}, {"body": line.body})
            session.save(comment, edit, uri=uri_of(comment), action="update")
            self.report.counts["comments updated"] += 1

    def _authors(self) -> dict[str, User]:
        names = {line.author for line in self.comments if line.author}
        return {user.username: user for user in User.objects.filter(username__in=names)}

    def _present_comments(self, item: Task | Epic) -> Present:
        names = {moment: list(authors) for moment, authors in remembered_authors(item).items()}
        present: Present = defaultdict(list)
        for comment in item.comments.select_related("author").order_by("created_at", "pk"):
            strangers = names.get(author_key(comment.created_at), [])
            author = (
                comment.author.username
                if comment.author
                else strangers.pop(0)
                if strangers
                else None
            )
            present[comment.created_at, author, comment.agent].append(comment)
        return present


def _comment(item: Task | Epic, line: CommentLine, author: User | None) -> Comment:
    return Comment(
        **{item.KIND: item},
        author=author,
        agent=line.agent,
        body=line.body,
        created_at=line.created_at,
        updated_at=line.updated_at,
        archived_at=line.archived_at,
    )


def _lasting(document: Document) -> dict[str, Any]:
    """Return `extra` without the digests, which alone do not justify a new version."""
    extra = document.get("extra", {})
    return {**kept_keys(document), AUTHORS: extra.get(BOOKKEEPING, {}).get(AUTHORS, {})}
