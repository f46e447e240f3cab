"""Memory of large tensors is used again. By default, glibc returns each to the system and asks for it anew, which takes half of the time of an export."""
import ctypes
from contextlib import contextmanager

TRIM_THRESHOLD, TOP_PAD, MMAP_THRESHOLD, MMAP_MAX = -1, -2, -3, -4  # of mallopt
NEVER, LARGEST, USUAL_COUNT, USUAL_TRIM = 2 ** 31 - 1, 1 << 25, 65536, 1 << 26


@contextmanager
def kept():
    """Freed memory stays with the process until the end of the block. Without glibc, nothing changes."""
    try:
        library = ctypes.CDLL(None)
        options, trim = library.mallopt, library.malloc_trim
    except (AttributeError, OSError, TypeError):
        yield
        return
    options(MMAP_MAX, 0), options(TRIM_THRESHOLD, NEVER), options(TOP_PAD, 1 << 28)
    try:
        yield
    finally:
        options(MMAP_MAX, USUAL_COUNT), options(MMAP_THRESHOLD, LARGEST), options(TRIM_THRESHOLD, USUAL_TRIM), options(TOP_PAD, 0)
        trim(ctypes.c_size_t(0))
