"""JPEG-ACT's modes in torch: int32 arithmetic, the same on CPU and CUDA, and bit-equal to ``golden/jpegact/cdu.py``.

What is kept is what is cheap to keep: a byte a value where golden has a payload with a mask. How many bytes the payload
would have is counted, exactly.
"""

from dataclasses import dataclass

import torch

from actcodec import codecs
from actcodec.codecs.compressed import view as seen
from actcodec.golden.offload import blocks
from actcodec.torch import dct, sfpr

__all__ = ["MODES", "Lane", "Packed", "is_here"]

MODES = ("raw", "sfpr", "sfpr-zvc", "jpeg-act", "brc", "zvc", "binarize")
"""The modes that are here. Gist's Binarize is brc without padding."""

SPREAD = 0x0101010101010101  # times a byte: eight copies
PICK = 0x8040201008040201 - (1 << 64)  # of copy i, bit i
GATHER = sum(1 << 56 - 7 * i for i in range(8))  # times eight bytes of 0 or 1: bit i of the top byte is byte i


def is_here(mode, options):
    """Whether a mode with these options has a torch version. Raises ValueError."""
    found = codecs.find(mode)
    return found.variant(found.settings(options)) is found and mode in MODES


@dataclass(frozen=True, eq=False)
class Packed:
    """A compressed tensor."""

    mode: str  # the one that was used
    shape: tuple[int, ...]
    data: object
    payload: int | torch.Tensor  # bytes of the payload that the hardware would send
    side: int  # of scales and the like
    held: int  # bytes that are in fact in memory

    @property
    def nbytes(self):
        """Bytes of payload and side information."""
        return int(self.payload) + self.side


class Lane:
    """One of :data:`MODES` with its options, as ``actcodec.compress`` takes them. Raises ValueError, too for options
    that ask for a variant of the mode, such as another coder."""

    def __init__(self, mode, **options):
        self.mode, self.options = codecs.find(mode), codecs.find(mode).settings(options)
        if not is_here(mode, options):
            raise ValueError(f"mode {self.mode.variant(self.options).name} has no torch version")
        self._tables = {}  # by device

    def encode(self, x):
        """:class:`Packed` of a contiguous float32 tensor of 1 to 5 dimensions."""
        view = blocks.view(seen(x.shape))
        mode = self.mode
        if mode.tiled and not view.tileable:
            mode = codecs.find(mode.fallback)
        if mode.name in ("brc", "binarize"):
            size = 8 * view.blocks(False) if mode.name == "brc" else -(-x.numel() // 8)
            return self._packed(mode, x, packed_bits(x), size)
        if not mode.scaled:
            size = 256 * view.blocks(False) if mode.name == "raw" else (
                8 * view.blocks(False) + 4 * torch.count_nonzero(x.view(torch.int32)))
            return self._packed(mode, x, x.detach(), size, x._version)
        found = sfpr.scales(x, view)
        q = sfpr.quantize(x, view, found, self.options.get("signs", False))
        if mode.tiled:
            q = self._transformed(q, view)
        size = 64 * view.blocks(False) if mode.name == "sfpr" else 8 * view.blocks(mode.tiled) + torch.count_nonzero(q)
        return self._packed(mode, x, q, size, found)

    def decode(self, packed):
        """The float32 tensor of a :class:`Packed`."""
        mode, view = codecs.find(packed.mode), blocks.view(seen(packed.shape))
        q, found = packed.data
        if mode.name in ("brc", "binarize"):
            x = unpacked_bits(q, packed.shape)
        elif not mode.scaled:
            if q._version != found:
                raise RuntimeError(f"a tensor of shape {packed.shape} that mode {mode.name} keeps was changed in place "
                                   f"after it was saved (version {q._version}, not {found})")
            x = q
        else:
            x = sfpr.dequantize(self._restored(q, view) if mode.tiled else q, view, found)
        return x.view(packed.shape)

    @staticmethod
    def _packed(mode, x, q, size, found=None):
        """``found`` are the scales; of a tensor that is kept as it is, its version."""
        channels = len(found.k) if mode.scaled else 0
        side, held = 2 * channels, q.numel() * q.element_size() + 8 * channels
        return Packed(mode.name, tuple(x.shape), (q, found), size, side, held)

    def _table(self, device):
        """Shifts, int32 [8, 8, 1]."""
        if device not in self._tables:
            shifts = torch.from_numpy(self.options["dqt"].shifts.astype("int32"))
            self._tables[device] = shifts.view(8, 8, 1).to(device)
        return self._tables[device]

    def _transformed(self, y, view):
        """Quantized coefficients, int8 [8, 8, blocks], of flat values."""
        y = y.view(view.rows, view.width)
        bottom, right = -view.rows % 8, -view.width % 8
        if bottom or right:
            y = torch.nn.functional.pad(y, (0, right, 0, bottom))
        tiles = y.view(-1, 8, view.tiles_per_row, 8)
        drop = self._table(y.device) + dct.FRACTION_BITS
        half = torch.bitwise_left_shift(torch.ones_like(drop), drop - 1)
        q = torch.empty(8, 8, view.blocks(True), dtype=torch.int8, device=y.device)
        for rows, place in _rows(tiles.shape[0], view, y):
            block = tiles[rows].permute(1, 3, 0, 2).to(torch.int32, memory_format=torch.contiguous_format)
            c = dct.forward(block.view(8, 8, -1))
            q[:, :, place] = c.add_(half).bitwise_right_shift_(drop).clamp_(-128, 127)
        return q

    def _restored(self, q, view):
        """Flat values of what :meth:`_transformed` gave."""
        table = self._table(q.device)
        y = torch.empty(-(-view.rows // 8), 8, view.tiles_per_row, 8, dtype=torch.int8, device=q.device)
        for rows, place in _rows(y.shape[0], view, q):
            x = dct.inverse(q[:, :, place].to(torch.int32, memory_format=torch.contiguous_format) << table)
            y[rows] = x.view(8, 8, -1, view.tiles_per_row).permute(2, 0, 3, 1)
        return y.view(-1, view.padded_width)[:view.rows, :view.width].reshape(-1)


def _rows(count, view, x):
    """Slices of rows of tiles, and of their blocks, of about as many values as are worked on together."""
    step = max(sfpr.part(x) // (64 * view.tiles_per_row), 1)
    for i in range(0, count, step):
        last = min(i + step, count)
        yield slice(i, last), slice(i * view.tiles_per_row, last * view.tiles_per_row)


def packed_bits(x):
    """x > 0 as bytes, least significant bit first."""
    bits = (x > 0).view(-1)
    bits = torch.nn.functional.pad(bits, (0, -bits.numel() % 8))
    return (bits.view(torch.int64) * GATHER).bitwise_right_shift_(56).to(torch.uint8)


def unpacked_bits(q, shape):
    """1.0 where a bit is set, 0.0 elsewhere."""
    bits = (q.to(torch.int64) * SPREAD).bitwise_and_(PICK).view(torch.uint8) != 0
    return bits[:torch.Size(shape).numel()].float()
