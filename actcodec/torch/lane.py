"""JPEG-ACT's modes in torch, and Gist's Binarize, which is brc without padding: int32 arithmetic, the same on CPU and
CUDA, and bit-equal to golden.

What is kept is what is cheap to keep: a byte a value where golden has a payload with a mask, or JPEG's codes. How many
bytes the payload would have is counted, exactly.
"""

import torch

from actcodec import codecs
from actcodec.codecs.compressed import view as seen
from actcodec.golden.offload import blocks
from actcodec.torch import quantize, runlength, sfpr, tiles
from actcodec.torch.compiled import compiled
from actcodec.torch.packed import Packed

__all__ = ["Lane"]

SPREAD = 0x0101010101010101  # times a byte: eight copies
PICK = 0x8040201008040201 - (1 << 64)  # of copy i, bit i
GATHER = sum(1 << 56 - 7 * i for i in range(8))  # times eight bytes of 0 or 1: bit i of the top byte is byte i


class Lane:
    """One of the modes of a lane with its options, as ``actcodec.compress`` takes them, but for those that make a
    variant of it, such as another coder; through ``torch.compile`` if ``compile``. Raises ValueError."""

    waits = False

    def __init__(self, mode, compile=False, **options):
        self.mode, self.options = codecs.find(mode), codecs.find(mode).option_values(options)
        self._tables = {}  # by device
        self._function = compiled if compile else lambda function: function

    def encode(self, x):
        """:class:`Packed` of a contiguous float32 tensor of 1 to 5 dimensions."""
        view = blocks.view(seen(x.shape))
        mode = self.mode
        if mode.tiled and not view.tileable:
            mode = codecs.find(mode.fallback)
        form = mode.format
        size = form.shortest * view.blocks(mode.tiled) if form else -(-x.numel() // 8)
        counted = form is not None and form.kind == "mask"
        if keeps_bits(mode):
            return self._packed(mode, x, packed_bits(x), size)
        if not mode.scaled:
            if counted:
                size += form.item * torch.count_nonzero(x.view(torch.int32))
            return self._packed(mode, x, x.detach(), size, x._version)
        found = sfpr.scales(x, view, self._function(sfpr.magnitudes))
        way = quantize.shift if mode.shifts else quantize.divide
        q, count = self._function(coded)(x, view, found, self.options.get("signs", False), way,
                                         self._table(mode, x.device), counted)
        if counted:
            size += form.item * count
        elif form.kind == "counted":
            size += runlength.size(q)
        return self._packed(mode, x, q, size, found)

    def decode(self, packed):
        """The float32 tensor of a :class:`Packed`."""
        mode, view = codecs.find(packed.mode), blocks.view(seen(packed.shape))
        q, found = packed.data
        if keeps_bits(mode):
            x = unpacked_bits(q, packed.shape)
        elif not mode.scaled:
            if q._version != found:
                raise RuntimeError(f"a tensor of shape {packed.shape} that mode {mode.name} keeps was changed in place "
                                   f"after it was saved (version {q._version}, not {found})")
            x = q
        else:
            way = quantize.unshift if mode.shifts else quantize.multiply
            x = self._function(decoded)(q, view, found, way, self._table(mode, q.device))
        return x.view(packed.shape)

    @staticmethod
    def _packed(mode, x, q, size, found=None):
        """``found`` are the scales; of a tensor that is kept as it is, its version."""
        channels = len(found.k) if mode.scaled else 0
        side, held = 2 * channels, q.numel() * q.element_size() + 8 * channels
        return Packed(mode.name, tuple(x.shape), (q, found), size, side, held)

    def _table(self, mode, device):
        """Shifts or divisors, int32 [8, 8, 1]; None where there are no tiles."""
        if not mode.tiled:
            return None
        if device not in self._tables:
            dqt = self.options["dqt"]
            table = torch.from_numpy((dqt.shifts if mode.shifts else dqt.numbers).astype("int32"))
            self._tables[device] = table.view(8, 8, 1).to(device)
        return self._tables[device]


def keeps_bits(mode):
    """Whether of each value it keeps only that it is positive."""
    return mode.lossy and not mode.scaled


def coded(x, view, found, signs, way, table, counted):
    """int8 values, or coefficients where there is a ``table``, and how many are not 0, if they are ``counted``. ``way``
    is how coefficients are quantized."""
    q = sfpr.quantize(x, view, found, signs)
    if table is not None:
        q = tiles.transformed(q, view, way, table)
    return q, torch.count_nonzero(q) if counted else None


def decoded(q, view, found, way, table):
    """Flat float32 values of what :func:`coded` gave."""
    return sfpr.dequantize(q if table is None else tiles.restored(q, view, way, table), view, found)


def packed_bits(x):
    """x > 0 as bytes, least significant bit first."""
    bits = (x > 0).view(-1)
    bits = torch.nn.functional.pad(bits, (0, -bits.numel() % 8))
    return (bits.view(torch.int64) * GATHER).bitwise_right_shift_(56).to(torch.uint8)


def unpacked_bits(q, shape):
    """1.0 where a bit is set, 0.0 elsewhere."""
    bits = (q.to(torch.int64) * SPREAD).bitwise_and_(PICK).view(torch.uint8) != 0
    return bits[:torch.Size(shape).numel()].float()
