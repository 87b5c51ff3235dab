"""Store the index: a row per searchable object, and which of the two slots is in use.

Each backend stores the texts.
"""

from django.db import models

SLOTS = ("a", "b")


class IndexState(models.Model):
    """Hold the index state in one row.

    Writes go to `live` and, during a rebuild, also to `building`; the end of a rebuild swaps them.
    """

    live = models.CharField(max_length=1, default=SLOTS[0])
    # Without a row the index is as the first migration left it.
    live_schema = models.PositiveIntegerField(default=1)
    building = models.CharField(max_length=1, blank=True, default="")
    building_schema = models.PositiveIntegerField(default=0)
    # Position of the rebuild: {"kind", "after", "done", "total"}.
    position = models.JSONField(default=dict)
    swapped_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.live}, building {self.building or 'nothing'}"


class Document(models.Model):
    """Hold what filters, visibility and ranking need.

    Archived objects are included, because the archive is searchable.
    """

    slot = models.CharField(max_length=1)
    kind = models.CharField(max_length=12)
    object_id = models.BigIntegerField()
    status = models.PositiveSmallIntegerField(null=True)
    # The epic of a task, such as EPIC-0001, or the folder of a file.
    parent = models.CharField(max_length=1000, default="")
    assignee_id = models.IntegerField(null=True)
    restricted = models.BooleanField(default=False)
    archived = models.BooleanField(default=False)
    # Number of tokens and time of the last change, for ranking.
    length = models.PositiveIntegerField(default=0)
    updated_at = models.DateTimeField()
    # Versions of the object and of its comments in this row, to detect stale rows.
    version = models.PositiveIntegerField()
    comments_version = models.PositiveBigIntegerField(default=0)
    # Key of the folded title, for a query that equals it.
    title_key = models.BigIntegerField()
    # Labels or tags, each between separators.
    labels = models.TextField(default="")
    # The text changed after its passages were last compared with it.
    pending = models.BooleanField(default=True)

    class Meta:
        constraints = [models.UniqueConstraint("slot", "kind", "object_id", name="document_once")]
        indexes = [
            models.Index("slot", "title_key", name="document_title"),
            models.Index("slot", "id", condition=models.Q(pending=True), name="document_pending"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.object_id}"


class Passage(models.Model):
    """Store a stretch of text as a vector. Both slots share it: vectors depend only on the text,
    and a rebuild needs none.

    All passages of an object are written at once with new ids, so a cached copy only reads ids
    after its last one.
    """

    kind = models.CharField(max_length=12)
    object_id = models.BigIntegerField()
    number = models.PositiveSmallIntegerField()
    # Of the text and the model: an equal digest need not be embedded again.
    digest = models.BinaryField(max_length=16)
    # 384 numbers of one byte, and their signs as bits, to scan all of them fast.
    vector = models.BinaryField(max_length=384)
    code = models.BinaryField(max_length=48)

    class Meta:
        constraints = [models.UniqueConstraint("kind", "object_id", "number", name="passage_once")]

    def __str__(self) -> str:
        return f"{self.kind} {self.object_id} #{self.number}"
