"""Store API tokens, as hashes only, and the service accounts of unattended agents."""

from django.conf import settings
from django.db import models


class ApiToken(models.Model):
    class Scope(models.TextChoices):
        READ = "read"
        WRITE = "write"
        ADMIN = "admin"

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=100)
    scope = models.CharField(max_length=10, choices=Scope.choices)
    digest = models.CharField(max_length=64, unique=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        verbose_name = "API token"
        constraints = [
            models.UniqueConstraint(
                "user",
                "name",
                condition=models.Q(revoked_at__isnull=True),
                name="token_name_once_per_user",
            ),
            models.CheckConstraint(
                name="token_scope_known", condition=models.Q(scope__in=["read", "write", "admin"])
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.user}, {self.scope})"


class ServiceAccount(models.Model):
    """Mark a user as an unattended agent.

    A service account has tokens and a role but no password, and its owner is responsible for it.
    """

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, models.CASCADE, primary_key=True, related_name="service_account"
    )
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    purpose = models.CharField(max_length=200)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return str(self.user)
