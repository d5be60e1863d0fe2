"""COMET on a GPU, like ``comet.cpp``.

Symbols are counted for all predictors in one pass over the integers, and are kept for none of them; the CPU chooses a
predictor and a book, and another pass makes the symbols of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl

from actcodec.golden.comet import book as books
from actcodec.golden.comet import lorenzo, prequantise
from actcodec.golden.offload import blocks
from actcodec.torch.kernels.launch import MAGNITUDE, bits_of, float_of, run, store
from actcodec.torch.kernels.packing import BYTES, count_kernel, octets, ranks, spread

__all__ = ["decode", "histograms", "quantize", "size"]

VALUES = 1024  # of a program
ROUNDS = 128  # likewise, where streams are measured
SYMBOLS, ONE_BYTE = tl.constexpr(books.SYMBOLS), tl.constexpr(books.ONE_BYTE)
WRAP, OUTLIER = tl.constexpr(books.SYMBOLS // 2), tl.constexpr(books.SYMBOLS)
FEW = tl.constexpr(256)  # symbols that often follow themselves, and one for all others
LANES, TILES, GROUP = tl.constexpr(8), tl.constexpr(blocks.GROUP), tl.constexpr(lorenzo.GROUP)
DIFFERENCES = (np.arange(books.SYMBOLS) + books.SYMBOLS // 2) % books.SYMBOLS - books.SYMBOLS // 2
FOLDED = DIFFERENCES << 1 ^ DIFFERENCES >> 15
"""The symbol with a sign that stands for the same difference as each one without."""


@triton.jit
def places(n, N: tl.constexpr):
    """A program's values, and which of them exist."""
    place = tl.program_id(0).to(tl.int64) * N + tl.arange(0, N)
    return place, place < n


@triton.jit
def load_bits(x, place, inside, limit):
    """The bits of values as float32, and whether these are outliers: from the bits ``limit`` on, or no numbers."""
    bits = bits_of(tl.load(x + place, inside, 0).to(tl.float32))
    return bits, (bits & MAGNITUDE) >= limit


@triton.jit
def quantize_kernel(x, q, counts, n, s, limit, N: tl.constexpr):
    """Integers half away from zero, 0 for outliers, and how many outliers there are."""
    place, inside = places(n, N)
    bits, outside = load_bits(x, place, inside, limit)
    magnitude = float_of(tl.where(outside, 0, bits & MAGNITUDE))
    most = (tl.div_rn(magnitude, s) + 0.5).to(tl.int32)
    # A quotient below a half may have been rounded to it. The product is exact, of 12 by 8 bits.
    most -= (magnitude < (most.to(tl.float32) - 0.5) * s).to(tl.int32)
    tl.store(q + place, tl.where(bits < 0, -most, most).to(tl.int16), inside)
    tl.store(counts + tl.program_id(0), tl.sum(outside.to(tl.int32), 0))


@triton.jit
def outliers_kernel(x, ends, outliers, n, limit, N: tl.constexpr):
    """The places of outliers; ``ends`` has how many the programs up to this one have."""
    place, inside = places(n, N)
    one = load_bits(x, place, inside, limit)[1].to(tl.int32)
    rank = tl.load(ends + tl.program_id(0)) - tl.sum(one, 0) + tl.cumsum(one, 0) - one
    tl.store(outliers + rank, place, one != 0)


@triton.jit
def differences(q, place, inside, width, height, across, WAY: tl.constexpr):
    """Integers, int32, minus what their neighbours predict, not yet modulo 2^12. WAY has a bit for each of tiled,
    horizontal and vertical."""
    if WAY & 1:
        row, column = place // width, place % width
        above = inside & (row % LANES != 0) & (row % height != 0)
        tile = row // LANES * across + column // LANES
        left = inside & ((column % LANES != 0) | ((tile % TILES != 0) & (column != 0)))
    else:
        above, left = inside, inside & (place % GROUP != 0)
    d = tl.load(q + place, inside, 0).to(tl.int32)
    if WAY & 2:
        d -= tl.load(q + place - 1, left, 0).to(tl.int32)
    if WAY & 4:
        d -= tl.load(q + place - width, above, 0).to(tl.int32)
        if WAY & 2:
            d += tl.load(q + place - width - 1, left & above, 0).to(tl.int32)
    return d


@triton.jit
def symbols_of(d, SIGNED: tl.constexpr):
    if SIGNED:
        d = (d + WRAP & SYMBOLS - 1) - WRAP
        return d << 1 ^ d >> 31
    return d & SYMBOLS - 1


