"""Store tasks, epics and their comments."""

import datetime
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q, Value
from django.db.models.functions import Coalesce

from resources_app.models.base import Restrictable, Versioned
from resources_app.models.querysets import CommentQuerySet, ItemQuerySet, TaskQuerySet
from resources_app.models.sparse_json import SparseJSONField
from resources_app.vocabulary import Priority, Status

LIVE = Q(archived_at__isnull=True)
# Sort keys for items without a due date or estimate: they sort after all items that have one.
NO_DUE_DATE = datetime.date(9999, 12, 31)
NO_ESTIMATE = 1_000_000.0


class Item(Versioned, Restrictable):
    """Hold the fields that tasks and epics share.

    Lists are stored as columns. Label and dependency rows exist beside them for filtering.
    """

    PREFIX: ClassVar[str]

    number = models.PositiveBigIntegerField(primary_key=True, editable=False)
    title = models.CharField(max_length=200)
    description = models.TextField(blank=True, default="")
    status = models.PositiveSmallIntegerField(choices=Status.choices, default=Status.OPEN)
    priority = models.PositiveSmallIntegerField(choices=Priority.choices, default=Priority.NONE)
    labels = SparseJSONField(default=list, blank=True)
    assignee = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )
    due_date = models.DateField(null=True, blank=True)
    due_order = models.GeneratedField(
        expression=Coalesce("due_date", Value(NO_DUE_DATE)),
        output_field=models.DateField(),
        db_persist=True,
    )
    evidence = SparseJSONField(default=list, blank=True)
    blocked_reason = SparseJSONField(default=list, blank=True)
    references = SparseJSONField(default=list, blank=True)
    # Frontmatter keys of imported files that have no field in the backlog. They are written back on
    # export.
    extra = SparseJSONField(default=dict, blank=True, editable=False)

    class Meta:
        abstract = True
        constraints = [
            models.CheckConstraint(name="%(class)s_title_given", condition=~Q(title="")),
            models.CheckConstraint(
                name="%(class)s_status_known", condition=Q(status__in=Status.values)
            ),
            models.CheckConstraint(
                name="%(class)s_priority_known", condition=Q(priority__in=Priority.values)
            ),
            models.CheckConstraint(name="%(class)s_version_positive", condition=Q(version__gte=1)),
        ]
        indexes = [
            models.Index("updated_at", "number", name="%(class)s_updated", condition=LIVE),
            models.Index("created_at", "number", name="%(class)s_created", condition=LIVE),
            models.Index("title", "number", name="%(class)s_title", condition=LIVE),
            models.Index("status", "number", name="%(class)s_status_order", condition=LIVE),
            models.Index("priority", "number", name="%(class)s_priority_order", condition=LIVE),
            models.Index("status", "updated_at", "number", name="%(class)s_status", condition=LIVE),
            models.Index(
                "priority", "updated_at", "number", name="%(class)s_priority", condition=LIVE
            ),
            models.Index(
                "assignee", "updated_at", "number", name="%(class)s_assignee", condition=LIVE
            ),
            models.Index("due_order", "number", name="%(class)s_due", condition=LIVE),
            models.Index("archived_at", "number", name="%(class)s_archived", condition=~LIVE),
            models.Index(
                "status",
                "priority",
                name="%(class)s_restricted",
                condition=LIVE & Q(restricted=True),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.ref} {self.title}"

    @classmethod
    def make_ref(cls, number: int) -> str:
        return f"{cls.PREFIX}-{number:04d}"

    @property
    def ref(self) -> str:
        return self.make_ref(self.number)


class Epic(Item):
    KIND = "epic"
    PREFIX = "EPIC"

    objects = ItemQuerySet.as_manager()


class Task(Item):
    KIND = "task"
    PREFIX = "TASK"

    epic = models.ForeignKey(Epic, models.PROTECT, null=True, blank=True, related_name="tasks")
    depends_on = SparseJSONField(default=list, blank=True)
    estimate = models.FloatField(null=True, blank=True)
    estimate_order = models.GeneratedField(
        expression=Coalesce("estimate", Value(NO_ESTIMATE)),
        output_field=models.FloatField(),
        db_persist=True,
    )

    objects = TaskQuerySet.as_manager()

    class Meta(Item.Meta):
        indexes = [
            *Item.Meta.indexes,
            models.Index("epic", "updated_at", "number", name="%(class)s_epic", condition=LIVE),
            models.Index("estimate_order", "number", name="%(class)s_estimate", condition=LIVE),
            # Work order, used by contexts and by the epic page.
            models.Index(
                "epic",
                "status",
                F("priority").desc(),
                "number",
                name="%(class)s_in_epic",
                condition=LIVE,
            ),
        ]


class TaskLabel(models.Model):
    item = models.ForeignKey(Task, models.CASCADE, related_name="label_rows")
    name = models.CharField(max_length=50)

    class Meta:
        constraints = [models.UniqueConstraint("name", "item", name="tasklabel_once")]

    def __str__(self) -> str:
        return f"{self.name} on {Task.make_ref(self.item_id)}"


class EpicLabel(models.Model):
    item = models.ForeignKey(Epic, models.CASCADE, related_name="label_rows")
    name = models.CharField(max_length=50)

    class Meta:
        constraints = [models.UniqueConstraint("name", "item", name="epiclabel_once")]

    def __str__(self) -> str:
        return f"{self.name} on {Epic.make_ref(self.item_id)}"


class TaskDependency(models.Model):
    """Record that `task` cannot start before `needs` is finished.

    Rows mirror Task.depends_on, for queries and integrity.
    """

    task = models.ForeignKey(Task, models.CASCADE, related_name="dependency_rows")
    needs = models.ForeignKey(Task, models.PROTECT, related_name="dependent_rows")

    class Meta:
        constraints = [
            models.UniqueConstraint("task", "needs", name="dependency_once"),
            models.CheckConstraint(name="dependency_not_on_itself", condition=~Q(task=F("needs"))),
        ]

    def __str__(self) -> str:
        return f"{Task.make_ref(self.task_id)} needs {Task.make_ref(self.needs_id)}"


class Comment(Versioned):
    KIND = "comment"

    task = models.ForeignKey(Task, models.CASCADE, null=True, blank=True, related_name="comments")
    epic = models.ForeignKey(Epic, models.CASCADE, null=True, blank=True, related_name="comments")
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+"
    )
    agent = models.CharField(max_length=100, blank=True, default="")
    body = models.TextField()

    objects = CommentQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="comment_on_one_thing",
                condition=Q(task__isnull=False, epic__isnull=True)
                | Q(task__isnull=True, epic__isnull=False),
            ),
            models.CheckConstraint(name="comment_body_given", condition=~Q(body="")),
        ]
        indexes = [
            models.Index("task", "created_at", name="comment_on_task"),
            models.Index("epic", "created_at", name="comment_on_epic"),
            models.Index("created_at", "id", name="comment_created", condition=LIVE),
        ]

    def __str__(self) -> str:
        return f"Comment {self.pk} on {self.item.ref}"

    @property
    def item(self) -> Task | Epic:
        item = self.task or self.epic
        assert item is not None  # noqa: S101  a database constraint guarantees that one is set
        return item


class Sequence(models.Model):
    """Store the last number issued for a prefix.

    The row lock makes numbers unique and gapless, and prevents reuse.
    """

    prefix = models.CharField(max_length=10, primary_key=True)
    last = models.PositiveBigIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.prefix} {self.last}"


class Tally(models.Model):
    """Store one increment or decrement of the count of live, unrestricted items of a kind; see
    counters.py.
    """

    kind = models.CharField(max_length=10)
    status = models.PositiveSmallIntegerField()
    priority = models.PositiveSmallIntegerField()
    step = models.BigIntegerField()

    class Meta:
        verbose_name_plural = "tallies"

    def __str__(self) -> str:
        return f"{self.kind} {self.status} {self.priority}: {self.step:+d}"
