"""Store the mirror of IntelligenceBank.

Every key includes the connection because ids repeat between tenants.
"""

from typing import ClassVar

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models import Q

from resources_app.models.querysets import (
    IBConnectionQuerySet,
    IBFolderQuerySet,
    IBResourceQuerySet,
)
from resources_app.vocabulary import Kind

HARD_CAP = 600


class IBConnection(models.Model):
    """Store a tenant, the account that mirrors it, and the state of the mirror."""

    class State(models.TextChoices):
        OK = "ok"
        AUTH_REQUIRED = "auth_required"
        TRIPPED = "tripped"

    client_id = models.CharField(
        max_length=64,
        unique=True,
        validators=[
            RegexValidator(
                r"\A[A-Za-z0-9]{2,64}\Z", "Letters and digits, as IntelligenceBank writes it."
            )
        ],
    )
    name = models.CharField(max_length=200)
    platform_url = models.CharField(
        max_length=300, help_text="https://company.intelligencebank.com"
    )
    domains = models.JSONField(
        default=list, blank=True, help_text="Own domains beside *.intelligencebank.com"
    )
    is_enabled = models.BooleanField(default=True)
    calls_per_minute = models.PositiveIntegerField(
        default=300, validators=[MinValueValidator(1), MaxValueValidator(HARD_CAP)]
    )
    daily_budget = models.PositiveIntegerField(
        default=50_000, help_text="Calls per day, for everybody together"
    )
    rights_seconds = models.PositiveIntegerField(
        default=900,
        validators=[MinValueValidator(1)],
        help_text="How long a right that was read counts",
    )
    # Encrypted by vault.py with a per-tenant key. Never exposed.
    data_key = models.BinaryField(editable=False)
    credentials = models.BinaryField(editable=False, default=b"")
    session = models.BinaryField(editable=False, default=b"")
    state = models.CharField(max_length=20, choices=State.choices, default=State.OK, editable=False)
    state_reason = models.CharField(max_length=500, blank=True, default="", editable=False)
    accepted_missing = models.PositiveIntegerField(default=0, editable=False)
    was_main_admin = models.BooleanField(default=False, editable=False)
    generation = models.PositiveBigIntegerField(default=0, editable=False)
    watermark = models.DateTimeField(null=True, blank=True, editable=False)
    last_full_at = models.DateTimeField(null=True, blank=True, editable=False)
    last_complete_at = models.DateTimeField(null=True, blank=True, editable=False)
    # Single writer: acquiring the lease increments the fencing token, and every page write checks
    # it.
    fence = models.PositiveBigIntegerField(default=0, editable=False)
    lease_until = models.DateTimeField(null=True, blank=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = IBConnectionQuerySet.as_manager()

    class Meta:
        verbose_name = "IntelligenceBank connection"
        constraints = [
            models.CheckConstraint(
                name="ib_calls_capped",
                condition=Q(calls_per_minute__gte=1, calls_per_minute__lte=HARD_CAP),
            ),
        ]

    def __str__(self) -> str:
        return self.client_id


class _Mirrored(models.Model):
    """Hold the columns that mirrored rows share.

    A row starts as present. It becomes missing (hidden at once) when a run no longer sees it,
    tombstoned when complete runs confirm its absence, and is finally purged.
    """

    # Tells the search index to check visibility through the queryset instead of trusting a copy.
    restricted: ClassVar[bool] = True

    connection = models.ForeignKey(IBConnection, models.CASCADE)
    # Copied from the connection so that building a URI needs no extra query.
    client_id = models.CharField(max_length=64)
    ib_id = models.CharField(max_length=32)
    name = models.TextField()
    sort_name = models.CharField(max_length=200)
    description = models.TextField(blank=True, default="")
    thumbnail = models.TextField(blank=True, default="")
    is_public = models.BooleanField(default=False)
    content_hash = models.CharField(max_length=64)
    version = models.PositiveIntegerField(default=1)
    # The last run that saw the row. For an unchanged row, nothing else is written.
    generation = models.PositiveBigIntegerField()
    missing_since = models.DateTimeField(null=True, blank=True)
    tombstoned_at = models.DateTimeField(null=True, blank=True)
    first_seen_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    # Last time the content was written here. A list is as recent as the newest of these values.
    written_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return self.name[:100]

    @property
    def ref(self) -> str:
        return self.ib_id


class IBFolder(_Mirrored):
    KIND: ClassVar[str] = Kind.IB_FOLDER.value

    parent = models.ForeignKey(
        "self", models.SET_NULL, null=True, blank=True, related_name="children"
    )
    parent_ib_id = models.CharField(max_length=32, blank=True, default="")
    folders_count = models.PositiveIntegerField(default=0)
    resources_count = models.PositiveIntegerField(default=0)
    # The last run that read all subfolders. Tells the crawl which folders remain to be visited.
    children_generation = models.PositiveBigIntegerField(default=0)
    # Depth below the root (0), recomputed from the parents after every crawl. A folder is hidden if
    # it or an ancestor is missing.
    depth = models.PositiveIntegerField(default=0)
    hidden = models.BooleanField(default=False)

    objects = IBFolderQuerySet.as_manager()

    class Meta:
        verbose_name = "IntelligenceBank folder"
        constraints = [models.UniqueConstraint("connection", "ib_id", name="ib_folder_once")]
        indexes = [
            models.Index("parent", "sort_name", "ib_id", name="ib_folder_children"),
            models.Index(
                "connection", "generation", "children_generation", name="ib_folder_to_visit"
            ),
        ]

    @property
    def archived_at(self) -> object:
        return self.missing_since or self.tombstoned_at

    @property
    def tags(self) -> list[str]:
        return []


class IBResource(_Mirrored):
    KIND: ClassVar[str] = Kind.IB_RESOURCE.value

    folder = models.ForeignKey(
        IBFolder, models.SET_NULL, null=True, blank=True, related_name="resources"
    )
    folder_ib_id = models.CharField(max_length=32)
    tags = models.JSONField(default=list)
    kind = models.CharField(max_length=100, blank=True, default="")
    mime_type = models.CharField(max_length=100, blank=True, default="")
    file_name = models.CharField(max_length=500, blank=True, default="")
    size = models.PositiveBigIntegerField(null=True, blank=True)
    file_hash = models.CharField(max_length=128, blank=True, default="")
    width = models.PositiveBigIntegerField(null=True, blank=True)
    height = models.PositiveBigIntegerField(null=True, blank=True)
    creator = models.CharField(max_length=200, blank=True, default="")
    updater = models.CharField(max_length=200, blank=True, default="")
    version_number = models.PositiveBigIntegerField(default=1)
    source_created_at = models.DateTimeField(null=True, blank=True)
    source_updated_at = models.DateTimeField(null=True, blank=True)

    objects = IBResourceQuerySet.as_manager()

    class Meta:
        verbose_name = "IntelligenceBank resource"
        constraints = [models.UniqueConstraint("connection", "ib_id", name="ib_resource_once")]
        indexes = [
            models.Index("folder", "sort_name", "ib_id", name="ib_resource_in_folder"),
            models.Index("connection", "generation", name="ib_resource_generation"),
        ]

    @property
    def archived_at(self) -> object:
        return self.missing_since or self.tombstoned_at


class IBLink(models.Model):
    """Link a user to their account in a tenant, established by signing in there.

    Only the encrypted session is stored.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="ib_links")
    connection = models.ForeignKey(IBConnection, models.CASCADE, related_name="links")
    ib_user = models.CharField(max_length=64, blank=True, default="")
    person = models.CharField(max_length=200, blank=True, default="")
    session = models.BinaryField(editable=False, default=b"")
    pending = models.BinaryField(editable=False, default=b"")
    expires_at = models.DateTimeField(null=True, blank=True)
    verified_at = models.DateTimeField(null=True, blank=True)
    linked_at = models.DateTimeField(null=True, blank=True)
    error = models.CharField(max_length=500, blank=True, default="")

    class Meta:
        verbose_name = "IntelligenceBank link"
        constraints = [models.UniqueConstraint("user", "connection", name="ib_link_once")]

    def __str__(self) -> str:
        return f"{self.user} in {self.connection}"


class IBEntitlement(models.Model):
    """Cache a user's rights in one folder, as reported to the user's own session, with an
    expiry.
    """

    link = models.ForeignKey(IBLink, models.CASCADE, related_name="entitlements")
    folder = models.ForeignKey(IBFolder, models.CASCADE, related_name="entitlements")
    actions = models.JSONField(default=list)
    may_list = models.BooleanField(default=False)
    may_view = models.BooleanField(default=False)
    # No ancestor folder is entitled, so the user's tree starts here.
    is_top = models.BooleanField(default=False)
    verified_at = models.DateTimeField()
    expires_at = models.DateTimeField()

    class Meta:
        verbose_name = "IntelligenceBank entitlement"
        constraints = [models.UniqueConstraint("link", "folder", name="ib_entitlement_once")]
        indexes = [models.Index("folder", "link", "expires_at", name="ib_entitlement_of_folder")]

    def __str__(self) -> str:
        return f"{self.link}, folder {self.folder_id}: {', '.join(self.actions)}"


class IBSyncRun(models.Model):
    class Kind(models.TextChoices):
        FULL = "full"
        INCREMENTAL = "incremental"
        RECONCILE = "reconcile"

    class Status(models.TextChoices):
        RUNNING = "running"
        PAUSED = "paused"
        COMPLETE = "complete"
        INCOMPLETE = "incomplete"
        FAILED = "failed"
        AUTH_REQUIRED = "auth_required"
        TRIPPED = "tripped"

    connection = models.ForeignKey(IBConnection, models.CASCADE, related_name="runs")
    kind = models.CharField(max_length=12, choices=Kind.choices)
    generation = models.PositiveBigIntegerField()
    status = models.CharField(max_length=14, choices=Status.choices, default=Status.RUNNING)
    # Resume point, written in the same transaction as the page it refers to.
    checkpoint = models.JSONField(default=dict)
    counters = models.JSONField(default=dict)
    error = models.CharField(max_length=500, blank=True, default="")
    failures = models.PositiveIntegerField(default=0)
    resume_at = models.DateTimeField(null=True, blank=True)
    started_at = models.DateTimeField()
    heartbeat_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = "IntelligenceBank sync run"
        constraints = [
            models.UniqueConstraint("connection", "generation", name="ib_run_generation_once"),
            models.UniqueConstraint(
                "connection", condition=Q(status__in=["running", "paused"]), name="ib_one_open_run"
            ),
        ]
        indexes = [models.Index("started_at", "id", name="ib_run_started")]

    def __str__(self) -> str:
        return f"{self.kind} sync of {self.connection}, {self.status}"


class IBQuarantine(models.Model):
    """Record a row or relation that could not be stored, and the reason."""

    connection = models.ForeignKey(IBConnection, models.CASCADE, related_name="quarantined")
    run = models.ForeignKey(IBSyncRun, models.CASCADE, related_name="quarantined")
    table = models.CharField(max_length=20)
    ib_id = models.CharField(max_length=32, blank=True, default="")
    reason = models.CharField(max_length=200)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = "quarantined IntelligenceBank row"
        verbose_name_plural = "quarantined IntelligenceBank rows"
        constraints = [
            models.UniqueConstraint("run", "table", "ib_id", "reason", name="ib_quarantine_once")
        ]

    def __str__(self) -> str:
        return f"{self.table} {self.ib_id}: {self.reason}"
