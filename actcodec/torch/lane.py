"""JPEG-ACT's modes in torch: int32 arithmetic, the same on CPU and CUDA, and bit-equal to golden.

What is kept is about the payload: bits and values that are not 0 where golden has a mask, and in place of JPEG's codes.
How many bytes the payload would have is counted, exactly.
"""

from typing import Any

import torch

from actcodec import codecs
from actcodec.codecs.compressed import view as seen
from actcodec.codecs.mode import Mode
from actcodec.golden.offload import blocks
from actcodec.torch import quantize, runlength, sfpr, tiles
from actcodec.torch.compiled import compiled
from actcodec.torch.packed import Packed
from actcodec.torch.packing import Sparse, capturing, pack_bits, sparse, unpack_bits

__all__ = ["Lane"]


class Lane:
    """One of the modes of a lane with its options, as ``actcodec.compress`` takes them, but for those that make a
    variant of it, such as another coder; through ``torch.compile`` if ``compile``. Raises ValueError."""

    waits = False

    def __init__(self, mode: str, compile: bool = False, **options: Any) -> None:
        self.mode, self.options = codecs.find(mode), codecs.find(mode).option_values(options)
        self._tables: dict[torch.device, torch.Tensor] = {}
        self._function = compiled if compile else lambda function: function

    def encode(self, x: torch.Tensor) -> Packed:
        """:class:`Packed` of a contiguous float32 tensor of 1 to 5 dimensions."""
        view = blocks.view(seen(x.shape))
        mode = self.mode
        if mode.tiled and not view.tileable:
            mode = codecs.find(mode.fallback)
        form = mode.format
        if form is None:
            raise ValueError(f"mode {mode.name} is in no lane")
        size = form.shortest * view.blocks(mode.tiled)
        counted = form.kind == "mask"
        if keeps_bits(mode):
            data = pack_bits(x)
            return Packed(mode.name, tuple(x.shape), (data, None), size, 0, data.nbytes)
        if not mode.scaled:
            if counted:
                size += form.item * torch.count_nonzero(x.view(torch.int32))
                if not capturing(x) and int(size) < x.nbytes:
                    q = sparse(x, negative_zero=True)
                    return Packed(mode.name, tuple(x.shape), (q, None), size, 0, q.nbytes)
            return Packed(mode.name, tuple(x.shape), (x.detach(), x._version), size, 0, x.nbytes)
        found = sfpr.scales(x, view, self._function(sfpr.magnitudes),
                            *(self.options[name] for name in ("scaling", "cap", "clip")))
        way = quantize.shift if mode.shifts else quantize.divide
        q, count = self._function(encode_values)(x, view, found, self.options.get("signs", False), way,
                                         self._table(mode, x.device), counted)
        if counted:
            size += form.item * count
        elif form.kind == "counted":
            size += runlength.size(q)
        if form.kind in ("mask", "counted"):
            q = sparse(q)
        channels = len(found.k)
        return Packed(mode.name, tuple(x.shape), (q, found), size, 2 * channels, q.nbytes + 8 * channels)

    def decode(self, packed: Packed) -> torch.Tensor:
        """The float32 tensor of a :class:`Packed`."""
        mode, view = codecs.find(packed.mode), blocks.view(seen(packed.shape))
        q, found = packed.data
        if keeps_bits(mode):
            x = unpack_bits(q, torch.Size(packed.shape).numel()).float()
        elif not mode.scaled:
            if found is None:
                x = q.dense(torch.Size(packed.shape).numel())
            elif q._version != found:
                raise RuntimeError(f"a tensor of shape {packed.shape} that mode {mode.name} keeps was changed in place "
                                   f"after it was saved (version {q._version}, not {found})")
            else:
                x = q
        else:
            if isinstance(q, Sparse):
                q = q.dense(64 * view.blocks(True) if mode.tiled else torch.Size(packed.shape).numel())
                q = q.view(8, 8, -1) if mode.tiled else q
            way = quantize.unshift if mode.shifts else quantize.multiply
            x = self._function(decode_values)(q, view, found, way, self._table(mode, q.device))
        return x.view(packed.shape)

    def _table(self, mode, device):
        """Shifts or divisors, int32 [8, 8, 1]; None where there are no tiles."""
        if not mode.tiled:
            return None
        if device not in self._tables:
            dqt = self.options["dqt"]
            table = torch.from_numpy((dqt.shifts if mode.shifts else dqt.numbers).astype("int32"))
            self._tables[device] = table.view(8, 8, 1).to(device)
        return self._tables[device]


def keeps_bits(mode: Mode) -> bool:
    """Whether of each value it keeps only that it is positive."""
    return mode.lossy and not mode.scaled


def encode_values(x: torch.Tensor, view: Any, found: Any, signs: Any, way: Any, table: Any, counted: Any) -> Any:
    """int8 values, or coefficients where there is a ``table``, and how many are not 0, if they are ``counted``. ``way``
    is how coefficients are quantized."""
    q = sfpr.quantize(x, view, found, signs)
    if table is not None:
        q = tiles.transform(q, view, way, table)
    return q, torch.count_nonzero(q) if counted else None


def decode_values(q: torch.Tensor, view: Any, found: Any, way: Any, table: Any) -> Any:
    """Flat float32 values of what :func:`encode_values` gave."""
    return sfpr.dequantize(q if table is None else tiles.restore(q, view, way, table), view, found)
