"""Create and read ETags.

They are opaque to callers, but encode a version so that a conflict can show the changes since then.
"""

import hashlib


def make_etag(ref: str, version: int, field: str = "") -> str:
    """Return an ETag bound to the object and field by a digest, so that it is never valid for
    another URI.
    """
    digest = hashlib.blake2b(f"{ref}\n{field}\n{version}".encode(), digest_size=6).hexdigest()
    return f"{version}-{digest}"


def version_in(etag: str, ref: str, field: str = "") -> int | None:
    """Return the version an ETag stands for, or None if it was not issued for this URI."""
    number = normalise(etag).partition("-")[0]
    if not number.isascii() or not number.isdigit() or len(number) > 10:
        return None
    version = int(number)
    return version if make_etag(ref, version, field) == normalise(etag) else None


def normalise(etag: str) -> str:
    """Strip the quotes of HTTP and the weak marker that a proxy adds when it recompresses the
    body.
    """
    return etag.strip().removeprefix("W/").strip('"')
