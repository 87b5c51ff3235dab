"""Define every table of the backlog.

Only the write path writes rows. querysets.py decides which users can see them.
"""

from resources_app.models.access import ApiToken, ServiceAccount
from resources_app.models.backlog import (
    Comment,
    Epic,
    EpicLabel,
    Sequence,
    Tally,
    Task,
    TaskDependency,
    TaskLabel,
)
from resources_app.models.history import Change, IdempotencyKey, Revision
from resources_app.models.ib import (
    IBConnection,
    IBEntitlement,
    IBFolder,
    IBLink,
    IBQuarantine,
    IBResource,
    IBSyncRun,
)
from resources_app.models.jobs import Job
from resources_app.models.resource import Folder, Resource

__all__ = [
    "ApiToken",
    "Change",
    "Comment",
    "Epic",
    "EpicLabel",
    "Folder",
    "IBConnection",
    "IBEntitlement",
    "IBFolder",
    "IBLink",
    "IBQuarantine",
    "IBResource",
    "IBSyncRun",
    "IdempotencyKey",
    "Job",
    "Resource",
    "Revision",
    "Sequence",
    "ServiceAccount",
    "Tally",
    "Task",
    "TaskDependency",
    "TaskLabel",
]
