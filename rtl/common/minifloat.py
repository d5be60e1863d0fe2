"""Floating-point formats of 8, 10 and 16 bits: float32 rounded to them, and back.

A code stands at the top of its 16 bits, so that FP16 and FP10 have sign and exponent in the same place, and FP10 is
FP16 with six bits of the mantissa cut off.

Source: Gist, section III-A, "DPR".
"""

from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Const, Mux, Signal
from amaranth.lib import enum

__all__ = ["MANTISSA", "WIDTH", "Format", "check_formats", "choose", "narrow", "rounding", "widen"]


class Format(enum.Enum, shape=2):
    """What a value becomes, IEEE-like: sign, exponent biased by half its range, mantissa."""

    FP16 = 0  # 1, 5 and 10 bits
    FP10 = 1  # 1, 5 and 4 bits
    FP8 = 2  # 1, 4 and 3 bits


MANTISSA = {Format.FP16: 10, Format.FP10: 4, Format.FP8: 3}
WIDTH = {Format.FP16: 16, Format.FP10: 10, Format.FP8: 8}


def check_formats(formats):
    """``formats`` without repetitions; raises ValueError unless it is a tuple of one or more of :class:`Format`."""
    if not isinstance(formats, tuple | list) or not formats or any(not isinstance(form, Format) for form in formats):
        raise ValueError(f"formats must be one or more of {', '.join(map(str, Format))}, in a tuple, not {formats!r}")
    return tuple(dict.fromkeys(formats))


def choose(form, of):
    """The value for the format that the input ``form`` names, of the dictionary ``of``; the last one if none is."""
    *others, last = of
    result = of[last]
    for other in others:
        result = Mux(form == other, of[other], result)
    return result


def rounding(word, form, formats):
    """First half of a conversion from float32: whether to round up, and what the second half needs to know besides.

    Parameters
    ----------
    word : Value, 32 bits
    form : Value of :class:`Format`
    formats : tuple of :class:`Format`
        Those that ``form`` can name; another one counts as the last of them.

    Returns a list of values for :func:`narrow`, 20 bits in all, to be registered in between.
    """
    mantissa, exponent = word[:23], word[23:31]
    digits, up, large, small = {}, {}, {}, {}
    for name in formats:
        bits, narrow_exponent = MANTISSA[name], name is Format.FP8
        # The bias of float32 minus the format's is 112 or 120: the low bits of the exponent stay as they are, the top
        # one follows them, and those in between say whether the number is in range at all.
        low = 3 if narrow_exponent else 4
        field = Cat(exponent[:low], exponent[7])
        between = exponent[low:7]
        # Ones below the last digit hand the carry of rounding up to it.
        digits[name] = Cat(Const(1, 1).replicate(10 - bits), mantissa[23 - bits:], field)
        up[name] = mantissa[22 - bits] & (mantissa[23 - bits] | mantissa[: 22 - bits].any())
        large[name] = exponent[7] & (between.any() | exponent[:low].all())
        small[name] = ~exponent[7] & ~between.all()
    nan = exponent.all() & mantissa.any()
    return [word[31], choose(form, digits), *(choose(form, flag) for flag in (up, large, small)), nan]


def narrow(m, form, formats, sign, digits, up, large, small, nan):
    """Second half of a conversion from float32: the code, a Value of 16 bits.

    Rounds to nearest, ties to even, as if the exponent had no lower bound; what is then below the smallest normal
    number becomes zero, what is beyond the largest one, or infinite, becomes that one, with the sign. A NaN becomes
    the format's quiet NaN, with the sign. Bits below the code's width mean nothing.
    """
    total = Signal(15)
    m.d.comb += total.eq(digits + up)
    codes = {}
    for name in formats:
        width = 4 if name is Format.FP8 else 5
        exponent = total[10 : 10 + width]
        body = Signal(15, name=f"body_{WIDTH[name]}")
        aligned = Cat(Const(0, 5 - width), total[: 10 + width])
        largest = Const((1 << 15) - 1 - (1 << 15 - width), 15)
        quiet = Const(((1 << width + 1) - 1) << 14 - width, 15)
        with m.If(nan):
            m.d.comb += body.eq(quiet)
        with m.Elif(large | exponent.all()):
            m.d.comb += body.eq(largest)
        with m.Elif(~small & exponent.any()):
            m.d.comb += body.eq(aligned)
        codes[name] = body
    return Cat(choose(form, codes), sign)


def widen(m, code, form, formats):
    """The float32 word that a code of 16 bits stands for, exactly: a Value of 32 bits, of which the low 13 are zero.

    Subnormal numbers, infinities and NaNs (with their mantissa in the top bits) are what they are in the format. Bits
    below the code's width have to be zero.
    """
    eight = choose(form, {name: Const(name is Format.FP8, 1) for name in formats})  # whose exponent has 4 bits
    mantissa, field, exponent, fraction = Signal(10), Signal(5), Signal(8), Signal(10)
    m.d.comb += Cat(mantissa, field).eq(Mux(eight, code[1:15], code[:15]))

    # A subnormal number is shifted up until its first one, which is dropped, is out.
    first = [mantissa[k] & ~mantissa[k + 1 :].any() for k in range(10)]
    with m.If(~field.any()):
        m.d.comb += [
            exponent.eq(reduce(or_, (Mux(one, Mux(eight, 111 + k, 103 + k), 0) for k, one in enumerate(first)))),
            fraction.eq(reduce(or_, (Mux(one, mantissa << 10 - k, 0) for k, one in enumerate(first)))),
        ]
    with m.Else():
        # Plus 112 or 120: the top bit, and above the low ones its complement.
        m.d.comb += [
            exponent.eq(Mux(eight, Cat(field[:3], (~field[3]).replicate(4), field[3]),
                            Cat(field[:4], (~field[4]).replicate(3), field[4]))),
            fraction.eq(mantissa),
        ]
        with m.If(field[:4].all() & (field[4] | eight)):
            m.d.comb += exponent.eq(255)
    return Cat(Const(0, 13), fraction, exponent, code[15])
