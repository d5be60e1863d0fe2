"""COMET in torch, bit-equal to ``golden/comet`` (COMET, section 3.4).

It keeps the integers of prequantisation, in four, eight or sixteen bits each, and a bit for each if zeros are left out:
the decoded values depend on nothing else. Prediction and codes only determine the size of the streams, which is counted
exactly: the length of each symbol's code, and what escapes and interleaving add.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from actcodec import codecs
from actcodec.codecs.compressed import view as model_shape
from actcodec.codecs.models import comet as model
from actcodec.golden.comet import book as books
from actcodec.golden.comet import comet, lorenzo, prequantise
from actcodec.golden.comet.interleave import LANES
from actcodec.golden.offload import blocks
from actcodec.torch import kernels, packing
from actcodec.torch.compiled import compiled
from actcodec.torch.packed import Packed
from actcodec.torch.packing import Sparse, pack_codes, padded, sparse, unpack_bits, unpack_codes

__all__ = ["Comet"]

OUTLIER = books.SYMBOLS  # stands for any of them where only lengths count
WRAP = books.SYMBOLS // 2


class Comet:
    """The mode ``comet`` with its options, as ``actcodec.compress`` takes them; through ``torch.compile`` if
    ``compile``. The CPU chooses bound, predictor and code book, for which it waits for the device. Raises ValueError
    for an illegal option."""

    waits = True

    def __init__(self, mode: str, compile: bool = False, **options: Any) -> None:
        self.mode, self.options = codecs.find(mode), codecs.find(mode).option_values(options)
        self._function = compiled if compile else lambda function: function

    def reads(self, x: torch.Tensor) -> bool:
        """Whether :meth:`encode` reads a tensor of 16 bits."""
        return self._function is not compiled and kernels.read(__name__, x)

    def encode(self, x: torch.Tensor) -> Packed:
        """:class:`~actcodec.torch.packed.Packed` of a contiguous float32 tensor of 1 to 5 dimensions. Raises ValueError
        when golden does."""
        shape, cdus = model_shape(x.shape), self.options["cdus"]
        s = prequantise.step(self._bound(x))
        q, outliers = self._quantized(x.view(-1), s)
        size = sum(self._sizes(x, s, q, outliers, shape, cdus))
        narrow, bits = narrow_words(q)
        values = x.view(-1)[outliers]
        return Packed(self.mode.name, tuple(x.shape), (narrow, bits, s, outliers, values), size,
                      self.mode.model.side_bytes(shape, cdus), narrow.nbytes + outliers.nbytes + values.nbytes, x.dtype)

    def decode(self, packed: Packed) -> torch.Tensor:
        """The tensor of a :class:`~actcodec.torch.packed.Packed`."""
        narrow, bits, s, outliers, values = packed.data
        count = torch.Size(packed.shape).numel()
        if native := kernels.fused(__name__, narrow.values):
            x = torch.empty(count, dtype=packed.dtype, device=outliers.device)
            native.decode(narrow.bits, narrow.values, bits, s, x)
        else:
            q = widen_words(narrow, bits, count)
            x = torch.empty(q.shape, dtype=packed.dtype, device=q.device)
            part = packing.part_of(x)
            for i in range(0, x.numel(), part):
                x[i:i + part] = q[i:i + part].float().mul_(s)  # 11 by 8 bits: exact
        return x.index_put_((outliers,), values).view(packed.shape)

    def _bound(self, x):
        """As golden's ``bound``."""
        bounds = {name: self.options[name] for name in self.mode.exclusive}
        if bounds["error_bound"] is not None:
            return bounds["error_bound"]
        if bounds["relative_bound"] is None:
            return model.bound(x.float().cpu().numpy(), **bounds)
        low, high = map(float, torch.aminmax(x))
        if not np.isfinite(high - low):
            finite = x[x.isfinite()]
            low, high = map(float, torch.aminmax(finite)) if finite.numel() else (0.0, 0.0)
        return model.range_bound(low, high, bounds["relative_bound"])

    def _quantized(self, x, s):
        """The integers of ``x``, int16, and the indices of outliers."""
        if native := kernels.fused(__name__, x):
            return native.quantize(x, s)
        if native := kernels.of(__name__, x):
            q = torch.empty(x.shape, dtype=torch.int16)
            outliers = torch.empty(native.quantize(x, x.numel(), s, float(prequantise.LARGEST), q), dtype=torch.int64)
            if outliers.numel():
                native.outliers(x, x.numel(), s, float(prequantise.LARGEST), outliers)
            return q, outliers
        q, outside = self._function(quantize)(x, torch.tensor(s, dtype=torch.float64, device=x.device))
        return q, outside.nonzero().view(-1)

    def _sizes(self, x, s, q, outliers, shape, cdus):
        """The bytes of each stream, or of all, with the predictor and the book that golden chooses."""
        view, configs = blocks.view(shape), model.configs(shape, self.options["predictor"])
        counts = self._histograms(q, view, configs)
        config, book = cheapest(counts, configs)
        if native := kernels.fused(__name__, q):
            yield native.size(x, s, q, outliers.numel() > 0, view, way(config), cdus, book)
            return
        escaped = counts[configs.index(config), book.U:].any()
        if native := kernels.of(__name__, q):
            u = torch.empty_like(q)
            native.symbols(q, view.rows, view.width, view.height, *way(config), u)
        else:
            u = torch.cat(list(self._symbols(q, view, config)))
        if outliers.numel():
            u.index_fill_(0, outliers, OUTLIER)
        code, escape = (torch.from_numpy(table).to(u.device) for table in tables(book))
        for rounds in streams(u, shape, config.tiled, cdus):
            yield size(rounds, code, escape if outliers.numel() or escaped else None)

    def _histograms(self, q, view, configs):
        """Those of the symbols in each configuration, on the CPU: int64 [configurations, symbols]."""
        ways = [way(config) for config in configs]
        if native := kernels.fused(__name__, q):
            return native.histograms(q, view, ways)
        if native := kernels.of(__name__, q):
            counts = torch.empty(len(ways), books.SYMBOLS, dtype=torch.int64)
            native.histograms(q, view.rows, view.width, view.height, len(ways), torch.tensor(ways, dtype=torch.int64),
                              counts)
            return counts
        return torch.stack([sum(torch.bincount(u, minlength=books.SYMBOLS) for u in self._symbols(q, view, config))
                            for config in configs]).cpu()

    def _symbols(self, q, view, config):
        """The symbols in memory order, in parts that do not depend on each other."""
        if config.tiled:  # rows of tiles
            step = LANES * max(1, packing.part_of(q) // (LANES * view.width))
            for first in range(0, view.rows, step):
                rows = min(step, view.rows - first)
                part = q[first * view.width:(first + rows) * view.width]
                yield self._function(predicted)(part, view._replace(rows=rows), way(config), first)
        else:
            for part in q.split(max(packing.part_of(q) // lorenzo.GROUP, 1) * lorenzo.GROUP):
                yield self._function(predicted)(part, view, way(config), 0)


def way(config: Any) -> tuple[bool, ...]:
    """A configuration as a tuple: (tiled, horizontal, vertical, signed)."""
    return config.tiled, config.horizontal, config.vertical, config.signed


def cheapest(counts: torch.Tensor, configs: Sequence[Any]) -> tuple[Any, books.Book]:
    """The configuration and the book that golden chooses by the histograms of the configurations."""
    native = kernels.library(__name__.rpartition(".")[2]) if kernels.enabled else None  # whatever the device
    if native is None:
        return comet.cheapest(list(counts.numpy()), configs)
    lengths = torch.empty(books.MAX_LENGTH, dtype=torch.int64)
    place = native.cheapest(counts, len(configs), lengths)
    return configs[place], books.Book(lengths.tolist())


def narrow_words(q: torch.Tensor) -> Any:
    """Flat int16 in as few bytes as possible: a :class:`~actcodec.torch.packing.Sparse`, and the bits of its values."""
    low, high = map(int, torch.aminmax(q)) if q.numel() else (0, 0)
    bits = 4 if low >= -8 and high < 8 else 8 if low >= -128 and high < 128 else 16
    if bits == 16:
        return sparse(q), bits
    packed = sparse(q.to(torch.int8))
    if bits == 4:
        dense = q.numel() // 2 <= packed.values.numel() // 2 + -(-q.numel() // 8)  # zeros may cost less than bits
        values = q.to(torch.int8) if dense else packed.values
        packed = Sparse(None if dense else packed.bits, pack_codes((values & 15).view(torch.uint8), 4))
    return packed, bits


def widen_words(words: Any, bits: Any, count: int) -> Any:
    """The inverse of :func:`narrow_words`: flat values, ``count`` of them."""
    if bits != 4:
        return words.dense(count)
    number = count if words.bits is None else int(unpack_bits(words.bits, count).sum())
    values = unpack_codes(words.values, 4, number).view(torch.int8)
    return Sparse(words.bits, (values ^ 8) - 8).dense(count)


def quantize(x: torch.Tensor, s: Any) -> tuple[torch.Tensor, ...]:
    """q, int16, of flat float32 values and a step (float64, on their device), and a bool for each outlier, whose q is
    0. As golden's ``prequantise.quantize``: a float64 quotient is as good as an exact one."""
    q = torch.empty(x.shape, dtype=torch.int16, device=x.device)
    outside = torch.empty(x.shape, dtype=torch.bool, device=x.device)
    part = packing.part_of(x)
    for i in range(0, x.numel(), part):
        y = x[i:i + part].double() / s  # s is a tensor: CUDA multiplies by 1 / number
        y = torch.trunc(y + torch.copysign(torch.full_like(y, 0.5), y))  # half away from zero
        out = ~(y.abs() <= prequantise.LARGEST)
        q[i:i + part] = torch.where(out, 0, y)
        outside[i:i + part] = out
    return q, outside


def predicted(q: torch.Tensor, view: Any, config: Any, first: int) -> torch.Tensor:
    """Symbols, int16 [n], in memory order, of flat q, in a configuration (tiled, horizontal, vertical, signed). As
    golden's ``lorenzo.residuals``; if ``tiled``, ``first`` is the row at which q begins, a multiple of 8."""
    tiled, horizontal, vertical, signed = config
    d = q.view(view.rows, view.width) if tiled else padded(q, lorenzo.GROUP).view(-1, lorenzo.GROUP)
    if vertical:
        row = first + torch.arange(view.rows, device=q.device)
        joined = (row % LANES != 0) & (row % view.height != 0)
        d = d - F.pad(d, (0, 0, 1, -1)) * joined[:, None]
    if horizontal:
        d = d - F.pad(d, (1, -1)) * (joined_left(view, q.device, first) if tiled else 1)
    if signed:
        d = ((d + WRAP) & 2 * WRAP - 1) - WRAP
        d = d << 1 ^ d >> 15
    else:
        d = d & 2 * WRAP - 1
    return d.reshape(-1)[:q.numel()]


def joined_left(view: Any, device: Any, first: int) -> torch.Tensor:
    """1 where a value of a tiled tensor has a left neighbour, 0 elsewhere: int16 [rows, width]."""
    tiles = torch.arange(-(-view.rows // LANES) * view.tiles_per_row, device=device).view(-1, view.tiles_per_row)
    tiles = tiles + first // LANES * view.tiles_per_row
    begins = (tiles % blocks.GROUP == 0) | (tiles % view.tiles_per_row == 0)
    joined = torch.ones(*tiles.shape, LANES, dtype=torch.int16, device=device)
    joined[..., 0] = ~begins
    rows = joined.view(tiles.shape[0], 1, view.padded_width).expand(-1, LANES, -1)
    return rows.reshape(-1, view.padded_width)[:view.rows, :view.width]


def tables(book: Any) -> Any:
    """For each symbol, and :data:`OUTLIER`: the length of its code in bits, and of its escape in bytes; float64, which
    is summed fastest."""
    symbol = np.arange(books.SYMBOLS + 1)
    code = np.full(symbol.shape, book.length[-1], np.float64)
    code[:book.U] = book.length[:-1]
    escape = np.where(symbol < book.U, 0, np.where(symbol < book.U + books.ONE_BYTE, 1, 2)).astype(np.float64)
    escape[OUTLIER] = 6
    return code, escape


def streams(u: torch.Tensor, shape: Sequence[int], tiled: Any, cdus: int) -> Iterator[Any]:
    """The rounds of each CDU's stream: symbols, int16 [rounds, 8]."""
    view = blocks.view(shape)
    if cdus == 1 and (not tiled or view.rows % LANES == view.width % LANES == 0):
        orders: Iterable[Any] = [u]  # whole sectors: only their order differs, and the last one stays the last
    else:
        order, owner = lorenzo.order(shape, tiled), lorenzo.groups(shape, tiled) % cdus
        orders = (u[torch.from_numpy(order[owner == cdu]).to(u.device)] for cdu in range(cdus))
    for one in orders:
        yield padded(one, LANES).view(-1, LANES)


def size(rounds: Any, code: Any, escape: Any) -> Any:
    """The bytes of a stream of these rounds. If ``escape`` is None, no symbol in them escapes.

    A lane consumes 2 bytes, and one for each 8 bits of all steps except the last one (see golden's ``interleave``). A
    round with escapes has a step for each byte of the longest one, in which other lanes take one bit.
    """
    if not len(rounds):
        return 0
    if native := kernels.of(__name__, rounds):
        escape = None if escape is None else escape.to(torch.uint8)
        return native.size(rounds, rounds.numel(), code.to(torch.uint8), escape)
    bits_of = torch.zeros(LANES, dtype=code.dtype, device=rounds.device)
    for part in rounds.split(max(packing.part_of(rounds) // LANES, 1)):
        index = part.reshape(-1).int()
        bits = code.index_select(0, index).view(part.shape)
        last = bits[-1]
        bits_of += bits.sum(0)
        if escape is not None:
            own = escape.index_select(0, index).view(part.shape)
            raw = own.amax(1)
            bits_of += raw.sum() + 7 * own.sum(0)
            last = torch.where(raw[-1] == 0, last, torch.where(own[-1] == raw[-1], 8, 1))
    return int((2 + torch.ceil((bits_of - last) / 8)).sum())
