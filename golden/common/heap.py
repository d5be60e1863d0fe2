"""Memory of arrays that live for a moment."""

import numpy as np

LARGEST = (1 << 25) - (1 << 16)  # bytes; glibc learns from what is freed up to 32 MiB


def settle() -> None:
    """Makes the C library keep freed memory for the next array.

    glibc hands the memory of an array above 128 KiB back to the kernel when it is freed, until one that is larger has
    been: page faults then take three quarters of the time of a loop over parts of a tensor. Nothing is touched here, so
    it costs nothing. Other C libraries do not notice.
    """
    np.empty(LARGEST, np.uint8)
