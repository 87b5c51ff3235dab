"""Build the challenge of a 401: where the client learns how to get a token (RFC 9728), and which
scopes to request.
"""

from urllib.parse import urlsplit

from django.conf import settings

METADATA_PATH = "/.well-known/oauth-protected-resource"
USUAL_SCOPES = ("read", "write")


def bearer_challenge(host: str, error: str | None = None) -> str:
    """Return the WWW-Authenticate value.

    The address is absolute: some clients silently reject a relative one.
    """
    parts = [f'error="{error}"'] if error else []
    parts += [
        f'resource_metadata="{_origin(host)}{METADATA_PATH}/mcp"',
        f'scope="{" ".join(USUAL_SCOPES)}"',
    ]
    return f"Bearer {', '.join(parts)}"


def _origin(host: str) -> str:
    """Return the origin the client used, if the site has that name.

    The client compares the metadata with the address it has.
    """
    asked = f"{urlsplit(settings.PUBLIC_URL).scheme}://{host}"
    return asked if asked in settings.OAUTH_RESOURCES else str(settings.PUBLIC_URL)
