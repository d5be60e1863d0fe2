"""The order of float32 numbers. Its bench is that of the statistics of a scan."""

from amaranth.hdl import Mux

from actcodec.rtl.common.wires import wire

__all__ = ["INFINITY", "MINUS_INFINITY", "below"]

INFINITY = 0xFF << 23
MINUS_INFINITY = 1 << 31 | INFINITY


def below(m, a, b):
    """Whether the number ``a`` is less than ``b``, -0.0 less than +0.0; anything if they are the same."""
    return wire(m, Mux(a[31] ^ b[31], a[31], (a[:31] < b[:31]) ^ a[31]), "below")
