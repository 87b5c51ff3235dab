"""Read environment variables.

A value that cannot be parsed stops the process and says what was expected.
"""

import hashlib
import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

# sockaddr_un holds 108 bytes on Linux and 104 on macOS, the closing NUL included.
MAX_SOCKET_PATH = 100
MIN_KEY_LENGTH = 50
MIN_KEY_VARIETY = 10


class Environment:
    def __init__(self, variables: Mapping[str, str] | None = None) -> None:
        self._variables = os.environ if variables is None else variables

    def text(self, name: str, default: str = "") -> str:
        """Return the variable, or the content of the file that `NAME_FILE` names: secrets are often
        passed as files.
        """
        value, file = (self._variables.get(key, "").strip() for key in (name, f"{name}_FILE"))
        if value and file:
            raise ImproperlyConfigured(
                f"{name} and {name}_FILE are both set: one of them is enough."
            )
        return (_content_of(name, file) if file else value) or default

    def flag(self, name: str, default: bool) -> bool:
        value = self.text(name).lower()
        if not value:
            return default
        if value in {"1", "true", "yes", "on"}:
            return True
        if value in {"0", "false", "no", "off"}:
            return False
        raise _refusal(name, value, "1, true, yes, on or 0, false, no, off")

    def number(self, name: str, default: int, minimum: int = 0) -> int:
        value = self.text(name)
        if not value:
            return default
        if not value.isascii() or not value.isdigit() or int(value) < minimum:
            raise _refusal(name, value, f"a whole number of at least {minimum}")
        return int(value)

    def words(self, name: str, default: str = "") -> list[str]:
        return [word.strip() for word in self.text(name, default).split(",") if word.strip()]

    def url(self, name: str, default: str, schemes: tuple[str, ...]) -> str:
        value = self.text(name, default)
        if value.partition("://")[0] not in schemes:
            raise _refusal(
                name,
                _without_password(value),
                "a URL that starts with " + " or ".join(f"{scheme}://" for scheme in schemes),
            )
        return value.rstrip("/")

    def folder(self, name: str, default: str) -> Path:
        return Path(self.text(name, default)).expanduser().absolute()

    def named_folders(self, name: str) -> dict[str, Path]:
        """Parse `docs=/srv/docs,artifacts/logs=/var/log/agents`.

        The name is the path where the folder appears.
        """
        folders: dict[str, Path] = {}
        for entry in self.words(name):
            label, separator, path = entry.partition("=")
            label = label.strip().strip("/")
            if not separator or not _is_mount_name(label) or not Path(path).is_absolute():
                raise _refusal(
                    name,
                    entry,
                    "name=/absolute/path, where the name has no empty, '.' or '..' part",
                )
            if label in folders:
                raise _refusal(name, entry, f"each name once ({label!r} is there twice)")
            folders[label] = Path(path)
        return folders


def refuse_weak_key(key: str) -> None:
    """Reject a guessable key. An attacker who knows it can sign in as any user."""
    if not key:
        raise ImproperlyConfigured("SECRET_KEY must be set when BACKLOG_PUBLIC_URL is https.")
    if len(key) < MIN_KEY_LENGTH or len(set(key)) < MIN_KEY_VARIETY or "insecure" in key.lower():
        raise ImproperlyConfigured(
            f"SECRET_KEY is too easy to guess: use at least {MIN_KEY_LENGTH} random characters, for"
            " example from python3 -c 'import secrets; print(secrets.token_urlsafe(48))'."
        )


def library_note(data_dir: Path) -> Path:
    """Return the file in which a running embedded site records its demo IntelligenceBank's
    addresses, for manual commands.
    """
    return data_dir / "demo-library"


def noted_library(data_dir: Path) -> list[str]:
    note = library_note(data_dir)
    return note.read_text().split() if note.exists() else []


def socket_path(data_dir: Path) -> Path:
    """Return the embedded Valkey's socket: inside the data folder unless that path is too long for
    a Unix socket.
    """
    path = data_dir / "valkey.sock"
    if len(os.fsencode(path)) <= MAX_SOCKET_PATH:
        return path
    digest = hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"backlog-{os.getuid()}-{digest}" / "valkey.sock"


def _without_password(url: str) -> str:
    return re.sub(r"//[^@/]*@", "//…@", url)


def _content_of(name: str, file: str) -> str:
    try:
        return Path(file).read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ImproperlyConfigured(
            f"{name}_FILE={file!r} cannot be read: {type(error).__name__}."
        ) from None


def _is_mount_name(label: str) -> bool:
    return bool(label) and all(part not in {"", ".", ".."} for part in label.split("/"))


def _refusal(name: str, value: str, expected: str) -> ImproperlyConfigured:
    return ImproperlyConfigured(f"{name}={value!r} cannot be used: expected {expected}.")
