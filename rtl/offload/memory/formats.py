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


def widen(m, word, selects):
    """The float32, exactly, that a word of 16 bits is, without its sign: pairs of a condition and of bits, up to 31.
    The or of those whose conditions hold is the result. ``selects`` is {:class:`Format` of 16 bits: whether it is this
    one}; without one of them no condition holds.

    Subnormal numbers become normal; payloads of NaNs keep their place at the top.
    """
    bfloat, half = (selects.get(form, Const(0, 1)) for form in (Format.BFLOAT16, Format.FLOAT16))
    mantissa, exponent = word[:10], word[10:15]
    # The significand of a float16 is shifted up until its first one is at the top: by up to 10 if it is subnormal.
    normal = wire(m, exponent.any())
    bits = start = Cat(mantissa, normal)
    eight = wire(m, half & ~start[3:].any())
    four = wire(m, half & ~start[7:].any() & ~eight)
    for step, moves in ((8, eight), (4, four)):
        moved = Cat(Const(0, step), bits)[:11]
        top = bits[-step:] | (moved[-step:] & moves.replicate(step))  # where nothing is, if it moves
        bits = wire(m, Cat(Mux(moves, moved, bits)[:-step], top))
    two = wire(m, ~bits[9:].any())  # or three
    # By three is where a bfloat16's mantissa is.
    places = (half & bits[10], half & ~bits[10] & bits[9], half & two & bits[8], bfloat | (half & two & ~bits[8]))
    # The bias of float32 is larger by 112: the top bit of the exponent moves up, and its complement is in between. Of a
    # subnormal number it is 113 less the places.
    some = bits[7:].any()  # that is, no zero
    between = wire(m, some & (~exponent[4] | exponent.all()))
    less = Cat(bits[10] | (two & bits[8]), two, four ^ two, eight ^ (four | two))
    return [*((wire(m, holds), Cat(Const(0, 13 + k), bits[: 10 - k])) for k, holds in enumerate(places)),
            (bfloat, Cat(Const(0, 23), word[7:15])),
            (half, Cat(Const(0, 23), exponent[:4], between & (normal | mantissa[9]), between, between, exponent[4])),
            (wire(m, half & ~normal & some), Cat(Const(0, 23), less))]


def rounding(m, word, selects, others):
    """First half of rounding a float32 word, to nearest, ties to even: 16 bits, the guard bit and the sticky bit, for
    :func:`round_up`.

    ``selects`` is {:class:`Format` of 16 bits: whether it is this one}; ``others`` are pairs of a condition and of 16
    bits to which nothing is added. At most one of all these holds.

    What rounds to more than the largest number becomes infinity, subnormal numbers are made, and a NaN keeps its sign
    and upper bits and is quiet.
    """
    bfloat, half = (selects.get(form, Const(0, 1)) for form in (Format.BFLOAT16, Format.FLOAT16))
    mantissa, exponent, sign = word[:23], word[23:31], word[31]
    low, middle, top = exponent[:4], exponent[4:7], exponent[7]
    special = wire(m, exponent.all())
    below = wire(m, mantissa[:12].any())
    nan = wire(m, special & (below | mantissa[12:22].any()))  # at least, if its next bit is not set anyway
    # The bias of float32 is larger by 112 than float16's: the low bits of the exponent stay, and the top one follows.
    large = wire(m, half & top & (middle.any() | low.all()) & ~special)
    normal = wire(m, half & Mux(top, ~(middle.any() | low.all()) | special, middle.all() & low.any()))
    # Below the smallest normal number the significand is shifted by 113 less the exponent, 1 to 11 places. Beyond that
    # nothing remains.
    deep = wire(m, half & ~top & middle[1:].all() & Mux(middle[0], ~low.any(), low[3] | low[1:3].all()))
    four = wire(m, deep & low[3] & (low[1] ^ low[2]))
    eight = wire(m, deep & (low[3] ^ low[2]) & ~(low[1] ^ low[2]))
    bits = Cat(mantissa[12:], deep)
    tail = wire(m, below | ((four | eight) & bits[:4].any()) | (eight & bits[4:8].any()))
    bits = wire(m, choose([(~(four | eight), bits), (four, bits >> 4), (eight, bits >> 8)]))
    # By three is where a bfloat16's mantissa is.
    places = (normal | (deep & low[0] & ~low[1]), deep & ~low[0] & ~low[1], deep & low[0] & low[1],
              bfloat | (deep & ~low[0] & low[1]))
    # Of each: the last shift's sticky bit, the guard bit, and the 16 bits.
    bits = wire(m, choose([
        *((holds, Cat(Const(0, 2), bits)) for holds, bits in others),
        *((wire(m, holds), Cat(bits[:k].any(), bits[k:])) for k, holds in enumerate(places)),
        (normal, Cat(Const(0, 12), low, top)), (large, Const(31 << 12)), (wire(m, half & nan), Const(1 << 11)),
        (bfloat, Cat(Const(0, 8), nan, exponent)), (wire(m, bfloat | half), Cat(Const(0, 17), sign))]))
    return bits[2:], bits[1] & ~special, tail | bits[0]


def round_up(digits, guard, tail):
    """Second half: the word of 16 bits. A carry goes on into the exponent, and from the largest number to infinity."""
    return Cat((digits[:15] + (guard & (tail | digits[0])))[:15], digits[15])
