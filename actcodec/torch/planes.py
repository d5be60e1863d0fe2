"""The block codes of :mod:`actcodec.torch.blockcodes` by operations of PyTorch: the same tables and the same bits, kept
section by section for a whole tensor, without the padding of each block's last byte.

A coder's ``fit`` chooses a table for blocks, uint8 [n, 64], in the CDU's order of values; ``straight`` tables are for
values without a sign. ``size`` has the bytes of the payload with a table, ``encode`` returns :class:`Planes`, and
``decode`` is its inverse.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch

from actcodec.golden.jpegact import nibble, rice, rice_sizes
from actcodec.golden.offload.blocks import BLOCK, LANES
from actcodec.torch.packing import Bits, pack_bits, pack_codes, part_of, unpack_bits, unpack_codes

__all__ = ["CODERS", "Nibble", "Planes", "Rice", "best_of", "sample"]

GROUPS = 16
BYTES = 0x01010101  # the lowest bit of each
COLLECT = 0x10204080  # times four bytes of 0 or 1: bit i of the top nibble is byte i
SPREAD = 0x00204081  # times a nibble: its bit i is the lowest one of byte i


class Planes(NamedTuple):
    """A tensor, encoded."""

    head: torch.Tensor  # first bytes of blocks
    sections: tuple[torch.Tensor, ...]
    numbers: tuple[int, ...]  # nibbles, bits or bytes in each section
    table: Any

    @property
    def nbytes(self) -> int:
        return self.head.nbytes + sum(one.nbytes for one in self.sections)


def parts(x: torch.Tensor, count: int, share: int = 1) -> Iterator[slice]:
    """Slices of ``count`` blocks, as long as :func:`part_of` allows, divided by ``share``."""
    step = part_of(x) // BLOCK // share
    return (slice(i, min(i + step, count)) for i in range(0, count, step))


def fold(x: torch.Tensor, straight: bool) -> torch.Tensor:
    """As golden's ``bits.fold``."""
    return x if straight else x << 1 ^ -(x >> 7)


def unfold(u: torch.Tensor, straight: bool) -> torch.Tensor:
    """The inverse of :func:`fold`."""
    return u if straight else u >> 1 ^ -(u & 1)


def length(u: torch.Tensor) -> torch.Tensor:
    """The number of bits that each value (uint8) needs, uint8."""
    need = (u > 0).to(torch.uint8)
    for bit in range(1, 8):
        need += u >> bit > 0
    return need


def on_device(array: Any, x: torch.Tensor) -> torch.Tensor:
    """``array`` as uint8, on the device of ``x``."""
    return torch.from_numpy(np.ascontiguousarray(array, np.uint8)).to(x.device)


