"""Fill an empty database directly through the tables, and leave it as the write path would have.

A few hundred tasks are created as objects; all other rows are copies with another number, title and
time.
"""

import datetime
import time
from typing import Any

from django.contrib.auth.models import Group, User
from django.core.management.color import no_style
from django.db import connection, transaction
from django.db.models import Model
from django.utils import timezone

from bench import texts
from bench.measuring import Sample
from bench.picks import is_archived, is_restricted
from resources_app.addresses import uris
from resources_app.history.documents import document_of, uri_of
from resources_app.identity import tokens
from resources_app.models import Change, Epic, Revision, Sequence, Task, TaskLabel
from resources_app.querying import counters
from resources_app.vocabulary import Priority, Status, Via
from search_app.index.rebuild import reindex
from search_app.index.write import follow

EPICS = 20
PEOPLE = 10
# A multiple of every period in `_task`, so that a copy fits its number.
MODELLED = 600
DESCRIPTION = 1_000
CHUNK = 2_000
UPDATES = 200
STEP = datetime.timedelta(seconds=1)
READERS = "security"

# Column → value as stored in the database.
Row = dict[str, Any]


def fill(count: int) -> str:
    """Fill the tables and return a token for alice, who reads and writes."""
    alice = User.objects.create(username="alice")
    alice.groups.add(Group.objects.get_or_create(name="contributor")[0])
    people = User.objects.bulk_create(User(username=f"person-{n}") for n in range(PEOPLE))
    began = timezone.now() - count * STEP
    with transaction.atomic():
        _fill_epics(began)
        _fill_tasks(
            count,
            [_task(number, people[number % PEOPLE], began) for number in range(MODELLED)],
            began,
        )
    _set_counters(count)
    counters.recount()
    return tokens.create(alice, "bench", "write")[1]


def index() -> float:
    """Build the search index. Return the documents per second of this process's CPU time."""
    began = time.process_time()
    return round(reindex() / (time.process_time() - began), 1)


