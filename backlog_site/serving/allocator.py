"""Return memory to the system after large texts. Without it a process stayed at 600 MB.

glibc keeps a heap for every few threads, and once the first large text is freed it keeps later
texts of that size in those heaps. Python keeps a request, its view and its response until the
garbage collector finds their cycles, and with the half million objects of a loaded site a full
collection is rare.
"""

import ctypes
import ctypes.util
import gc

# From malloc.h.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
# Texts of this size get separate pages, which are returned when freed.
_LARGE_BYTES = 256 * 1024
_HEAPS = 2
# A request or response of this size is worth a garbage collection, which takes a few milliseconds.
LARGE_TEXT_BYTES = 1_000_000


def give_memory_back() -> None:
    """Configure malloc before the first thread starts.

    Does nothing where the C library is not glibc.
    """
    name = ctypes.util.find_library("c")
    mallopt = getattr(ctypes.CDLL(name), "mallopt", None) if name else None
    if mallopt:
        mallopt(_M_ARENA_MAX, _HEAPS)
        mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
        mallopt(_M_TRIM_THRESHOLD, _LARGE_BYTES)


def exempt_what_is_loaded() -> None:
    """Exempt loaded modules and classes from garbage collection.

    Call this once the site is loaded.
    """
    gc.collect()
    gc.freeze()


def collect_after(size: int) -> None:
    """Collect the cycles of a request if it carried many bytes."""
    if size >= LARGE_TEXT_BYTES:
        gc.collect()
