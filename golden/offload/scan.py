"""The scan of a tensor before it is compressed: a scale for each channel, and bounds and counts of its values.

The scale k of a channel puts its largest magnitude m on a peak: 144, of which 127 is what fits (JPEG-ACT, section
III-B, equation 4). It is rounded twice, to float32 and then to bfloat16. The same table serves both directions, as r is
made from k.

Source: this project; IEEE 754-2019, sections 3.4 and 4.3.1, for the formats and for rounding to nearest even.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

PEAK = np.float32(144)
MOST = np.float32(2.0**126)  # of k; its reciprocal is still a normal number

LINE, VALUE = 8, 4  # values of a sector, bytes of a value

_MAGNITUDE = np.uint32(0x7FFFFFFF)  # all bits but the sign
_NORMAL, _INFINITE = np.uint32(0x00800000), np.uint32(0x7F800000)  # bits of the smallest normal number, and of infinity


class Statistics(NamedTuple):
    """Of the values of a tensor: the least and the greatest finite number, how many are 0 and how many are NaN.

    -0.0 is less than +0.0, so that the bits are unique. Without a finite number, the minimum is infinite and the
    maximum is minus infinity."""

    minimum: np.float32
    maximum: np.float32
    zeros: int
    nans: int


def statistics(x: NDArray[np.float32]) -> Statistics:
    """Those of `x` (float32, any shape; it may be empty). Subnormal numbers are numbers like all others."""
    finite = x[np.isfinite(x)]
    minimum, maximum = np.float32(np.inf), np.float32(-np.inf)
    if finite.size:
        minimum, maximum = finite.min(), finite.max()
        signs = np.signbit(finite[finite == 0])
        if minimum == 0:  # which of the two zeros, comparisons do not tell
            minimum = np.float32(-0.0 if signs.any() else 0.0)
        if maximum == 0:
            maximum = np.float32(-0.0 if signs.all() else 0.0)
    return Statistics(minimum, maximum, int(np.count_nonzero(x == 0)), int(np.count_nonzero(np.isnan(x))))


def largest(x: NDArray[np.float32]) -> np.float32:
    """The largest finite magnitude of `x`, 0 if that is subnormal or if there is none."""
    bits = x.reshape(-1).view(np.uint32) & _MAGNITUDE
    bits = bits[(bits >= _NORMAL) & (bits < _INFINITE)]
    return bits.max(initial=np.uint32(0)).view(np.float32)


def scale(largest: NDArray[np.float32], peak: np.float32 = PEAK) -> NDArray[np.float32]:
    """k = bfloat16(float32(144 / m)), at most 2^126, of the largest magnitudes m of channels; 0 where m is 0. A host
    may have another ``peak`` than the hardware's 144."""
    # the limit on k as a limit on the divisor: the quotient is 2^126 exactly, and float32 division rounds once
    bits = (peak / np.maximum(largest, peak / MOST)).view(np.uint32)
    k = (bits + 0x7FFF + (bits >> 16 & 1) & 0xFFFF0000).astype(np.uint32).view(np.float32)
    return np.where(largest == 0, np.float32(0), k)


def reciprocal(words: NDArray[np.uint32]) -> NDArray[np.float32]:
    """r = float32(1 / k) of any words of a table of k, as the hardware reads them: the upper half of a word is a
    bfloat16 number whose sign does not count, subnormal numbers are 0, and Inf and NaN are numbers like all others. r
    is 0 where k is 0, and where it would be subnormal."""
    exponent, fraction = (words >> 23 & 0xFF).astype(np.int64), (words >> 16 & 0x7F).astype(np.int64)
    k = np.where(exponent > 0, np.ldexp(128.0 + fraction, exponent - 134), np.inf)
    r = 1 / k  # twice the bits of float32, so that rounding twice is the same as once
    return np.where(r < 2.0**-126, 0, r).astype(np.float32)


class Places(NamedTuple):
    """Where the sectors of a scan lie, in its order: byte addresses, how many values each has, and whether it is the
    last one of a channel."""

    address: np.ndarray
    words: np.ndarray
    ends: np.ndarray


def places(base: int, rows: int, width: int, stride: int, height: int, channels: int, lane: int = 0,
           lanes: int = 1) -> Places:
    """Those of one of several lanes, which has every `lanes`-th channel from `lane` on: channel by channel, of each all
    rows in the order of memory. `rows` of `width` values are `stride` bytes apart, and row r is of channel
    r // height % channels."""
    channel = np.arange(rows) // height % channels
    row = np.argsort(channel, kind="stable")
    row = row[channel[row] % lanes == lane]
    first = np.arange(0, width, LINE)
    address = base + (row * stride)[:, None] + VALUE * first
    words = np.broadcast_to(np.minimum(width - first, LINE), address.shape)
    ends = np.zeros(address.shape, bool)
    if row.size:
        ends[:, -1] = np.append(channel[row[1:]] != channel[row[:-1]], True)
    return Places(address.reshape(-1), words.reshape(-1), ends.reshape(-1))
