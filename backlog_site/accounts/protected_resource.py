"""Publish the protected resource metadata (RFC 9728): the resource and the issuer of its tokens."""

from django.conf import settings
from django.http import HttpRequest
from oauth2_provider.views import OAuthProtectedResourceMetadataView

from resources_app.identity.credentials import is_for_this_server


class ProtectedResourceView(OAuthProtectedResourceMetadataView):  # type: ignore[misc]  # the package has no types
    def get_resource(self, request: HttpRequest) -> str:
        """Return the address the client used.

        Clients insist on it and treat localhost and 127.0.0.1 as different resources.
        """
        asked = request.build_absolute_uri("/mcp")
        return asked if is_for_this_server(asked) else str(settings.OAUTH_RESOURCES[0])
