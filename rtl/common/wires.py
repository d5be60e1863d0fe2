"""Names for values with several readers, which would otherwise be built once for each of them. Whatever uses one proves
it."""

from amaranth.hdl import Signal, Value

__all__ = ["wire"]


def wire(m, value, name="wire"):
    """A signal of ``m`` that has a value's shape, and the value."""
    value = Value.cast(value)
    result = Signal(value.shape(), name=name)
    m.d.comb += result.eq(value)
    return result
