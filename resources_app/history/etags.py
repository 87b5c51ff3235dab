"""ETags: opaque to callers; to us the version they were given for, so that a conflict can show what changed since."""

import hashlib


def make_etag(ref: str, version: int, field: str = "") -> str:
    """Bound to the thing and field by a digest: an ETag of one address is never valid for another."""
    digest = hashlib.blake2b(f"{ref}\n{field}\n{version}".encode(), digest_size=6).hexdigest()
    return f"{version}-{digest}"


def version_in(etag: str, ref: str, field: str = "") -> int | None:
    """The version an ETag stands for; None when it was never given out for this address."""
    number = normalise(etag).partition("-")[0]
    if not number.isascii() or not number.isdigit() or len(number) > 10:
        return None
    version = int(number)
    return version if make_etag(ref, version, field) == normalise(etag) else None


def normalise(etag: str) -> str:
    """HTTP writes them quoted, and marks them weak when a proxy recompressed the body."""
    return etag.strip().removeprefix("W/").strip('"')
