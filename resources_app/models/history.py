"""Store history: one Change per write, one Revision per write to a versioned object, and
idempotency keys.
"""

from django.conf import settings
from django.db import models

from resources_app.models.querysets import ChangeQuerySet
from resources_app.vocabulary import Kind, Via


class Change(models.Model):
    """Record one write for the audit trail and the change feed.

    `position` is the order in the feed. It is assigned after commit; see sequencing.py.
    """

    # Feed order of the previous release. Still written for processes of that release that run
    # during an upgrade.
    txid = models.BigIntegerField(default=0, editable=False)
    position = models.BigIntegerField(null=True, editable=False)
    kind = models.CharField(max_length=12, choices=Kind.choices)
    object_id = models.BigIntegerField()
    ref = models.CharField(max_length=1000)
    uri = models.TextField()
    version = models.PositiveIntegerField()
    action = models.CharField(max_length=20)
    fields = models.JSONField(default=list)
    operation = models.JSONField(default=dict)
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+"
    )
    via = models.CharField(max_length=10, choices=Via.choices)
    agent = models.CharField(max_length=100, blank=True, default="")
    client = models.CharField(max_length=150, blank=True, default="")
    scope = models.CharField(max_length=10, blank=True, default="")
    address = models.GenericIPAddressField(null=True, blank=True)
    batch = models.UUIDField(null=True, blank=True, db_index=True)
    request_id = models.CharField(max_length=64, blank=True, default="")
    created_at = models.DateTimeField()

    objects = ChangeQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index("txid", "id", name="change_feed"),
            models.Index(
                "position", "id", name="change_pending", condition=models.Q(position__isnull=True)
            ),
            models.Index("kind", "object_id", "version", name="change_of_thing"),
            models.Index("author", "agent", "id", name="change_by_agent"),
        ]
        constraints = [
            models.CheckConstraint(name="change_via_known", condition=models.Q(via__in=Via.values)),
            # The condition makes SQLite create an index instead of copying the table.
            models.UniqueConstraint(
                fields=["position"],
                name="change_position_once",
                condition=models.Q(position__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.ref} v{self.version}"

    @property
    def token(self) -> str:
        """Return the name of the API token or OAuth app that wrote, or "" for a browser session.

        Unlike this name, `agent` is chosen by the client.
        """
        credential, _, name = self.client.partition(" ")
        return name if credential.startswith(("token:", "oauth:")) else ""


class Revision(models.Model):
    """Store the delta from the previous version, and occasionally a snapshot of the whole
    document.
    """

    change = models.OneToOneField(Change, models.PROTECT, primary_key=True, related_name="revision")
    kind = models.CharField(max_length=12, choices=Kind.choices)
    object_id = models.BigIntegerField()
    version = models.PositiveIntegerField()
    delta = models.JSONField()
    snapshot = models.JSONField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint("kind", "object_id", "version", name="revision_once"),
            models.CheckConstraint(
                name="revision_starts_whole",
                condition=models.Q(version__gt=1) | models.Q(snapshot__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.object_id} v{self.version}"


class IdempotencyKey(models.Model):
    """Store the response to an idempotency key, so that a retry of the same request does not act
    twice.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE)
    key = models.CharField(max_length=200)
    body_hash = models.CharField(max_length=64)
    answer = models.JSONField()
    created_at = models.DateTimeField(db_index=True)

    class Meta:
        constraints = [models.UniqueConstraint("user", "key", name="idempotency_key_once")]

    def __str__(self) -> str:
        return self.key
