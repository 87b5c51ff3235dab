"""The index: a row per searchable thing, and which of its two slots is searched. The texts are the backend's: see there."""

from django.db import models

SLOTS = ("a", "b")


class IndexState(models.Model):
    """One row. Writes go to `live` and, while a rebuild runs, also to `building`; the end of a rebuild swaps them."""

    live = models.CharField(max_length=1, default=SLOTS[0])
    # Without a row the index is as its first migration left it.
    live_schema = models.PositiveIntegerField(default=1)
    building = models.CharField(max_length=1, blank=True, default="")
    building_schema = models.PositiveIntegerField(default=0)
    # How far the rebuild is: {"kind", "after", "done", "total"}.
    position = models.JSONField(default=dict)
    swapped_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.live}, building {self.building or 'nothing'}"


class Document(models.Model):
    """What filters, visibility and ranking need of a thing. Archived things are here too: the archive is searched as well."""

    slot = models.CharField(max_length=1)
    kind = models.CharField(max_length=12)
    object_id = models.BigIntegerField()
    status = models.PositiveSmallIntegerField(null=True)
    # EPIC-0001 of a task, the folder of a file.
    parent = models.CharField(max_length=1000, default="")
    assignee_id = models.IntegerField(null=True)
    restricted = models.BooleanField(default=False)
    archived = models.BooleanField(default=False)
    # Length of all tokens, and when the thing last changed: for ranking.
    length = models.PositiveIntegerField(default=0)
    updated_at = models.DateTimeField()
    # Which version of the thing, and of what is said about it, this row holds: tells what is stale.
    version = models.PositiveIntegerField()
    comments_version = models.PositiveBigIntegerField(default=0)
    # Of the folded title, for a query that is exactly it.
    title_key = models.BigIntegerField()
    # Labels or tags, each between separators.
    labels = models.TextField(default="")
    # The text was written after its passages were last compared with it.
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
    """A stretch of a thing's text as a vector. Of both slots: vectors depend on the text alone, and a rebuild needs none.

    All passages of a thing are written at once, with new ids: whoever keeps a copy reads what came after the last id.
    """

    kind = models.CharField(max_length=12)
    object_id = models.BigIntegerField()
    number = models.PositiveSmallIntegerField()
    # Of the text and the model: an equal one need not be embedded again.
    digest = models.BinaryField(max_length=16)
    # 384 numbers of one byte; and their signs, a bit each, to look through all of them quickly.
    vector = models.BinaryField(max_length=384)
    code = models.BinaryField(max_length=48)

    class Meta:
        constraints = [models.UniqueConstraint("kind", "object_id", "number", name="passage_once")]

    def __str__(self) -> str:
        return f"{self.kind} {self.object_id} #{self.number}"