class Nibble:
    """Nibble planes with 2-bit width codes."""

    def fit(self, x: torch.Tensor, straight: bool) -> nibble.Table:
        """The best table for blocks."""
        counts = np.zeros((GROUPS, 9), np.int64)
        for part in parts(x, len(x)):
            blocks = x[part][x[part].amax(1) > 0]
            need = length(fold(blocks, straight).view(-1, GROUPS, 4).amax(2))
            place = need.long() + 9 * torch.arange(GROUPS, device=x.device)
            counts += torch.bincount(place.view(-1), minlength=9 * GROUPS).view(GROUPS, 9).cpu().numpy()
        return nibble.best(counts, straight)

    def smallest(self, x: torch.Tensor, ways: tuple[bool, ...]) -> tuple[Planes, int]:
        """Blocks encoded with the best table, straight or not as in ``ways``, and the bytes of the payload."""
        tables = [self.fit(x, straight) for straight in ways]
        sizes = [self.size(x, table) for table in tables]
        return self.encode(x, tables[sizes.index(min(sizes))]), min(sizes)

    def plan(self, x: torch.Tensor, table: nibble.Table) -> tuple[torch.Tensor, ...]:
        """For blocks: folded values, codes and widths of groups, first bytes."""
        widths, u = on_device(table.widths, x), fold(x, table.straight)
        need = length(u.view(-1, GROUPS, 4).amax(2))
        code = sum((need > widths[:, i] for i in range(1, 3)), (need > widths[:, 0]).to(torch.uint8))
        w = widths.view(-1)[(code + 4 * torch.arange(GROUPS, device=x.device)).long()]
        total = w.sum(1)
        raw = (total > nibble.MOST) | (need > widths[:, 3]).any(1)
        head = torch.where(raw, nibble.RAW, 4 + (total + 1 >> 1)).masked_fill_(need.amax(1) == 0, 0)
        return u, code, self._widths(w, head), head.to(torch.uint8)

    @staticmethod
    def _widths(w: torch.Tensor, head: torch.Tensor) -> torch.Tensor:
        return w.masked_fill_(head[:, None] == nibble.RAW, 8).masked_fill_(head[:, None] == 0, 0)

    def size(self, x: torch.Tensor, table: nibble.Table) -> int:
        """Bytes of the payload."""
        return len(x) + sum(int(self.plan(x[part], table)[-1].sum()) for part in parts(x, len(x)))

    def encode(self, x: torch.Tensor, table: nibble.Table) -> Planes:
        heads, codes, nibbles = [], [], []
        for part in parts(x, len(x)):
            u, code, w, head = self.plan(x[part], table)
            words = u.contiguous().view(torch.int32)
            planes = [((words >> j & BYTES) * COLLECT >> 28 & 15).to(torch.uint8) for j in range(8)]
            nibbles.append(torch.stack(planes, 2).masked_select(bits_below(w)))
            codes.append(code[with_codes(head)].view(-1))
            heads.append(head)
        data, code = torch.cat(nibbles), torch.cat(codes)
        return Planes(torch.cat(heads), (pack_codes(code, 2), pack_codes(data, 4)), (code.numel(), data.numel()),
                    table)

    def decode(self, encoded: Planes) -> torch.Tensor:
        """Blocks, uint8 [n, 64]."""
        codes, nibbles = (unpack_codes(data, bits, count) for data, bits, count in
                          zip(encoded.sections, (2, 4), encoded.numbers, strict=True))
        widths = on_device(encoded.table.widths, encoded.head).view(-1)
        out = torch.empty(len(encoded.head), BLOCK, dtype=torch.uint8, device=encoded.head.device)
        group = 4 * torch.arange(GROUPS, device=out.device)
        for part in parts(out, len(out)):
            head = encoded.head[part]
            code = torch.zeros(len(head), GROUPS, dtype=torch.uint8, device=out.device)
            some = with_codes(head)
            group_codes, codes = cut(codes, GROUPS * int(some.sum()))
            code[some] = group_codes.view(-1, GROUPS)
            w = self._widths(widths[(code + group).long()], head)
            data, nibbles = cut(nibbles, int(w.sum()))
            planes = torch.zeros(*w.shape, 8, dtype=torch.uint8, device=out.device).masked_scatter_(bits_below(w), data)
            words = torch.zeros(w.shape, dtype=torch.int32, device=out.device)
            for j in range(8):
                words |= (planes[..., j].int() * SPREAD & BYTES) << j
            out[part] = unfold(words.view(torch.uint8), encoded.table.straight)
        return out


