"""Restrict outgoing hosts: https under the allow-list, never a private address.

Local fakes are listed individually.
"""

import re
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from resources_app.intelligencebank.failures import ForbiddenHost
from resources_app.safety.public_addresses import is_public

VENDOR_DOMAIN = "intelligencebank.com"
_HOST = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)+")


@dataclass(frozen=True)
class HostPolicy:
    """Decide which hosts are allowed.

    `domains` are the customer's own, matched exactly. `local_origins` such as http://127.0.0.1:9101
    are only for the fake.
    """

    domains: frozenset[str] = frozenset()
    local_origins: frozenset[str] = frozenset()

    def check(self, url: str) -> str:
        """Return the origin.

        Raises ForbiddenHost if the URL is outside the allow-list or not a URL.
        """
        try:
            parts = urlsplit(url)
            is_allowed = url.isprintable() and self._allows(parts)
        except ValueError:  # a non-numeric port, an unclosed bracket
            is_allowed = False
        if not is_allowed:
            raise ForbiddenHost("IntelligenceBank named an address outside the allow-list.")
        return _origin(parts)

    def _allows(self, parts: SplitResult) -> bool:
        if _origin(parts) in self.local_origins:
            return True
        is_plain = (
            parts.scheme == "https" and "@" not in parts.netloc and (parts.port or 443) == 443
        )
        return is_plain and self._names(parts.hostname or "")

    def allows_address(self, host: str, port: int, address: str) -> bool:
        """Check the resolved address when connecting, because a name may point anywhere."""
        if f"http://{host}:{port}" in self.local_origins:
            return True
        return is_public(address)

    def _names(self, host: str) -> bool:
        if not _HOST.fullmatch(host):
            return False
        return host == VENDOR_DOMAIN or host.endswith(f".{VENDOR_DOMAIN}") or host in self.domains


def _origin(parts: SplitResult) -> str:
    return f"{parts.scheme}://{parts.netloc}"
