"""Encrypt secrets at rest with AES-GCM under a per-tenant key, which is sealed under a key derived
from SECRET_KEY.

A secret that cannot be decrypted is an error; it is never treated as plain text.
"""

import hashlib
import json
import os
from typing import Any, TypeAlias

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

# PostgreSQL returns a view of the column.
Stored: TypeAlias = "bytes | memoryview[int]"

KEY_BYTES, NONCE_BYTES, NAME_BYTES = 32, 12, 8


class CannotOpen(Exception):
    """Report a secret that is damaged or sealed under an unavailable key."""


def new_key(client_id: str) -> bytes:
    return wrap(client_id, os.urandom(KEY_BYTES))


def wrap(client_id: str, key: bytes) -> bytes:
    master = _master(settings.SECRET_KEY)
    return _name(master) + _seal(master, key, f"data key of {client_id}")


def unwrap(client_id: str, wrapped: Stored) -> bytes:
    name, sealed = bytes(wrapped[:NAME_BYTES]), bytes(wrapped[NAME_BYTES:])
    for secret in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS):
        master = _master(secret)
        if _name(master) == name:
            return _open(master, sealed, f"data key of {client_id}")
    raise CannotOpen("No SECRET_KEY or SECRET_KEY_FALLBACKS opens the key of this connection.")


def seal(data_key: bytes, client_id: str, purpose: str, secret: dict[str, Any]) -> bytes:
    """Seal a secret bound to tenant and purpose: a copy in another row or column cannot be
    opened.
    """
    return _seal(data_key, json.dumps(secret).encode(), f"{purpose} of {client_id}")


def unseal(data_key: bytes, client_id: str, purpose: str, sealed: Stored) -> dict[str, Any]:
    opened: dict[str, Any] = json.loads(_open(data_key, bytes(sealed), f"{purpose} of {client_id}"))
    return opened


def _seal(key: bytes, plain: bytes, bound_to: str) -> bytes:
    nonce = os.urandom(NONCE_BYTES)
    return nonce + AESGCM(key).encrypt(nonce, plain, bound_to.encode())


def _open(key: bytes, sealed: bytes, bound_to: str) -> bytes:
    try:
        return AESGCM(key).decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], bound_to.encode())
    except (InvalidTag, ValueError):
        raise CannotOpen("A stored secret cannot be opened; enter it again.") from None


def _master(secret: str) -> bytes:
    return HKDF(hashes.SHA256(), KEY_BYTES, salt=None, info=b"backlog intelligencebank").derive(
        secret.encode()
    )


def _name(key: bytes) -> bytes:
    return hashlib.sha256(b"name of " + key).digest()[:NAME_BYTES]
