"""Formats of a value in memory: words of 16 bits widened to float32, and float32 rounded to them, one value at a time.
Codes of 8 bits are no numbers, and stay what they are.

Source: IEEE 754-2019, sections 3.4 and 5.4.2 (float16); bfloat16 is the upper half of a float32.
"""

from amaranth.hdl import Cat, Const, Mux, Signal
from amaranth.lib import enum

from actcodec.rtl.common import minifloat

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


def _choose(form, of):
    """The value for the format that ``form`` names, of the dictionary ``of``; its last one if it names none."""
    *others, last = of
    result = of[last]
    for other in others:
        result = Mux(form == other, of[other], result)
    return result


def widen(m, word, form, formats):
    """The float32 word, exactly, of a word of 16 bits: a Value of 32 bits.

    ``form`` is one of ``formats``; another one counts as the last of them. Subnormal numbers become normal; payloads of
    NaNs keep their place at the top.
    """
    ways = {}
    if Format.BFLOAT16 in formats:
        ways[Format.BFLOAT16] = Cat(Const(0, 16), word)
    if Format.FLOAT16 in formats:
        half = minifloat.Format.FP16
        ways[Format.FLOAT16] = minifloat.widen(m, word, half, (half,))
    return _choose(form, ways)


def rounding(m, word, form, formats):
    """First half of rounding a float32 word: 16 bits, and whether one is to be added to them, which is all that
    :func:`round_up` does. To nearest, ties to even; ``form`` and ``formats`` as in :func:`widen`.

    What rounds to more than the largest number becomes infinity, subnormal numbers are made, and a NaN keeps its sign
    and upper bits and is quiet.
    """
    mantissa, exponent, sign = word[:23], word[23:31], word[31]
    nan = exponent.all() & mantissa.any()
    ways, ups = {}, {}
    if Format.BFLOAT16 in formats:
        ways[Format.BFLOAT16] = Cat(word[16:22], word[22] | nan, exponent)
        ups[Format.BFLOAT16] = word[15] & (word[16] | word[:15].any()) & ~nan
    if Format.FLOAT16 in formats:
        low, middle, top = exponent[:4], exponent[4:7], exponent[7]
        # The bias of float32 is larger by 112: the low bits of the exponent stay, and the top one follows them.
        large = top & (middle.any() | low.all())
        small = ~top & ~(middle.all() & low.any())  # below the smallest normal number
        # There the significand is shifted by 113 less the exponent, 1 to 13 places; what falls out leaves a one behind.
        least = ~top & ((middle == 7) | ((middle == 6) & low[2:].any()))
        places = (1 - low)[:4]
        bits = Cat(mantissa[:12].any(), mantissa[12:], Const(1, 1))
        shifted = Signal(13)
        for k in range(4):
            step = 1 << k
            moved = Cat(bits[: step + 1].any(), bits[step + 1 :], Const(0, step))
            bits = Mux(places[k], moved, bits)
        m.d.comb += shifted.eq(bits)
        digits, up = Signal(15), Signal()
        with m.If(nan):
            m.d.comb += digits.eq(Cat(mantissa[13:22], Const(-1, 6)))
        with m.Elif(large):
            m.d.comb += digits.eq(31 << 10)
        with m.Elif(~small):
            m.d.comb += [digits.eq(Cat(mantissa[13:], low, top)),
                         up.eq(mantissa[12] & (mantissa[13] | mantissa[:12].any()))]
        with m.Elif(least):
            m.d.comb += [digits.eq(shifted[2:]), up.eq(shifted[1] & (shifted[2] | shifted[0]))]
        ways[Format.FLOAT16], ups[Format.FLOAT16] = digits, up
    return Cat(_choose(form, ways), sign), _choose(form, ups)


def round_up(digits, up):
    """Second half: the word of 16 bits. A carry goes on into the exponent, and from the largest number to infinity."""
    return Cat((digits[:15] + up)[:15], digits[15])
