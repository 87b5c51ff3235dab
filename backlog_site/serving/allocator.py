"""Lets a process give memory back to the system after large texts. Without it one stayed at 600 MB.

glibc keeps a heap for every few threads, and after the first large text was freed it keeps all later texts of that size in
those heaps. Python keeps a request, its view and its answer until the garbage collector finds their cycles, and with the half
million objects of a loaded site it looks through everything rarely.
"""

import ctypes
import ctypes.util
import gc

# From malloc.h.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
# Texts of this size get pages of their own, which go back when they are freed.
_LARGE_BYTES = 256 * 1024
_HEAPS = 2
# A request or an answer of this size is worth a search for garbage, which takes a few milliseconds.
LARGE_TEXT_BYTES = 1_000_000


def give_memory_back() -> None:
    """Call this before the first thread starts. Does nothing where the C library is not glibc."""
    name = ctypes.util.find_library("c")
    mallopt = getattr(ctypes.CDLL(name), "mallopt", None) if name else None
    if mallopt:
        mallopt(_M_ARENA_MAX, _HEAPS)
        mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
        mallopt(_M_TRIM_THRESHOLD, _LARGE_BYTES)


def exempt_what_is_loaded() -> None:
    """Call this when the site is loaded: the collector need not look through modules and classes again."""
    gc.collect()
    gc.freeze()


def collect_after(size: int) -> None:
    """Collect the cycles of a request that carried so many bytes, if they are many."""
    if size >= LARGE_TEXT_BYTES:
        gc.collect()
