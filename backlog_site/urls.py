"""Define every route of the site."""

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from oauth2_provider.views import OAuthServerMetadataView

from backlog_site.accounts.protected_resource import ProtectedResourceView
from backlog_site.api import addresses
from backlog_site.api.metrics import metrics
from backlog_site.operations import health

urlpatterns = [
    path("", include("backlog_site.viewer.urls")),
    path("", include("backlog_site.accounts.urls")),
    path("admin", RedirectView.as_view(url="/admin/")),
    path("admin/", admin.site.urls),
    path("api/v1/", include("backlog_site.api.urls")),
    path("api/schema/", SpectacularAPIView.as_view(), name="schema"),
    path("api/docs/", SpectacularSwaggerSplitView.as_view(url_name="schema"), name="docs"),
    path("o/", include("backlog_site.accounts.oauth_urls")),
    path(".well-known/oauth-protected-resource", ProtectedResourceView.as_view()),
    path(".well-known/oauth-protected-resource/mcp", ProtectedResourceView.as_view()),
    path(".well-known/oauth-authorization-server", OAuthServerMetadataView.as_view()),
    path("mcp/resource", addresses.mcp_resource),
    path("healthz", health.healthz),
    path("readyz", health.readyz),
    path("metrics", metrics),
]

handler403 = "backlog_site.viewer.failures.forbidden"
handler404 = "backlog_site.viewer.failures.not_found"
handler500 = "backlog_site.viewer.failures.server_error"
