"""Store files: writable ones kept in the database, and read-only mirrors of a configured root."""

from django.db import models
from django.db.models import Q

from resources_app.models.base import Restrictable, Versioned
from resources_app.models.querysets import FolderQuerySet, ResourceQuerySet


class Folder(models.Model):
    """Represent a folder, which exists while a resource lies below it.

    The row makes listing one level a single indexed query.
    """

    path = models.CharField(max_length=1000, unique=True)
    parent = models.ForeignKey(
        "self", models.CASCADE, null=True, blank=True, related_name="subfolders"
    )

    objects = FolderQuerySet.as_manager()

    def __str__(self) -> str:
        return self.path


class Resource(Versioned, Restrictable):
    KIND = "resource"

    path = models.CharField(max_length=1000, unique=True, help_text="resources/… or artifacts/…")
    folder = models.ForeignKey(Folder, models.PROTECT, related_name="resources")
    ancestors = models.ManyToManyField(Folder, related_name="descendants", editable=False)
    root = models.CharField(
        max_length=100, blank=True, default="", help_text="The configured root; empty: stored here"
    )
    mime_type = models.CharField(max_length=100)
    size = models.PositiveBigIntegerField()
    sha256 = models.CharField(max_length=64)
    title = models.CharField(max_length=200, blank=True, default="")
    description = models.TextField(blank=True, default="")
    tags = models.JSONField(default=list, blank=True)
    frontmatter = models.JSONField(default=dict, blank=True)
    # Text is stored here for stored and mirrored files, so that search and history read one column.
    # Mirrored binaries stay on disk.
    content = models.TextField(null=True, blank=True)  # noqa: DJ001  NULL means binary, "" means empty text
    blob = models.BinaryField(null=True, blank=True)

    objects = ResourceQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="resource_path_area",
                condition=Q(path__startswith="resources/") | Q(path__startswith="artifacts/"),
            ),
        ]
        indexes = [
            models.Index("folder", "path", name="resource_in_folder"),
            models.Index("root", "path", name="resource_of_root"),
            models.Index(
                "updated_at", "id", name="resource_updated", condition=Q(archived_at__isnull=True)
            ),
        ]

    def __str__(self) -> str:
        return self.path

    @property
    def ref(self) -> str:
        return self.path

    @property
    def is_text(self) -> bool:
        return self.content is not None
