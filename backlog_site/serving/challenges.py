"""What a 401 tells a client: where it can learn how to get a token (RFC 9728), and what to ask for."""

from urllib.parse import urlsplit

from django.conf import settings

METADATA_PATH = "/.well-known/oauth-protected-resource"
USUAL_SCOPES = ("read", "write")


def bearer_challenge(host: str, error: str | None = None) -> str:
    """The value of WWW-Authenticate. The address is absolute: some clients silently reject a relative one."""
    parts = [f'error="{error}"'] if error else []
    parts += [f'resource_metadata="{_origin(host)}{METADATA_PATH}/mcp"', f'scope="{" ".join(USUAL_SCOPES)}"']
    return f"Bearer {', '.join(parts)}"


def _origin(host: str) -> str:
    """As the client called us, if that is a name of ours: it compares what it reads there with what it was given."""
    asked = f"{urlsplit(settings.PUBLIC_URL).scheme}://{host}"
    return asked if asked in settings.OAUTH_RESOURCES else str(settings.PUBLIC_URL)
