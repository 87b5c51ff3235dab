"""Serve `/metrics` to Prometheus with an admin's token."""

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from prometheus_client import CONTENT_TYPE_LATEST
from rest_framework.decorators import api_view
from rest_framework.request import Request

from backlog_site.api.actors import actor_of
from backlog_site.serving.metrics import exposition
from resources_app.errors import PermissionDenied


@extend_schema(exclude=True)
@api_view(["GET"])
def metrics(request: Request) -> HttpResponse:
    if not actor_of(request).is_admin:
        raise PermissionDenied(
            "Metrics are for admins.", suggestion="Scrape with a token of scope admin."
        )
    return HttpResponse(exposition(), content_type=CONTENT_TYPE_LATEST)