def enter_again() -> float:
    """Return the p95, in ms, of reindexing one task with another text.

    Everything is rolled back.
    """
    last = Task.objects.order_by("-pk").values_list("pk", flat=True)[0]
    sample = Sample()
    for task in Task.objects.filter(pk__in=range(1, last + 1, max(1, last // UPDATES))):
        task.description += "\n- one more line"
        with transaction.atomic():
            began = time.perf_counter()
            follow([(Change(action="update", fields=["description"], version=2), task)])
            sample.walls.append(time.perf_counter() - began)
            transaction.set_rollback(True)
    return round(sample.p95_ms, 2)


def analyse() -> None:
    """Update the planner statistics, and leave no vacuum to run during the measurement."""
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE" if connection.vendor == "postgresql" else "ANALYZE")


def _fill_epics(at: datetime.datetime) -> None:
    epics = [_epic(number, at) for number in range(1, EPICS + 1)]
    Epic.objects.bulk_create(epics)
    Change.objects.bulk_create(_creation(epic, epic.number) for epic in epics)
    Revision.objects.bulk_create(_first_revision(epic, epic.number) for epic in epics)


def _epic(number: int, at: datetime.datetime) -> Epic:
    text = texts.markdown(number, DESCRIPTION)
    return Epic(
        number=number, title=texts.title(number), description=text, created_at=at, updated_at=at
    )


def _task(number: int, assignee: User, began: datetime.datetime) -> Task:
    at = began + number * STEP
    return Task(
        number=number,
        title=texts.title(number),
        description=texts.markdown(number, DESCRIPTION),
        status=Status.values[number % 5],
        priority=Priority.values[number % 5],
        epic_id=1 + number % EPICS,
        assignee=assignee,
        labels=[f"label-{number % 50}", f"team-{number % 6}"],
        due_date=began.date() + datetime.timedelta(days=number % 300) if number % 3 else None,
        evidence=["Seen on staging"] if number % 5 == 0 else [],
        references=[{"url": "https://example.com/spec", "title": "The specification"}]
        if number % 4 == 0
        else [],
        groups=[READERS] if is_restricted(number) else [],
        restricted=is_restricted(number),
        archived_at=at if is_archived(number) else None,
        created_at=at,
        updated_at=at,
    )


def _creation(item: Task | Epic, number: int) -> Change:
    return Change(
        id=number,
        kind=item.KIND,
        object_id=item.pk,
        ref=item.ref,
        uri=uri_of(item),
        version=1,
        action="create",
        fields=[name for name, value in document_of(item).items() if value],
        operation={"type": "create"},
        via=Via.IMPORT,
        created_at=item.created_at,
    )


def _first_revision(item: Task | Epic, change: int) -> Revision:
    whole = document_of(item)
    return Revision(
        change_id=change, kind=item.KIND, object_id=item.pk, version=1, delta={}, snapshot=whole
    )


def _fill_tasks(count: int, models: list[Task], began: datetime.datetime) -> None:
    readers = Group.objects.get_or_create(name=READERS)[0]
    templates = [_Template(task) for task in models]
    for start in range(1, count + 1, CHUNK):
        numbers = range(start, min(start + CHUNK, count + 1))
        copies = [
            _Copy(templates[number % MODELLED], number, began + number * STEP) for number in numbers
        ]
        _insert(Task, [copy.task() for copy in copies])
        _insert(TaskLabel, [row for copy in copies for row in copy.labels()])
        limited = [
            {"task_id": number, "group_id": readers.pk}
            for number in numbers
            if is_restricted(number)
        ]
        _insert(Task.readers.through, limited)
        _insert(Change, [copy.change() for copy in copies])
        _insert(Revision, [copy.revision() for copy in copies])


class _Template:
    """Hold a task created as an object, and the rows of it, of its creation and of its first
    revision.
    """

    def __init__(self, task: Task) -> None:
        self.labels = task.labels
        self.document = document_of(task)
        self.task, self.change, self.revision = (
            _row_of(made) for made in (task, _creation(task, 0), _first_revision(task, 0))
        )


class _Copy:
    def __init__(self, template: _Template, number: int, at: datetime.datetime) -> None:
        self._template = template
        self._number = number
        self._title = texts.title(number)
        self._at = connection.ops.adapt_datetimefield_value(at)

    def task(self) -> Row:
        own = {
            "number": self._number,
            "title": self._title,
            "created_at": self._at,
            "updated_at": self._at,
        }
        return self._template.task | own

    def labels(self) -> list[Row]:
        return [{"item_id": self._number, "name": name} for name in self._template.labels]

    def change(self) -> Row:
        ref = Task.make_ref(self._number)
        named = {"object_id": self._number, "ref": ref, "uri": uris.build("tasks", ref)}
        return self._template.change | named | {"id": EPICS + self._number, "created_at": self._at}

    def revision(self) -> Row:
        whole = _SNAPSHOT.get_db_prep_save(
            self._template.document | {"title": self._title}, connection
        )
        named = {"change_id": EPICS + self._number, "object_id": self._number}
        return self._template.revision | named | {"snapshot": whole}


_SNAPSHOT = Revision._meta.get_field("snapshot")


def _row_of(thing: Model) -> Row:
    return {
        field.column: field.get_db_prep_save(getattr(thing, field.attname), connection)
        for field in thing._meta.concrete_fields
        if not field.generated
    }


def _insert(model: type[Model], rows: list[Row]) -> None:
    if not rows:
        return
    table, columns = (
        model._meta.db_table,
        ", ".join(connection.ops.quote_name(column) for column in rows[0]),
    )
    values = [tuple(row.values()) for row in rows]
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            with cursor.copy(f"COPY {table} ({columns}) FROM STDIN") as copy:
                for row in values:
                    copy.write_row(row)
        else:
            places = ", ".join(["%s"] * len(rows[0]))
            cursor.executemany(f"INSERT INTO {table} ({columns}) VALUES ({places})", values)


def _set_counters(count: int) -> None:
    """Set the sequences past the inserted rows, which have explicit numbers."""
    Sequence.objects.filter(prefix=Task.PREFIX).update(last=count)
    Sequence.objects.filter(prefix=Epic.PREFIX).update(last=EPICS)
    with connection.cursor() as cursor:
        for statement in connection.ops.sequence_reset_sql(no_style(), [Change, TaskLabel]):
            cursor.execute(statement)
