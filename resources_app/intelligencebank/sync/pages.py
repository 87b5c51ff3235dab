"""Write a page of rows into the mirror. Unchanged rows only get the new generation."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

from django.utils import timezone

from resources_app.addresses.intelligencebank import uri_of_mirrored
from resources_app.history import change_log
from resources_app.intelligencebank import mapping
from resources_app.intelligencebank.mapping import FolderFacts, Malformed, ResourceFacts
from resources_app.models import IBConnection, IBFolder, IBQuarantine, IBResource, IBSyncRun

Facts = TypeVar("Facts", FolderFacts, ResourceFacts)
_FIXED = {"id", "connection", "client_id", "ib_id", "first_seen_at"}
_RESOURCE_COLUMNS = [
    field.name for field in IBResource._meta.concrete_fields if field.name not in _FIXED
]
_FOLDER_COLUMNS = [
    field.name
    for field in IBFolder._meta.concrete_fields
    if field.name not in {*_FIXED, "children_generation", "depth", "hidden"}
]


class Known(NamedTuple):
    """Hold the columns that decide whether a row must be written."""

    pk: int
    ib_id: str
    content_hash: str
    home_id: int | None
    home_ib_id: str
    version: int
    generation: int
    first_seen_at: datetime
    missing_since: datetime | None
    tombstoned_at: datetime | None
    source_updated_at: datetime | None = None


class Mirror:
    """Write for one run or an on-demand refresh, inside the caller's transaction."""

    def __init__(
        self, connection: IBConnection, generation: int, run: IBSyncRun | None = None
    ) -> None:
        self.connection, self.generation, self.run = connection, generation, run
        self.now = timezone.now()
        # The first full run would announce every row to every user.
        self.tells = connection.last_full_at is not None
        self.counts: Counter[str] = Counter()
        # Set by a step that determines the next place only while writing.
        self.next_place: dict[str, Any] | None = None

    def keep_folders(self, rows: Iterable[Any]) -> list[FolderFacts]:
        facts = self._facts(rows, mapping.folder_facts, "folder")
        known = self._known(IBFolder, facts, "parent_id", "parent_ib_id")
        homes = self._folders({one.parent_ib_id for one in facts.values()})
        written = self._write(IBFolder, facts, known, homes, _FOLDER_COLUMNS)
        if new := [
            folder for folder in written if isinstance(folder, IBFolder) and folder.version == 1
        ]:
            self._adopt(new)
        return list(facts.values())

    def keep_resources(self, rows: Iterable[Any]) -> list[ResourceFacts]:
        facts = self._facts(rows, mapping.resource_facts, "resource")
        known = self._known(IBResource, facts, "folder_id", "folder_ib_id", "source_updated_at")
        homes = self._folders({one.folder_ib_id for one in facts.values()})
        self.counts["unknown_folders"] += sum(
            one.folder_ib_id not in homes for one in facts.values()
        )
        self._write(IBResource, facts, known, homes, _RESOURCE_COLUMNS)
        return list(facts.values())

    def see(self, model: type[IBFolder] | type[IBResource], pks: Sequence[int]) -> None:
        """Mark unchanged rows as seen by updating only the generation."""
        model.objects.filter(pk__in=pks).exclude(generation=self.generation).update(
            generation=self.generation
        )

    def tell(
        self,
        things: Sequence[IBFolder | IBResource],
        action: str = "",
        known: dict[str, Known] | None = None,
    ) -> None:
        """Notify the index and the feed.

        A change names its folder, and the folder it was moved from.
        """
        change_log.follow_mirror(things)
        if not self.tells:
            return
        entries = []
        for thing in things:
            before = (known or {}).get(thing.ib_id)
            homes = [_home_of(thing), *([before.home_ib_id] if before else [])]
            entries.append(
                (thing, uri_of_mirrored(thing), action or ("update" if before else "create"), homes)
            )
        change_log.record_mirrored(entries)

    def quarantine(self, table: str, problems: Sequence[tuple[str, str]]) -> None:
        """Store (id, reason) pairs. A page that is read twice reports once."""
        self.counts["quarantined"] += len(problems)
        if self.run is None:
            return
        rows = [
            IBQuarantine(
                connection=self.connection,
                run=self.run,
                table=table,
                ib_id=ib_id,
                reason=reason[:200],
            )
            for ib_id, reason in dict.fromkeys(problems)
        ]
        IBQuarantine.objects.bulk_create(rows, ignore_conflicts=True)

    def _facts(self, rows: Iterable[Any], read: Any, table: str) -> dict[str, Any]:
        found, problems = {}, []
        for row in rows:
            self.counts["rows"] += 1
            try:
                facts = read(row)
            except Malformed as problem:
                problems.append((mapping.id_of(row), str(problem)))
            else:
                found[facts.ib_id] = facts
        if problems:
            self.quarantine(table, problems)
            self._see_malformed(
                IBFolder if table == "folder" else IBResource, [ib_id for ib_id, _ in problems]
            )
        return found

    def _see_malformed(self, model: type[IBFolder] | type[IBResource], ids: Sequence[str]) -> None:
        """Mark malformed rows as seen: their content is unusable, but they exist."""
        pks = model.objects.filter(connection=self.connection, ib_id__in=ids).values_list(
            "pk", flat=True
        )
        self.see(model, list(pks))

    def _known(
        self, model: type[IBFolder] | type[IBResource], facts: dict[str, Any], *more: str
    ) -> dict[str, Known]:
        home, home_ib_id, *rest = more
        columns = (
            "pk",
            "ib_id",
            "content_hash",
            home,
            home_ib_id,
            "version",
            "generation",
            "first_seen_at",
            "missing_since",
            "tombstoned_at",
        )
        rows = model.objects.filter(connection=self.connection, ib_id__in=list(facts))
        return {row[1]: Known(*row) for row in rows.values_list(*columns, *rest)}

    def _folders(self, ids: set[str]) -> dict[str, int]:
        rows = IBFolder.objects.filter(connection=self.connection, ib_id__in=ids - {""})
        return dict(rows.values_list("ib_id", "pk"))

    def _write(
        self,
        model: type[IBFolder] | type[IBResource],
        facts: dict[str, Any],
        known: dict[str, Known],
        homes: dict[str, int],
        columns: list[str],
    ) -> list[IBFolder | IBResource]:
        unchanged: list[int] = []
        written: list[Any] = []
        for one in facts.values():
            row, home = known.get(one.ib_id), homes.get(_home(one))
            if one.is_deleted:
                self._bury(model, row)
            elif row and (_is_same(one, row, home) or self._is_older(one, row)):
                unchanged.append(row.pk)
            else:
                self.counts[
                    "created" if row is None else "revived" if _was_gone(row) else "updated"
                ] += 1
                written.append(self._row(model, one, row, home))
        self.counts["unchanged"] += len(unchanged)
        self.see(model, unchanged)
        if not written:
            return []
        kept: Any = model.objects.bulk_create(
            written,
            update_conflicts=True,
            unique_fields=["connection", "ib_id"],
            update_fields=columns,
        )
        self.tell(kept, known=known)
        return list(kept)

    def _is_older(self, facts: FolderFacts | ResourceFacts, row: Known) -> bool:
        """Return whether the incoming row is older than the stored one.

        A page read before a newer one must not undo it. Rows last seen by an earlier run are always
        replaced.
        """
        if (
            not isinstance(facts, ResourceFacts)
            or not facts.source_updated_at
            or not row.source_updated_at
        ):
            return False
        was_seen = row.generation == self.generation and not _was_gone(row)
        return was_seen and facts.source_updated_at < row.source_updated_at

    def _row(
        self,
        model: type[IBFolder] | type[IBResource],
        facts: Any,
        row: Known | None,
        home: int | None,
    ) -> IBFolder | IBResource:
        values = {
            name: value
            for name, value in vars(facts).items()
            if name not in {"is_deleted", "content_hash"}
        }
        is_resource = model is IBResource
        values |= (
            {"folder_id": home, "tags": list(facts.tags)} if is_resource else {"parent_id": home}
        )
        return model(
            **values,
            connection=self.connection,
            client_id=self.connection.client_id,
            sort_name=mapping.sort_key(facts.name),
            content_hash=facts.content_hash,
            version=row.version + 1 if row else 1,
            generation=self.generation,
            first_seen_at=row.first_seen_at if row else self.now,
            updated_at=(facts.source_updated_at if is_resource else None) or self.now,
            written_at=self.now,
        )

    def _bury(self, model: type[IBFolder] | type[IBResource], row: Known | None) -> None:
        """Tombstone a row that IntelligenceBank itself reports as deleted.

        No second observation is needed.
        """
        if row is None or row.tombstoned_at:
            return
        self.counts["tombstoned"] += 1
        rows = model.objects.filter(pk=row.pk)
        rows.update(
            missing_since=row.missing_since or self.now,
            tombstoned_at=self.now,
            version=row.version + 1,
            generation=self.generation,
        )
        self.tell(list(rows.select_related("connection")), "remove")

    def _adopt(self, folders: Sequence[IBFolder]) -> None:
        """Attach resources and subfolders that arrived before their folder."""
        by_id = {folder.ib_id: folder for folder in folders}
        resources = IBResource.objects.filter(
            connection=self.connection, folder=None, folder_ib_id__in=list(by_id)
        )
        for ib_id in set(resources.values_list("folder_ib_id", flat=True)):
            resources.filter(folder_ib_id=ib_id).update(folder=by_id[ib_id])
        below = IBFolder.objects.filter(
            connection=self.connection, parent=None, parent_ib_id__in=list(by_id)
        )
        for ib_id in set(below.values_list("parent_ib_id", flat=True)):
            below.filter(parent_ib_id=ib_id).update(parent=by_id[ib_id])


def _home(facts: FolderFacts | ResourceFacts) -> str:
    return facts.folder_ib_id if isinstance(facts, ResourceFacts) else facts.parent_ib_id


def _home_of(thing: IBFolder | IBResource) -> str:
    return thing.folder_ib_id if isinstance(thing, IBResource) else thing.parent_ib_id


def _is_same(facts: FolderFacts | ResourceFacts, row: Known, home: int | None) -> bool:
    return facts.content_hash == row.content_hash and row.home_id == home and not _was_gone(row)


def _was_gone(row: Known) -> bool:
    return bool(row.missing_since or row.tombstoned_at)