@triton.jit
def histograms_kernel(q, counts, n, width, height, across, WAYS: tl.constexpr, N: tl.constexpr):
    """Of symbols with a sign, of each way whose bit is in WAYS. Large symbols are rare and seldom alike: each is added
    on its own."""
    place, inside = places(n, N)
    for way in tl.static_range(8):
        if WAYS >> way & 1:
            u = symbols_of(differences(q, place, inside, width, height, across, way), True)
            few = tl.histogram(tl.where(inside, tl.minimum(u, FEW - 1), FEW - 1), FEW)
            number = tl.arange(0, FEW)
            tl.atomic_add(counts + number, few.to(tl.int64), (number < FEW - 1) & (few > 0), sem="relaxed")
            tl.atomic_add(counts + u, tl.full((N,), 1, tl.int64), inside & (u >= FEW - 1), sem="relaxed")
            counts += SYMBOLS


@triton.jit
def streamed(place, inside, starts, rows, width, across, solid, WIDE: tl.constexpr):
    """The places of values in their streams, of which ``starts`` has where each group begins. Groups are ``solid``
    values that follow each other in memory, or, with WIDE, four tiles, whose rows pass one by one, without padding."""
    if not WIDE:
        return tl.load(starts + place // solid, inside, 0) + place % solid
    row, column = place // width, place % width
    tile = row // LANES * across + column // LANES
    row %= LANES
    own = column % LANES
    for i in tl.static_range(TILES):
        other = tile // TILES * TILES + i
        high = tl.maximum(rows - other // across * LANES, 0)
        lines = tl.minimum(row, high) + (other < tile).to(tl.int64)
        own += lines * tl.minimum(width - other % across * LANES, LANES)
    return tl.load(starts + tile // TILES, inside, 0) + own


@triton.jit
def symbols_kernel(x, q, u, starts, n, limit, rows, width, height, across, solid, WAY: tl.constexpr,
                   SIGNED: tl.constexpr, OUTLIERS: tl.constexpr, WIDE: tl.constexpr, N: tl.constexpr):
    place, inside = places(n, N)
    symbol = symbols_of(differences(q, place, inside, width, height, across, WAY), SIGNED)
    if OUTLIERS:
        symbol = tl.where(load_bits(x, place, inside, limit)[1], OUTLIER, symbol)
    tl.store(u + streamed(place, inside, starts, rows, width, across, solid, WIDE), symbol.to(tl.int16), inside)


@triton.jit(do_not_specialize=["book", "U"])
def size_kernel(u, counts, bits, longest, book: tl.int64, U, N: tl.constexpr):
    """Bits of each lane of streams, but for the last step (comet.py's ``size``): a round takes the code of each symbol
    and, if any escapes, a step for each byte of the longest one, 8 bits of its lane or one of another."""
    program, programs = tl.program_id(0).to(tl.int64), longest // (LANES * N)
    stream, lane = program // programs, tl.arange(0, LANES)
    first = program % programs * LANES * N + tl.arange(0, N)[:, None] * LANES
    count = tl.load(counts + stream)
    place = first + lane[None, :]
    symbol = tl.load(u + stream * longest + place, place < count, 0).to(tl.int32)
    code, end = tl.full((N, LANES), 1, tl.int32), 0
    for i in tl.static_range(7):
        end += (book.to(tl.int64) >> 8 * i & 255).to(tl.int32)
        code += (tl.minimum(symbol, U) >= end).to(tl.int32)
    own = (symbol >= U).to(tl.int32) + (symbol >= U + ONE_BYTE).to(tl.int32)
    own = tl.where(symbol == OUTLIER, 6, own)
    steps = tl.max(own, 1)[:, None]
    last = tl.where(steps == 0, code, tl.where(own == steps, 8, 1))
    # past the end, rounds have a last step and nothing else
    total = tl.sum(code + steps + 7 * own - tl.where(first + LANES >= count, last, 0), 0)
    tl.atomic_add(bits + stream * LANES + lane, total.to(tl.int64), sem="relaxed")


@triton.jit
def decode_kernel(bits, values, ends, x, n, s, WIDTH: tl.constexpr, SPARSE: tl.constexpr, BYTES: tl.constexpr):
    byte, place, inside = octets(n, BYTES)
    if SPARSE:
        one = spread(tl.load(bits + byte, byte * 8 < n, 0))
        rank, some = ranks(one, ends, BYTES), one != 0
    else:
        rank, some = place, inside
    if WIDTH == 4:
        q = tl.load(values + rank // 2, some, 0).to(tl.int32) >> (rank % 2 * 4).to(tl.int32) & 15
        q = (q ^ 8) - 8
    else:
        q = tl.load(values + rank, some, 0).to(tl.int32)
    store(x, place, q.to(tl.float32) * s, inside)


def _limit(s):
    """The bits of the smallest magnitude that is an outlier."""
    return int(np.float32((prequantise.LARGEST + 0.5) * s).view(np.int32))  # 12 by 8 bits: exact


def quantize(x: torch.Tensor, s: float) -> tuple[torch.Tensor, torch.Tensor]:
    """The integers of flat values, and the places of outliers. The CPU waits for their number."""
    n, programs = x.numel(), triton.cdiv(x.numel(), VALUES)
    q = torch.empty(n, dtype=torch.int16, device=x.device)
    counts = torch.empty(programs, dtype=torch.int32, device=x.device)
    run(quantize_kernel, programs, x, q, counts, n, s, _limit(s), N=VALUES)
    ends = counts.cumsum(0)
    outliers = torch.empty(int(ends[-1]), dtype=torch.int64, device=x.device)
    if outliers.numel():
        run(outliers_kernel, programs, x, ends, outliers, n, _limit(s), N=VALUES)
    return q, outliers


def _way(tiled, horizontal, vertical, signed):
    """The number, to kernels, of how a configuration predicts."""
    return tiled | horizontal << 1 | vertical << 2


def histograms(q: torch.Tensor, view: Any, configs: Sequence[tuple[bool, ...]]) -> torch.Tensor:
    """Those of the symbols in each configuration (tiled, horizontal, vertical, signed), on the CPU."""
    ways = sorted({_way(*one) for one in configs})
    counts = torch.zeros(len(ways), books.SYMBOLS, dtype=torch.int64, device=q.device)
    run(histograms_kernel, triton.cdiv(q.numel(), VALUES), q, counts, q.numel(), view.width, view.height,
        view.tiles_per_row, WAYS=sum(1 << way for way in ways), N=VALUES)
    of = dict(zip(ways, counts.cpu().numpy(), strict=True))
    return torch.from_numpy(np.stack([of[_way(*one)] if one[-1] else of[_way(*one)][FOLDED] for one in configs]))


def _groups(view, tiled, cdus):
    """How many values of a group follow each other in memory, 0 if they do not; where each group begins in its stream;
    and how many values each stream has."""
    n, across = view.rows * view.width, view.tiles_per_row
    solid = lorenzo.GROUP if not tiled else 32 // across * view.width if across <= 2 else 0
    if cdus == 1 and (solid or view.rows % 8 == view.width % 8 == 0):
        return n, np.zeros((1, 1), np.int64), np.array([n])  # whole sectors: only their order differs
    if solid:
        first = np.append(np.arange(0, n, solid), n)
    else:
        count = view.blocks(True)
        row, column = np.divmod(np.append(np.arange(0, count, blocks.GROUP), count), across)
        first = np.minimum(8 * (row * view.width + np.minimum(view.rows - 8 * row, 8) * column), n)
    sizes = np.diff(first)
    sizes = np.pad(sizes, (0, -len(sizes) % cdus)).reshape(-1, cdus)
    return solid, sizes.cumsum(0) - sizes, sizes.sum(0)


def size(x: torch.Tensor, s: float, q: torch.Tensor, outliers: bool, view: Any, config: tuple[bool, ...], cdus: int,
         book: books.Book) -> int:
    """The bytes of all streams. The CPU waits for them."""
    solid, starts, counts = _groups(view, config[0], cdus)
    longest = triton.cdiv(int(counts.max()), 8 * ROUNDS) * 8 * ROUNDS
    starts = starts + np.arange(cdus) * longest
    starts = torch.from_numpy(np.append(starts, counts)).to(q.device)
    u = torch.empty(cdus * longest, dtype=torch.int16, device=q.device)
    run(symbols_kernel, triton.cdiv(q.numel(), VALUES), x, q, u, starts, q.numel(), _limit(s), view.rows,
        view.width, view.height, view.tiles_per_row, solid, WAY=_way(*config), SIGNED=config[-1], OUTLIERS=outliers,
        WIDE=not solid, N=VALUES)
    bits = torch.zeros(cdus, 8, dtype=torch.int64, device=q.device)
    run(size_kernel, u.numel() // (8 * ROUNDS), u, starts[-cdus:], bits, longest,
        int.from_bytes(book.to_bytes(), "little"), book.U, N=ROUNDS)
    lanes = zip(counts, bits.tolist(), strict=True)
    return sum(2 + -(-lane // 8) for count, own in lanes if count for lane in own)


def decode(bits: torch.Tensor | None, values: torch.Tensor, width: int, s: float, x: torch.Tensor) -> None:
    """Integers of so many bits, times the step, of a :class:`~actcodec.torch.packing.Sparse`'s bits and values."""
    n, ends = x.numel(), values
    programs = triton.cdiv(n, 8 * BYTES)
    if bits is not None:
        counts = torch.empty(programs, dtype=torch.int32, device=x.device)
        run(count_kernel, programs, bits, counts, n, BYTES=BYTES)
        ends = counts.cumsum(0)
    run(decode_kernel, programs, values if bits is None else bits, values, ends, x, n, s, WIDTH=width,
        SPARSE=bits is not None, BYTES=BYTES)