def cut(data: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The first ``count`` items, and the rest."""
    return data[:count], data[count:]


def bits_below(w: torch.Tensor) -> torch.Tensor:
    """A mask of the bits of a byte that are below a width, bool [..., 8]."""
    return torch.arange(8, dtype=torch.uint8, device=w.device) < w[..., None]


def with_codes(head: torch.Tensor) -> torch.Tensor:
    """A mask of the blocks that have codes of widths, by their first bytes."""
    return (head != 0) & (head != nibble.RAW)


class Fields(NamedTuple):
    """The parts of blocks in the Rice code."""

    mantissa: torch.Tensor  # uint8 [n, 64]
    w: torch.Tensor  # its bits
    kind: torch.Tensor  # class
    present: torch.Tensor  # groups that P0 shows, bool [n, 16]
    head: torch.Tensor


def sample(x: torch.Tensor) -> np.ndarray:
    """Some of the blocks, for a search by the CPU."""
    return x[::max(1, -(-len(x) // rice.SAMPLE))].cpu().numpy()


def best_of(blocks: np.ndarray, ways: tuple[bool, ...]) -> rice.Table:
    """The table of the Rice code that makes blocks smallest, straight or not as in ``ways``."""
    tables = [rice.fit(blocks, straight) for straight in ways]
    return min(tables, key=lambda table: int(rice.measure(blocks, table).sum()))


class Rice:
    """Golomb-Rice codes in planes."""

    def smallest(self, x: torch.Tensor, ways: tuple[bool, ...]) -> tuple[Planes, int]:
        """Blocks encoded with the best table for a sample, straight or not as in ``ways``, and the bytes of the
        payload."""
        table = best_of(sample(x), ways)
        return self.encode(x, table), self.size(x, table)

    def plan(self, x: torch.Tensor, table: rice.Table) -> Fields:
        """The parts of blocks, before they are packed."""
        k, more = self._spread(table, x)
        u = fold(x, table.straight)
        some = (u != 0).to(torch.uint8) if table.straight else torch.zeros_like(u[:1, :1])
        v = u - some
        quotient = v >> k
        top = quotient.clamp(max=2 if table.straight else 3)
        mantissa, kind = v - (top << k), top + some
        need = length((quotient - top).amax(1))
        i = sum((need > one for one in table.e[1:3]), (need > table.e[0]).to(torch.uint8))
        w = self._widths(k, more[i.long()], kind, table)
        present = (kind.view(-1, GROUPS, 4).amax(2) > 0) | self._always(table, x)
        total = table.flags + 4 * present.sum(1) + w.sum(1) + (kind > 0).sum(1) + (kind > 1).sum(1)
        size = total + 7 >> 3
        raw = (need > table.e[3]) | (size > rice_sizes.MOST)
        head = torch.where(raw, rice_sizes.RAW, size | i.long() << 6).masked_fill_(u.amax(1) == 0, 0)
        return Fields(mantissa, w, kind, present, head.to(torch.uint8))

    @staticmethod
    def _spread(table: rice.Table, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        line, place = np.divmod(np.arange(BLOCK), LANES)
        k = np.array(table.k)[line + place]
        return on_device(k, x), on_device(np.minimum(np.array(table.e)[:, None], 8 - k), x)

    @staticmethod
    def _widths(k: torch.Tensor, more: torch.Tensor, kind: torch.Tensor, table: rice.Table) -> torch.Tensor:
        w = k + more * (kind == 3)
        return w * (kind > 0) if table.straight else w

    @staticmethod
    def _always(table: rice.Table, x: torch.Tensor) -> torch.Tensor:
        return torch.arange(GROUPS, device=x.device) < GROUPS - table.flags

    def size(self, x: torch.Tensor, table: rice.Table) -> int:
        """Bytes of the payload."""
        total = len(x)
        for part in parts(x, len(x)):
            head = self.plan(x[part], table).head & 63
            total += int(head.sum()) + int((head == rice_sizes.RAW).sum())  # 63 stands for 64 bytes
        return total

    def encode(self, x: torch.Tensor, table: rice.Table) -> Planes:
        heads, raws = [], []
        sections = tuple(Bits() for _ in range(5))
        for part in parts(x, len(x), 2):  # selecting bits takes sixteen bytes for each
            fields = self.plan(x[part], table)
            head = fields.head
            some = (head != 0) & (head != rice_sizes.RAW)
            mantissa, w, kind, present = (one[some] for one in fields[:4])
            groups = kind.view(-1, GROUPS, 4) > 0
            bits = (groups.any(2)[:, GROUPS - table.flags:].reshape(-1), groups[present].view(-1),
                    (kind > 1)[kind > 0], (kind > 2)[kind > 1],
                    unpack_bits(mantissa.reshape(-1), 8 * w.numel()).view(*w.shape, 8).masked_select(bits_below(w)))
            for section, one in zip(sections, bits, strict=True):
                section.add(one)
            heads.append(head)
            raws.append(x[part][head == rice_sizes.RAW].view(-1))
        return Planes(torch.cat(heads), (torch.cat(raws), *(one.bytes() for one in sections)),
                    (sum(map(torch.numel, raws)), *(one.count for one in sections)), table)

    def decode(self, encoded: Planes) -> torch.Tensor:
        """Blocks, uint8 [n, 64]."""
        raws, table, head = encoded.sections[0], encoded.table, encoded.head
        flags, p0, p1, p2, bits = map(unpack_bits, encoded.sections[1:], encoded.numbers[1:])
        k, more = self._spread(table, head)
        out = torch.zeros(len(head), BLOCK, dtype=torch.uint8, device=head.device)
        for part in parts(out, len(out)):
            first = head[part]
            some, raw = (first != 0) & (first != rice_sizes.RAW), first == rice_sizes.RAW
            count = int(some.sum())
            present = self._always(table, head).repeat(count, 1)
            shows, flags = cut(flags, count * table.flags)
            present[:, GROUPS - table.flags:] = shows.view(count, -1)
            some_bits, p0 = cut(p0, 4 * int(present.sum()))
            group = torch.zeros(count, GROUPS, 4, dtype=torch.bool, device=head.device)
            group[present] = some_bits.view(-1, 4)
            kind = group.view(count, BLOCK).to(torch.uint8)
            some_bits, p1 = cut(p1, int((kind > 0).sum()))
            kind[kind > 0] += some_bits.to(torch.uint8)
            some_bits, p2 = cut(p2, int((kind > 1).sum()))
            kind[kind > 1] += some_bits.to(torch.uint8)
            w = self._widths(k, more[(first[some] >> 6).long()], kind, table)
            some_bits, bits = cut(bits, int(w.sum()))
            mantissa = torch.zeros(*w.shape, 8, dtype=torch.bool, device=head.device)
            mantissa.masked_scatter_(bits_below(w), some_bits)
            low = (kind > 0).to(torch.uint8) if table.straight else 0
            u = (kind - low << k) + low + pack_bits(mantissa).view(count, BLOCK)
            values = out[part]
            values[some] = unfold(u, table.straight)
            some_bits, raws = cut(raws, BLOCK * int(raw.sum()))
            values[raw] = some_bits.view(-1, BLOCK)
        return out


CODERS: dict[str, Any] = {"nibble": Nibble(), "rice": Rice()}
"""By the names of the stages that they are."""
