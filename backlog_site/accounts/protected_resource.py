"""RFC 9728: what is protected here, and who issues tokens for it."""

from django.conf import settings
from django.http import HttpRequest
from oauth2_provider.views import OAuthProtectedResourceMetadataView

from resources_app.identity.credentials import is_for_this_server


class ProtectedResourceView(OAuthProtectedResourceMetadataView):  # type: ignore[misc]  # the package has no types
    def get_resource(self, request: HttpRequest) -> str:
        """Clients insist on the address they were given: localhost and 127.0.0.1 are two to them."""
        asked = request.build_absolute_uri("/mcp")
        return asked if is_for_this_server(asked) else str(settings.OAUTH_RESOURCES[0])
