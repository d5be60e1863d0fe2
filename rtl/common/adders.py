"""Sums whose carry chain is cut, where it would be the slowest path: operands that stand still need no fast adder.

Proved in the benches of their users, which see every digit's carry: the counter, the plan of a tensor, the address
generator.
"""

from amaranth.hdl import Cat, Signal

__all__ = ["digitwise", "halves"]


def digitwise(m, a, b, digit, carry=None):
    """The sum of ``a`` and ``b``, as wide as ``a`` and a carry, in digits of ``digit`` bits.

    The carry into each digit waits in a flip-flop: digit k is right in the k-th cycle (0, 1, ...) in which the operands
    have been there, up to it, and stays so for as long as they do. ``carry`` is one into the lowest digit.
    """
    digits = []
    for low in range(0, len(a), digit):
        part, other = a[low : low + digit], b[low : low + digit]
        total = Signal(len(part) + 1, name=f"digit_{low}")
        # With a carry, one adder and not two.
        m.d.comb += total.eq(part + other if carry is None else (Cat(1, part) + Cat(carry, other))[1:])
        carry = Signal(reset_less=True, name=f"carry_{low}")
        m.d.sync += carry.eq(total[-1])
        digits.append(total)
    return Cat(*(total[:-1] for total in digits), digits[-1][-1])


def halves(m, a, b):
    """The sum of numbers that stand, as wide as ``a``, in registers: right two cycles later."""
    total = Signal(len(a))
    m.d.sync += total.eq(digitwise(m, a, b, -(-len(a) // 2)))
    return total
