"""Return memory to the system after large texts. Without it a process stayed at 600 MB.

glibc keeps a heap for every few threads, and once the first large text is freed it keeps later
texts of that size in those heaps. Python keeps a request, its view and its response until the
garbage collector finds their cycles, and with the half million objects of a loaded site a full
collection is rare.
"""

import ctypes
import ctypes.util
import gc
from typing import Any

# From malloc.h.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
# Texts of this size get separate pages, which are returned when freed.
_LARGE_BYTES = 256 * 1024
_HEAPS = 2
# A request and response of this size are worth a collection, which takes a few milliseconds.
LARGE_EXCHANGE_BYTES = 1_000_000

_c_library = ctypes.CDLL(name) if (name := ctypes.util.find_library("c")) else None


def give_memory_back() -> None:
    """Configure malloc before the first thread starts.

    Does nothing where the C library is not glibc.
    """
    if mallopt := getattr(_c_library, "mallopt", None):
        mallopt(_M_ARENA_MAX, _HEAPS)
        mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
        mallopt(_M_TRIM_THRESHOLD, _LARGE_BYTES)


def exempt_what_is_loaded() -> None:
    """Exempt loaded modules and classes from garbage collection.

    Call this once the site is loaded.
    """
    gc.collect()
    gc.freeze()


def collecting(application: Any) -> Any:
    """Wrap the ASGI root: collect the cycles of a request after it carried many bytes."""

    async def collected(scope: Any, receive: Any, send: Any) -> None:
        size = 0

        async def counted_receive() -> Any:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            return message

        async def counted_send(message: Any) -> None:
            nonlocal size
            size += len(message.get("body", b""))
            await send(message)

        try:
            await application(scope, counted_receive, counted_send)
        finally:
            if size >= LARGE_EXCHANGE_BYTES:
                _collect()

    return collected


def _collect() -> None:
    gc.collect()
    if trim := getattr(_c_library, "malloc_trim", None):
        trim(0)
