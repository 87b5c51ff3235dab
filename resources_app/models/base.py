"""Define the base classes of tasks, epics, comments and resources: per-field versions and read
restrictions.
"""

from typing import ClassVar

from django.contrib.auth.models import Group
from django.db import models

from resources_app.models.sparse_json import SparseJSONField


class Versioned(models.Model):
    KIND: ClassVar[str]

    version = models.PositiveIntegerField(default=1, editable=False)
    # {field: row version at which the field last changed}; the field's ETag is derived from it.
    field_versions = SparseJSONField(default=dict, editable=False)
    # Version of the last snapshot and the total weight of the deltas since. They decide when the
    # next snapshot is due.
    snapshot_version = models.PositiveIntegerField(default=1, editable=False)
    delta_weight = models.PositiveIntegerField(default=0, editable=False)
    created_at = models.DateTimeField(editable=False)
    updated_at = models.DateTimeField(editable=False)
    archived_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        abstract = True

    @property
    def ref(self) -> str:
        """Return the public name: TASK-0001, EPIC-0001, a comment number or a resource path."""
        return str(self.pk)


class Restrictable(models.Model):
    """Restrict an object to the named groups. No group means that the whole team can read it."""

    groups = SparseJSONField(default=list, blank=True)
    # `groups` as rows, for the visibility query. Deleting a group leaves `restricted` set, so only
    # admins see the object.
    readers = models.ManyToManyField(Group, blank=True, editable=False)
    restricted = models.BooleanField(default=False, editable=False)

    class Meta:
        abstract = True
