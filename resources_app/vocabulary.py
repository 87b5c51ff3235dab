"""Define the closed vocabularies: statuses, priorities, kinds, and channels of writes."""

from django.db import models


class Status(models.IntegerChoices):
    """Number the statuses so that sorting follows the workflow. Clients see the names."""

    OPEN = 1, "open"
    IN_PROGRESS = 2, "in_progress"
    BLOCKED = 3, "blocked"
    DONE = 4, "done"
    CANCELLED = 5, "cancelled"


UNFINISHED = (Status.OPEN, Status.IN_PROGRESS, Status.BLOCKED)


class Priority(models.IntegerChoices):
    NONE = 0, "none"
    LOW = 1, "low"
    MEDIUM = 2, "medium"
    HIGH = 3, "high"
    URGENT = 4, "urgent"


class Kind(models.TextChoices):
    TASK = "task"
    EPIC = "epic"
    COMMENT = "comment"
    RESOURCE = "resource"
    IB_FOLDER = "ib_folder"
    IB_RESOURCE = "ib_resource"


# Mirrored: IntelligenceBank decides who sees them, even for admins.
IB_KINDS = (Kind.IB_FOLDER, Kind.IB_RESOURCE)


class Via(models.TextChoices):
    WEB = "web"
    REST = "rest"
    MCP = "mcp"
    ADMIN = "admin"
    SYNC = "sync"
    IMPORT = "import"
