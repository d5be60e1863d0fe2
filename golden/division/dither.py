"""Stochastic rounding (DIVISION, section 4.1, footnotes 8 and 9; Gupta et al., ICML 2015): the numbers it adds.

Each row of a block gets two random numbers of 5 bits, one for the even lanes and one for the odd ones; four lanes that
share one have thresholds in the four quarters of a step, so that their errors cancel in part when they are averaged.
A hash of the seed and of a group's number starts xorshift32 (Marsaglia, 2003), which steps once a row. So any group of
four blocks can be started by itself, and the result does not depend on how many units share the work.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from actcodec.golden.division.view import View
from actcodec.golden.offload.blocks import GROUP, LANES

BITS = (1, 2, 3, 4)
ROUNDINGS = ("stochastic", "nearest")

LANE = np.array([0, 0, 16, 16, 24, 24, 8, 8], np.uint8)

_LOW = np.uint32(0xFFFF)


def _integer(value, low, high):
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and low <= value <= high


def check(bits: int, seed: int = 0, rounding: str = "stochastic") -> None:
    """Raises ValueError unless `bits`, of a code, is an int, 1 to 4, `seed` one of 32 bits, `rounding` a legal one."""
    if not _integer(bits, BITS[0], BITS[-1]):
        raise ValueError(f"bits is {bits!r}, legal are the integers {BITS[0]} to {BITS[-1]}")
    if not _integer(seed, 0, (1 << 32) - 1):
        raise ValueError(f"seed is {seed!r}, legal are the integers 0 to 2^32 - 1")
    if rounding not in ROUNDINGS:
        raise ValueError(f"rounding is {rounding!r}, legal are {', '.join(ROUNDINGS)}")


def _rotated(x, left):
    """16-bit numbers rotated to the left."""
    return (x << np.uint32(left) | x >> np.uint32(16 - left)) & _LOW


def mix(seed: ArrayLike, group: ArrayLike) -> NDArray[np.uint32]:
    """Hash of seeds and numbers of groups, uint32, broadcast: eight rounds of Speck's kind on two halves of 16 bits."""
    seed, group = np.asarray(seed, np.uint32), np.asarray(group, np.uint32)
    keys = seed & _LOW, seed >> np.uint32(16)
    a, b = group >> np.uint32(16), group & _LOW
    for i in range(8):
        a = (_rotated(a, 9) + b & _LOW) ^ keys[i % 2]
        b = _rotated(b, 2) ^ a
    return a << np.uint32(16) | b


def phases(groups: NDArray[np.int64], seed: int) -> NDArray[np.uint8]:
    """Random numbers of the even and of the odd lanes, uint8 [groups, 32, 2], 0 to 31, for each row of each group.

    `groups` has the groups' numbers over the whole tensor; void rows have random numbers as well.
    """
    s = mix(seed, groups) | np.uint32(1)
    rows = np.empty((GROUP * LANES, s.size), np.uint32)
    for row in rows:
        s ^= s << np.uint32(13)
        s ^= s >> np.uint32(17)
        s ^= s << np.uint32(5)
        row[:] = s
    return np.stack([rows.T & 31, rows.T >> np.uint32(5) & 31], axis=2).astype(np.uint8)


def thresholds(phases: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    """What is added in each lane, uint8 [..., 8], from its row's `phases`, [..., 2]: 0 to 2^(6 - bits) - 1."""
    return (np.tile(phases, LANES // 2) ^ LANE) >> np.uint8(bits - 1)


def noise(view: View, bits: int, seed: int = 0, rounding: str = "stochastic", group: int = 0) -> NDArray[np.uint8]:
    """R, what is added to each value before it is cut to a code of `bits`: uint8 [blocks, 8, 8].

    `group` is the number of the first group of blocks. Rounding to nearest adds half a step everywhere: half up.
    Raises as `check`.
    """
    check(bits, seed, rounding)
    if rounding == "nearest":
        return np.full((view.blocks, LANES, LANES), 1 << 5 - bits, np.uint8)
    random = phases(group + np.arange(-(-view.blocks // GROUP)), seed)
    return thresholds(random.reshape(-1, LANES, 2)[: view.blocks], bits)
