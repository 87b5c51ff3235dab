"""Which hosts are spoken to: https under the allow-list, never a private address. Local fakes are named one by one."""

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from resources_app.intelligencebank.failures import ForbiddenHost

VENDOR_DOMAIN = "intelligencebank.com"
_HOST = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)+")


@dataclass(frozen=True)
class HostPolicy:
    """`domains` are a customer's own, exactly; `local_origins` such as http://127.0.0.1:9101 are for the fake alone."""

    domains: frozenset[str] = frozenset()
    local_origins: frozenset[str] = frozenset()

    def check(self, url: str) -> str:
        """The origin, when something may be sent there."""
        parts = urlsplit(url)
        origin = f"{parts.scheme}://{parts.netloc}"
        if origin in self.local_origins:
            return origin
        host = parts.hostname or ""
        if parts.scheme != "https" or "@" in parts.netloc or (parts.port or 443) != 443 or not self._names(host):
            raise ForbiddenHost("IntelligenceBank named an address outside the allow-list.")
        return origin

    def allows_address(self, host: str, port: int, address: str) -> bool:
        """Asked again when connecting: a name may point anywhere."""
        if f"http://{host}:{port}" in self.local_origins:
            return True
        return ipaddress.ip_address(address).is_global

    def _names(self, host: str) -> bool:
        if not _HOST.fullmatch(host):
            return False
        return host == VENDOR_DOMAIN or host.endswith(f".{VENDOR_DOMAIN}") or host in self.domains
