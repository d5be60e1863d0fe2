"""Formats of a value in memory: words of 16 bits widened to float32, and float32 rounded to them, one value at a time.
Codes of 8 bits are no numbers, and stay what they are.

Source: IEEE 754-2019, sections 3.4 and 5.4.2 (float16); bfloat16 is the upper half of a float32.
"""

from amaranth.hdl import Cat, Const, Mux
from amaranth.lib import enum

from actcodec.rtl.common.onehot_shift import choose
from actcodec.rtl.common.wires import wire

__all__ = ["Format", "check_formats", "codes_of", "halves_of", "round_up", "rounding", "widen"]


class Format(enum.Enum, shape=2):
    """What a value is in memory, by its code in the descriptor."""

    FLOAT32 = 0
    BFLOAT16 = 1
    FLOAT16 = 2
    INT8 = 3


WIDE, *NARROW = (form.name.lower() for form in Format)
CODES = Format.INT8.name.lower()


def check_formats(formats):
    """The formats that have these names, without repetitions; raises ValueError unless ``formats`` is a tuple of one or
    more names of formats of 16 bits or 8."""
    if not isinstance(formats, tuple | list) or not formats or any(name not in NARROW for name in formats):
        raise ValueError(f"formats must be one or more of {', '.join(NARROW)}, in a tuple, not {formats!r}")
    return tuple(Format[name.upper()] for name in dict.fromkeys(formats))


def halves_of(formats):
    """The names of those of 16 bits among ``formats``, without repetitions; raises ValueError unless these are a tuple
    of "float32" and any others."""
    if not isinstance(formats, tuple | list) or WIDE not in formats or any(
            name not in (WIDE, *NARROW) for name in formats):
        raise ValueError(f"formats must be {WIDE} and any of {', '.join(NARROW)}, in a tuple, not {formats!r}")
    return tuple(name for name in dict.fromkeys(formats) if name not in (WIDE, CODES))


def codes_of(formats):
    """That of 8 bits, a tuple of its name, if it is among ``formats``; raises ValueError as :func:`halves_of`."""
    halves_of(formats)
    return (CODES,) if CODES in formats else ()


def widen(m, word, form, chosen):
    """The float32, exactly, that a word of 16 bits in the format ``form`` is, without its sign: pairs of a condition,
    which holds only if ``chosen`` does, and of bits, up to 31. The or of those whose conditions hold is the result.

    Subnormal numbers become normal; payloads of NaNs keep their place at the top.
    """
    if form is Format.BFLOAT16:
        return [(chosen, Cat(Const(0, 16), word[:15]))]
    mantissa, exponent = word[:10], word[10:15]
    # The significand is shifted up until its first one is out: by a place, or by 2 to 10 if the number is subnormal.
    normal = wire(m, exponent.any())
    bits = start = Cat(mantissa, normal)
    eight = wire(m, ~start[3:].any())
    four = wire(m, ~start[7:].any() & ~eight)
    two = wire(m, ~(start[9:].any() | (four & start[5:7].any()) | (eight & start[1:3].any())))
    for step, moves in ((8, eight), (4, four), (2, two)):
        moved = Cat(Const(0, step), bits)[:11]
        top = bits[-step:] | (moved[-step:] & moves.replicate(step))  # where nothing is, if it moves
        bits = wire(m, Cat(Mux(moves, moved, bits)[:-step], top))
    one = wire(m, ~bits[10])
    # The bias of float32 is larger by 112: the top bit of the exponent moves up, and its complement is in between. Of a
    # subnormal number it is 113 less the places.
    between = wire(m, ~exponent[4] | exponent.all())
    less = Cat(~one, two, four ^ two, eight ^ (four | two), mantissa[9], Const(3, 2))
    return [(wire(m, chosen & ~one), Cat(Const(0, 13), bits[:10])),
            (wire(m, chosen & one), Cat(Const(0, 14), bits[:9])),
            (wire(m, chosen & normal), Cat(Const(0, 23), exponent[:4], between.replicate(3), exponent[4])),
            (wire(m, chosen & ~normal & mantissa.any()), Cat(Const(0, 23), less))]


def rounding(m, word, selects, others):
    """First half of rounding a float32 word: 16 bits, and whether one is to be added to them, which is all that
    :func:`round_up` does. To nearest, ties to even.

    ``selects`` is {:class:`Format` of 16 bits: whether it is this one}; ``others`` are pairs of a condition and of 16
    bits to which nothing is added. At most one of all these holds.

    What rounds to more than the largest number becomes infinity, subnormal numbers are made, and a NaN keeps its sign
    and upper bits and is quiet.
    """
    mantissa, exponent, sign = word[:23], word[23:31], word[31]
    special = wire(m, exponent.all())
    below = wire(m, mantissa[:12].any())
    behind = wire(m, below | mantissa[12:15].any())
    nan = wire(m, special & (behind | mantissa[15:22].any()))  # at least, if its next bit is not set anyway
    # Of each: whether a bit below the guard bit is set, the guard bit, and the 16 bits.
    ways = [(holds, Cat(Const(0, 2), bits)) for holds, bits in others]
    if Format.BFLOAT16 in selects:
        ways.append((selects[Format.BFLOAT16], Cat(behind, word[15:22], word[22] | nan, word[23:])))
    if Format.FLOAT16 in selects:
        half, low, middle, top = selects[Format.FLOAT16], exponent[:4], exponent[4:7], exponent[7]
        # The bias of float32 is larger by 112: the low bits of the exponent stay, and the top one follows them.
        large = wire(m, top & (middle.any() | low.all()) & ~special)
        small = wire(m, ~top & ~(middle.all() & low.any()))  # below the smallest normal number
        # There the significand is shifted by 113 less the exponent, 1 to 13 places. Beyond that nothing remains.
        deep = wire(m, half & ~top & middle[1:].all() & Mux(middle[0], ~low.any(), low[2:].any()))
        one, two, four, eight = ~low[0], low[1], low[1] ^ low[2], low[3] ^ (low[1] | low[2])
        bits = Cat(mantissa[12:], 1)
        tail, beyond = below, below | bits[:8].any()  # bits below the guard bit; and when shifted by 8 more
        for step, moves in ((4, wire(m, four & small)), (2, wire(m, two & small))):
            tail, beyond = tail | (moves & bits[:step].any()), beyond | (moves & bits[8 : 8 + step].any())
            bits = wire(m, Mux(moves, bits >> step, bits))
        normal = wire(m, half & ~small & ~large)
        ways += [(wire(m, normal | (deep & ~eight & ~one)), Cat(tail, bits[:11])),
                 (wire(m, deep & ~eight & one), Cat(tail | bits[0], bits[1:])),
                 (wire(m, deep & eight & ~one), Cat(beyond, bits[8:])),
                 (wire(m, deep & eight & one), Cat(beyond | bits[8], bits[9:])),
                 (normal, Cat(Const(0, 12), low, top)), (wire(m, half & large), Const(31 << 12)),
                 (wire(m, half & nan), Const(1 << 11)), (half, Cat(Const(0, 17), sign))]
    bits = wire(m, choose(ways))
    return bits[2:], bits[1] & ~special & (bits[0] | bits[2])


def round_up(digits, up):
    """Second half: the word of 16 bits. A carry goes on into the exponent, and from the largest number to infinity."""
    return Cat((digits[:15] + up)[:15], digits[15])
