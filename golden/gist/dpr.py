"""DPR, delayed precision reduction: float32 as FP16, FP10 or FP8, packed into 32-bit words (Gist, section III-A and
Figure 6)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from actcodec.golden.common.content import octets

PART = 1 << 14  # words at a time: what is computed between stays in a cache


@dataclass(frozen=True)
class Format:
    """A small floating-point format, laid out as IEEE 754 does it: sign, biased exponent, mantissa; the exponent of all
    ones is reserved."""

    exponent: int  # bits
    mantissa: int  # bits
    per_word: int  # values in a 32-bit word

    @property
    def width(self) -> int:
        return 1 + self.exponent + self.mantissa

    @property
    def bias(self) -> int:
        return (1 << self.exponent - 1) - 1

    @property
    def largest(self) -> float:
        """The largest finite number."""
        return float(np.ldexp(2 - 2.0**-self.mantissa, self.bias))

    @property
    def smallest(self) -> float:
        """The smallest positive normal number."""
        return float(np.ldexp(1.0, 1 - self.bias))


FORMATS = {"fp16": Format(5, 10, 2), "fp10": Format(5, 4, 3), "fp8": Format(4, 3, 4)}


def named(name: str) -> Format:
    """The format of that name; ValueError if there is none."""
    if name not in FORMATS:
        raise ValueError(f"unknown DPR format {name!r}, legal are {', '.join(FORMATS)}")
    return FORMATS[name]


def quantize(x: ArrayLike, name: str) -> NDArray[np.uint16]:
    """Codes (uint16, shape of `x`) of the numbers of the format `name` next to float32 values, ties to even.

    Rounds as if the exponent had no lower bound; what is then below the smallest normal number becomes zero, and what
    is beyond the largest one, or infinite, becomes that one, both with the sign of `x`. A NaN becomes the quiet NaN
    (top mantissa bit alone) with its sign.
    """
    form = named(name)
    x = np.asarray(x, np.float32)
    nan = np.isnan(x)
    magnitude = np.where(nan, 0, np.minimum(np.abs(x), np.float32(2.0**127))).astype(np.float64)
    fraction, exponent = np.frexp(magnitude)  # 0.5 <= fraction < 1
    rounded = np.ldexp(np.rint(np.ldexp(fraction, form.mantissa + 1)), exponent - form.mantissa - 1)
    rounded = np.where(rounded < form.smallest, 0, np.minimum(rounded, form.largest))
    fraction, exponent = np.frexp(rounded)
    codes = np.ldexp(2 * fraction - 1, form.mantissa).astype(np.int64) + (exponent - 1 + form.bias << form.mantissa)
    codes = np.where(rounded == 0, 0, codes)
    codes = np.where(nan, (1 << form.exponent) - 1 << form.mantissa | 1 << form.mantissa - 1, codes)
    return (codes | np.signbit(x).astype(np.int64) << form.width - 1).astype(np.uint16)


def dequantize(codes: ArrayLike, name: str) -> NDArray[np.float32]:
    """The float32 values that codes stand for, all exactly: subnormal numbers and infinity too, and of a NaN its
    mantissa, in the top bits."""
    form = named(name)
    codes = np.asarray(codes).astype(np.int64)
    mantissa, exponent = codes & (1 << form.mantissa) - 1, codes >> form.mantissa & (1 << form.exponent) - 1
    hidden = (exponent > 0).astype(np.int64) << form.mantissa
    values = np.ldexp((hidden + mantissa).astype(np.float32), np.maximum(exponent, 1) - form.bias - form.mantissa)
    special = 255 << 23 | mantissa << 23 - form.mantissa
    bits = np.where(exponent == (1 << form.exponent) - 1, special, values.view(np.uint32))
    return (bits | (codes >> form.width - 1 & 1) << 31).astype(np.uint32).view(np.float32)


def words(codes: NDArray[np.uint16], name: str) -> NDArray[np.float32]:
    """float32 words with a code at the top of each."""
    return (codes.astype(np.uint32) << np.uint32(32 - named(name).width)).view(np.float32)


def codes(words: NDArray[np.float32], name: str) -> NDArray[np.uint16]:
    """The reverse of :func:`words`."""
    return (words.view(np.uint32) >> np.uint32(32 - named(name).width)).astype(np.uint16)


def join(codes: NDArray[np.uint16], name: str) -> NDArray[np.uint32]:
    """Codes as words of 32 bits (little endian): 2, 3 or 4 to a word, the first one in the least significant bits. The
    last word is filled with zeros."""
    form = named(name)
    codes = np.pad(codes, (0, -codes.size % form.per_word)).reshape(-1, form.per_word)
    joint = codes[:, 0].astype("<u4")
    for place in range(1, form.per_word):
        joint |= codes[:, place].astype(np.uint32) << np.uint32(place * form.width)
    return joint


def split(joint: NDArray[np.uint32], name: str) -> NDArray[np.uint16]:
    """The codes in words of :func:`join`, those that fill up the last one among them."""
    form = named(name)
    codes = np.empty((joint.size, form.per_word), np.uint16)
    for place in range(form.per_word):
        codes[:, place] = joint >> np.uint32(place * form.width) & np.uint32((1 << form.width) - 1)
    return codes.reshape(-1)


def encode(x: ArrayLike, name: str) -> NDArray[np.uint8]:
    """The values of `x` (any shape, memory order) as bytes: the words of :func:`join`."""
    form, x = named(name), np.ravel(x)
    joint = np.empty(-(-x.size // form.per_word), "<u4")
    for first in range(0, joint.size, PART):
        joint[first : first + PART] = join(quantize(x[first * form.per_word : (first + PART) * form.per_word], name),
                                           name)
    return joint.view(np.uint8)


def decode(content: ArrayLike, name: str, count: int) -> NDArray[np.float32]:
    """The first `count` values (float32) of what :func:`encode` gave, or of a longer array of words.

    Raises ValueError if `content` is not uint8 or has too few bytes for so many values, and for a negative `count`.
    """
    form = named(name)
    content = octets(content, count)
    needed = 4 * -(-count // form.per_word)
    if content.size < needed:
        raise ValueError(f"{count} values of {name} need {needed} bytes, there are {content.size}")
    joint, table = content[:needed].view("<u4"), dequantize(np.arange(1 << form.width), name)
    values = np.empty((joint.size, form.per_word), np.float32)
    for first in range(0, joint.size, PART):
        values[first : first + PART] = table[split(joint[first : first + PART], name)].reshape(-1, form.per_word)
    return values.reshape(-1)[:count]
