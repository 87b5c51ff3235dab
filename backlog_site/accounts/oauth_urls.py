"""Route the supported part of OAuth: code with PKCE, refresh, revocation and registration.

Nothing else of the package is reachable.
"""

from django.urls import path

from backlog_site.accounts.consent import ConsentView
from backlog_site.accounts.endpoints import RevocationView, TokenView
from backlog_site.accounts.registration import RegistrationManagementView, RegistrationView

app_name = "oauth2_provider"

urlpatterns = [
    path("authorize/", ConsentView.as_view(), name="authorize"),
    path("token/", TokenView.as_view(), name="token"),
    path("revoke_token/", RevocationView.as_view(), name="revoke-token"),
    path("register/", RegistrationView.as_view(), name="dcr-register"),
    path(
        "register/<str:client_id>/",
        RegistrationManagementView.as_view(),
        name="dcr-register-management",
    ),
]
