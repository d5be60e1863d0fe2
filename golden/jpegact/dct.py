"""The 8x8 DCT and its inverse in fixed point (JPEG-ACT, section III-D; Loeffler, Ligtenberg, Moschytz, ICASSP 1989).

Each of the two passes is the 8-point transform in Loeffler's scaling (sqrt(8) times the orthonormal one, so that its
constant c4 is 1), with constants of 11 fraction bits. Every product sum is exact and is rounded once, half up. The
matrices below are those sums; how many multiplications they cost is the hardware's affair. BLAS does the work, in
floating point that carries every sum exactly: those of the first passes, and of the butterflies, stay under 2^24, the
limit of float32; those of the second passes under 2^53.
"""

import numpy as np
from numpy.typing import NDArray

FRACTION_BITS = 6  # of the coefficients that `forward` gives
COEFFICIENT_MIN, COEFFICIENT_MAX = -2048, 2047  # the inverse saturates to this first

_STACK = 128  # rows that are multiplied at once

_DROP = 8, 11  # bits that the first and the second pass round away

# sqrt(2) cos(j pi / 16) * 2^11; K4 is exact, and stands for the constant row 0 as well
_K = np.rint(np.sqrt(2) * np.cos(np.arange(8) * np.pi / 16) * 2**11)
_K[0] = _K[4]


def _cosine(j):
    """+-K for sqrt(2) cos(j pi / 16), any j that is not 8 modulo 16."""
    j = j % 32
    j = np.minimum(j, 32 - j)
    return np.where(j < 8, _K[np.minimum(j, 7)], -_K[np.minimum(16 - j, 7)])


_k, _n = np.mgrid[:8, :8]
_FORWARD = _cosine(_k * (2 * _n + 1))

# inverse: 8 rounded brackets (e0, e1, r0, r1, o0 to o3) of the coefficients, then a butterfly without rounding
_K1, _K2, _K3, _K4, _K5, _K6, _K7 = _K[1:]
_BRACKETS = np.zeros((8, 8))
_BRACKETS[:2, [0, 4]] = [[_K4, _K4], [_K4, -_K4]]
_BRACKETS[2:4, [2, 6]] = [[_K2, _K6], [_K6, -_K2]]
_BRACKETS[4:, 1::2] = [[_K1, _K3, _K5, _K7], [_K3, -_K7, -_K1, -_K5], [_K5, -_K1, _K7, _K3], [_K7, -_K5, _K3, -_K1]]
_EVEN = np.array([[1, 0, 1, 0], [0, 1, 0, 1], [0, 1, 0, -1], [1, 0, -1, 0]])
_BUTTERFLY = np.block([[_EVEN, np.eye(4)], [_EVEN[::-1], -np.eye(4)[::-1]]])

# Half up would lift every pixel by 1/128 on average, more than IEEE 1180 allows; half a step less for the mirrored
# half of a row makes the mean error vanish.
_PIXEL_HALF = np.repeat(np.array([32, 31], np.float32), 4)


def _along_rows(matrix):
    """The matrix that multiplies rows; BLAS is ten times slower with one that is transposed in place."""
    return np.ascontiguousarray(matrix.T)


_FORWARD, _BRACKETS, _BUTTERFLY = map(_along_rows, (_FORWARD, _BRACKETS, _BUTTERFLY))


def _times(x, matrix):
    """x @ matrix along the last axis.

    BLAS takes threads for larger products than these, and then most of the time is what its threads take to meet.
    """
    rows = x.reshape(-1, 8)
    y, matrix, stacks = np.empty_like(rows), matrix.astype(x.dtype), len(rows) // _STACK * _STACK
    np.matmul(rows[:stacks].reshape(-1, _STACK, 8), matrix, out=y[:stacks].reshape(-1, _STACK, 8))
    np.matmul(rows[stacks:], matrix, out=y[stacks:])
    return y.reshape(x.shape)


def _pass(x, matrix, drop):
    """floor((x @ matrix + half) / 2^drop) along the last axis."""
    y = _times(x, matrix)
    y += 2 ** (drop - 1)
    y *= 2.0**-drop
    return np.floor(y, out=y)


def _transposed(x, dtype):
    return x.swapaxes(-1, -2).astype(dtype, order="C")


def forward(blocks: NDArray[np.int8]) -> NDArray[np.int32]:
    """2-D DCT-II of int8 blocks [..., 8, 8]: int32 coefficients [..., 8, 8], vertical frequency first.

    A coefficient is the orthonormal one times 2^FRACTION_BITS; it fits 17 bits (signed). First pass along the rows,
    second along the columns. Within 0.5 of the exact transform.
    """
    x = _pass(blocks.astype(np.float32), _FORWARD, _DROP[0])
    return _transposed(_pass(_transposed(x, np.float64), _FORWARD, _DROP[1]), np.int32)


def inverse(coefficients: np.ndarray) -> NDArray[np.int8]:
    """Inverse of integer coefficients [..., 8, 8] (no fraction bits): int8 [..., 8, 8].

    Coefficients saturate to [-2048, 2047] first, results to [-128, 127]. First pass along the columns (results fit 18
    bits), second along the rows (21 bits, 6 of them fraction). Within the limits of IEEE Std 1180-1990.
    """
    x = _transposed(np.clip(coefficients, COEFFICIENT_MIN, COEFFICIENT_MAX), np.float32)
    x = _times(_pass(x, _BRACKETS, _DROP[0]), _BUTTERFLY)
    x = _pass(_transposed(x, np.float64), _BRACKETS, _DROP[1])
    x = _times(x.astype(np.float32), _BUTTERFLY)
    x += _PIXEL_HALF
    x *= 1 / 64
    return np.clip(np.floor(x, out=x), -128, 127, out=x).astype(np.int8)
