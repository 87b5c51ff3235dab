"""What tasks, epics, comments and resources have in common: a version per field, and readers."""

from typing import ClassVar

from django.contrib.auth.models import Group
from django.db import models

from resources_app.models.sparse_json import SparseJSONField


class Versioned(models.Model):
    KIND: ClassVar[str]

    version = models.PositiveIntegerField(default=1, editable=False)
    # {field: version of the row when the field last changed}; a field's ETag is made from it.
    field_versions = SparseJSONField(default=dict, editable=False)
    # Where the history's last snapshot is and what the deltas since weigh: tells when the next is due.
    snapshot_version = models.PositiveIntegerField(default=1, editable=False)
    delta_weight = models.PositiveIntegerField(default=0, editable=False)
    created_at = models.DateTimeField(editable=False)
    updated_at = models.DateTimeField(editable=False)
    archived_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        abstract = True

    @property
    def ref(self) -> str:
        """The public name: TASK-0001, EPIC-0001, comment number, resource path."""
        return str(self.pk)


class Restrictable(models.Model):
    """Limited to the named groups; no group means the whole team."""

    groups = SparseJSONField(default=list, blank=True)
    # `groups` as rows, for the visibility query. A deleted group leaves `restricted` set: then only admins see it.
    readers = models.ManyToManyField(Group, blank=True, editable=False)
    restricted = models.BooleanField(default=False, editable=False)

    class Meta:
        abstract = True
