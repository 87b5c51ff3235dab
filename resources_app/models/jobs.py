"""Store background jobs durably. Celery only wakes a worker, so a lost wake-up loses no work."""

from django.conf import settings
from django.db import models
from django.db.models import Q


class Job(models.Model):
    class State(models.TextChoices):
        PENDING = "pending"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"

    kind = models.CharField(max_length=50)
    payload = models.JSONField(default=dict)
    # At most one pending job per key: enqueueing the same work again before it starts has no
    # effect.
    key = models.CharField(max_length=200)
    state = models.CharField(max_length=10, choices=State.choices, default=State.PENDING)
    run_at = models.DateTimeField()
    lease_until = models.DateTimeField(null=True, blank=True)
    # Fencing token, incremented by every claim. A worker that lost its lease sees a different
    # number and must not write.
    attempts = models.PositiveIntegerField(default=0)
    progress = models.JSONField(default=dict)
    last_error = models.TextField(blank=True, default="")
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint("key", condition=Q(state="pending"), name="job_waits_once"),
        ]
        indexes = [
            models.Index("run_at", "id", condition=Q(state="pending"), name="job_due"),
            models.Index("lease_until", condition=Q(state="running"), name="job_leased"),
            models.Index("created_at", "id", name="job_created"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} #{self.pk} {self.state}"
