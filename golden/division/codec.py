"""The whole path: a tensor to codes and bases, and back (DIVISION, sections 4.1 and 4.2, figure 5, equations 9 and 10).

A block's bytes: for each of its eight rows the base, if the row begins a segment, then the codes of the eight lanes,
the first one in the lowest bits. Rows after the end of a flat tensor have codes of 0 and no base. Nothing else is in a
payload: shape, bits and k travel with the tensor's owner.
"""

import math
from collections.abc import Sequence
from io import BytesIO
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from actcodec.golden.division import average, dither
from actcodec.golden.division import view as views
from actcodec.golden.division.parts import parts
from actcodec.golden.division.table import Table
from actcodec.golden.division.view import View
from actcodec.golden.jpegact import sfpr
from actcodec.golden.offload.blocks import GROUP, LANES

_LANE = np.arange(LANES)


class Encoded(NamedTuple):
    """A payload, and what shows a host that a table is stale or a layer diverges."""

    payload: bytes
    clipped: int  # values that the codes do not reach
    nans: int
    saturated: int  # values that SFPR clips, Inf among them


def quantize(y: np.ndarray, base: NDArray[np.int8], noise: NDArray[np.uint8],
             bits: int) -> tuple[NDArray[np.uint8], np.ndarray]:
    """Codes of `bits`, uint8, of integers y, each with its base and its noise (see `dither.noise`), and t.

    t = y - base + noise in units of 2^-F steps, int16; what is not 0 to 63 is clipped.
    """
    t = y - base.astype(np.int16) + noise
    return (np.clip(t, 0, 63) >> 6 - bits).astype(np.uint8), t


def dequantize(codes: NDArray[np.uint8], base: NDArray[np.int8], bits: int) -> NDArray[np.int8]:
    """y' = base + code * 2^F, int8. A table that `table.table` made keeps it within 127."""
    return np.minimum(base + (codes.astype(np.int16) << 6 - bits), 127).astype(np.int8)


def pack(codes: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    """Codes [..., 8] as bytes [..., bits]: the first lane in the lowest bits of the first byte."""
    word = np.bitwise_or.reduce(codes.astype("<u4") << (bits * _LANE).astype(np.uint32), axis=-1, keepdims=True)
    return word.view(np.uint8)[..., :bits]


def unpack(packed: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    """The reverse of `pack`."""
    word = np.zeros((*packed.shape[:-1], 4), np.uint8)
    word[..., :bits] = packed
    return (word.view("<u4") >> (bits * _LANE).astype(np.uint32) & (1 << bits) - 1).astype(np.uint8)


def _begins(segments):
    """Whether each row of each block begins a segment: [blocks, 8]."""
    begins = np.zeros(segments.segment.size, bool)
    begins[segments.start] = True
    return begins.reshape(segments.segment.shape)


def _bytes(segments, bits):
    """Which of the places [blocks, 8, 1 + bits] of a base and codes the payload has."""
    return np.concatenate([_begins(segments)[..., None], np.ones((*segments.segment.shape, bits), bool)], axis=2)


def block_sizes(view: View, bits: int) -> NDArray[np.int64]:
    """Bytes of each block of a payload, int64. Raises ValueError for other bits."""
    dither.check(bits)
    bases = [np.count_nonzero(_begins(segments), axis=1) for _, segments, *_ in parts(view)]
    return LANES * bits + np.concatenate(bases)


def size(shape: Sequence[int] | View, bits: int) -> int:
    """Bytes of the payload of a tensor of `shape` (or a View); its table takes two bytes more for each plane.

    Raises ValueError for a shape that has no view, and for other bits.
    """
    dither.check(bits)
    view = views.view(shape)
    blocks = view.blocks
    both = -(-view.rows * view.sectors // math.lcm(LANES, view.sectors))  # segments that begin a row and a block
    return int((blocks if view.tiled else view.rows + blocks - both) + LANES * bits * blocks)


def _scale(k, view):
    """k as SFPR reads it, float64 [planes]: without sign, 0 for a subnormal number; Inf and NaN are numbers like all.

    Raises ValueError unless there is a bfloat16 number for each plane.
    """
    k = np.asarray(k)
    if k.dtype != np.float32 or k.shape != (view.planes,) or np.any(k.view(np.uint32) & 0xFFFF):
        raise ValueError(f"k is {k.dtype} {list(k.shape)}, has to be float32 [{view.planes}], of bfloat16 numbers")
    bits = k.view(np.uint32).astype(np.int64) >> 16
    exponent = bits >> 7 & 0xFF
    return np.where(exponent > 0, np.ldexp(128.0 + (bits & 127), exponent - 134), 0.0)


def encode(x: NDArray[np.float32], table: Table, bits: int = 2, seed: int = 0, lfc: bool = True,
           rounding: str = "stochastic", offset: str = "mean", view: View | None = None,
           signs: bool = False) -> Encoded:
    """Compress a float32 tensor (2 to 5 dimensions, see `view.view`) with codes of `bits`, 1 to 4: Encoded.

    `table` has k and delta of each plane, `table.table`'s of the same tensor, bits, `lfc` and `offset` if nothing is to
    clip, though with `signs` a few values may; any other one is legal. `rounding` is stochastic, unbiased for every
    value and new for each `seed` of 32 bits, or nearest. `lfc` and `offset` as in `average.exact`. Decoding needs none
    of these four. `view`: how the tensor is seen, if not by its shape. `signs` as in `sfpr.quantize`.
    NaN counts as 0, Inf as what SFPR makes of it: 127 or -128.
    Raises TypeError unless `x` is a float32 array, ValueError for a shape that has no view, a table that does not fit
    it, and for other bits, seeds, roundings and offsets.
    """
    view = views.of(x, view)
    k, delta = _scale(table.k, view), np.asarray(table.delta)
    if delta.dtype != np.int8 or delta.shape != (view.planes,):
        raise ValueError(f"delta is {delta.dtype} {list(delta.shape)}, has to be int8 [{view.planes}]")
    dither.check(bits, seed, rounding)
    x, payload, group = np.reshape(x, (view.rows, view.width)), BytesIO(), 0
    clipped = nans = saturated = 0
    last_segments = None
    for part, segments, planes, rows in parts(view):
        if segments is not last_segments:
            last_segments, exists, there = segments, segments.exists, _bytes(segments, bits)
        scale = k[planes][part.plane, None]
        y = sfpr.quantize(x[rows], scale, signs)
        if y.min() == -128 or y.max() == 127 or np.isnan(x[rows]).any():
            counts = sfpr.counts(x[rows], scale)
            nans, saturated = nans + counts.nans, saturated + counts.saturated
        y = views.split(y, part)
        base = average.bases(y, part, delta[planes], lfc, offset, segments)
        noise = dither.noise(part, bits, seed, rounding, group)
        codes, t = quantize(y, base[segments.segment, None], noise, bits)
        codes *= exists
        clipped += int(np.count_nonzero(exists & (t.view(np.uint16) > 63)))

        content = np.zeros((part.blocks, LANES, 1 + bits), np.uint8)
        content.reshape(-1, 1 + bits)[segments.start, 0] = base.view(np.uint8)
        content[..., 1:] = pack(codes, bits)
        payload.write(content[there])
        group += part.blocks // GROUP
    return Encoded(payload.getvalue(), clipped, nans, saturated)


def decode(payload: bytes, k: NDArray[np.float32], shape: Sequence[int] | View, bits: int = 2) -> NDArray[np.float32]:
    """The float32 tensor of `shape` in a payload (bytes) of codes of `bits`; `k` is the table's. A View in place of the
    shape gives its rows.

    Any payload of the right length is legal. r = float32(1 / k) is SFPR's; a plane whose k is above 2^126, which no
    table has, is 0. Raises ValueError for a payload of another length, a shape that has no view, k that does not fit
    it, and other bits.
    """
    view, expected = views.view(shape), size(shape, bits)
    shape = (view.rows, view.width) if isinstance(shape, views.View) else tuple(shape)
    if len(payload) != expected:
        raise ValueError(f"payload has {len(payload)} bytes, shape {shape} with {bits} bits has {expected}")
    k = _scale(k, view)
    r = sfpr.reciprocal(np.where(k > sfpr.LARGEST, 0, k).astype(np.float32))
    return restore(payload, r, view, bits).reshape(shape)


def restore(payload: bytes, r: NDArray[np.float32], view: View, bits: int = 2) -> NDArray[np.float32]:
    """The rows, float32 [rows, width], of a View in a payload (bytes) of the right length. `r`, finite, is what the
    values of each plane are multiplied by."""
    data, x, at = np.frombuffer(payload, np.uint8), np.empty((view.rows, view.width), np.float32), 0
    for part, segments, planes, rows in parts(view):
        there = _bytes(segments, bits)
        length = int(np.count_nonzero(there))
        content = np.zeros(there.shape, np.uint8)
        content[there] = data[at : at + length]
        base = content.reshape(-1, 1 + bits)[segments.start, 0].view(np.int8)
        y = dequantize(unpack(content[..., 1:], bits), base[segments.segment, None], bits)
        x[rows] = sfpr.dequantize(views.join(y, part), r[planes][part.plane, None])
        at += length
    return x
