"""JPEG-ACT's modes in torch: int32 arithmetic, the same on CPU and CUDA, and bit-equal to golden.

What is kept is close to the payload: a bit per value and the values that are not 0, where golden has a mask or JPEG's
codes; the payload of the nibble and Rice codes, or its sections. The size of the payload is counted, exactly.
"""

from typing import Any, NamedTuple

import torch

from actcodec import codecs
from actcodec.codecs.compressed import view as model_shape
from actcodec.codecs.mode import Mode
from actcodec.golden.jpegact import sfpr as golden_sfpr
from actcodec.golden.offload import blocks
from actcodec.torch import blockcodes, kernels, packing, quantize, runlength, sfpr, tiles
from actcodec.torch.compiled import compiled
from actcodec.torch.packed import Packed
from actcodec.torch.packing import Sparse, capturing, pack_bits, sparse, unpack_values

__all__ = ["Lane"]


class Plan(NamedTuple):
    """What the shape and the type of a tensor decide."""

    mode: Mode
    name: str  # of the mode, in files
    view: Any
    scaled: bool
    tiled: bool
    way: Any  # how it quantizes coefficients: an entry of :data:`~actcodec.torch.quantize.WAYS`
    coder: str  # of blocks, or empty
    size: int  # bytes of the payload of zeros
    side: int


class Lane:
    """One of the modes of a lane with its options, as ``actcodec.compress`` takes them; through ``torch.compile`` if
    ``compile``. With the coders ``nibble`` and ``rice`` the CPU waits for the device, to choose a table. Raises
    ValueError for an illegal option."""

    def __init__(self, mode: str, compile: bool = False, **options: Any) -> None:
        self.mode, self.options = codecs.find(mode), codecs.find(mode).option_values(options)
        self.waits = stage(self.mode.variant(self.options)) in blockcodes.CODERS
        self._plans: dict[Any, Any] = {}
        self._tables: dict[tuple[str, torch.device], torch.Tensor] = {}
        self._function = compiled if compile else lambda function: function

    def reads(self, x: torch.Tensor) -> bool:
        """Whether :meth:`encode` reads a tensor of 16 bits."""
        if self.mode.halves:  # it moves words
            return x.dtype in kernels.HALVES
        module = packing if keeps_bits(self.mode) else sfpr
        return self._function is not compiled and kernels.read(module.__name__, x)

    @property
    def of_bits(self) -> bool:
        """Whether the mode keeps one bit of each value."""
        return keeps_bits(self.mode)

    def encode(self, x: torch.Tensor, low: float = 0, nan: bool = False) -> Packed:
        """:class:`Packed` of a contiguous float32 tensor of 1 to 5 dimensions. A mode of one bit keeps whether values
        are above ``low``, or, with ``nan``, are no numbers."""
        plan = self._plan(x.shape, x.dtype)
        mode, name, shape, size, form = plan.mode, plan.name, tuple(x.shape), plan.size, plan.mode.format
        if keeps_bits(mode):
            data = pack_bits(x, low, nan)
            return Packed(name, shape, (data, None), size, 0, data.nbytes, x.dtype)
        if not plan.scaled:
            if form.kind == "mask":
                words = sparse(x, negative_zero=True)
                size += form.item * words.count
                if not capturing(x) and int(size) < x.nbytes:
                    return Packed(name, shape, (words, None), size, 0, words.nbytes, x.dtype)
            return Packed(name, shape, (x.detach(), None), size, 0, x.nbytes, x.dtype, x._version)
        scales = sfpr.scales(x, plan.view, self._function(sfpr.magnitudes),
                             *(self.options[name] for name in golden_sfpr.CHOICES))
        q = self._function(encode_values)(x, plan.view, scales, self.options.get("signs", False), plan.way[0],
                                          self._table(plan, x.device), bool(plan.coder))
        if plan.coder:
            q, size = blockcodes.smallest(plan.coder, q, (False,) if plan.tiled else (False, True))
        elif form.kind in ("mask", "counted"):
            words = sparse(q)
            size += form.item * words.count if form.kind == "mask" else runlength.size(q)
            q = words
        return Packed(name, shape, (q, scales), size, plan.side, q.nbytes + scales.k.nbytes + scales.r.nbytes, x.dtype)

    def decode(self, packed: Packed) -> torch.Tensor:
        """The tensor of a :class:`Packed`."""
        plan = self._plan(packed.shape, packed.dtype)
        q, scales = packed.data
        if keeps_bits(plan.mode):
            x = unpack_values(q, torch.Size(packed.shape).numel(), packed.dtype)
        elif not plan.scaled:
            if isinstance(q, Sparse):
                x = q.dense(torch.Size(packed.shape).numel())
            elif packed.version not in (None, q._version):
                raise RuntimeError(f"a tensor of shape {packed.shape} that mode {plan.mode.name} keeps was changed in "
                                   f"place after it was saved (version {q._version}, not {packed.version})")
            else:
                x = q
        else:
            if isinstance(q, Sparse):
                q = q.dense(64 * plan.view.blocks(True) if plan.tiled else torch.Size(packed.shape).numel())
                q = q.view(8, 8, -1) if plan.tiled else q
            elif plan.coder:
                q = blockcodes.decode(plan.coder, q)
            x = self._function(decode_values)(q, plan.view, scales, plan.way[1], self._table(plan, q.device),
                                              packed.dtype)
        return x.view(packed.shape)

    def _plan(self, shape, dtype):
        if (shape, dtype) not in self._plans:
            whole = model_shape(shape)
            view = blocks.view(whole)
            mode = codecs.effective(self.mode.variant(self.options), whole, str(dtype).partition(".")[2])
            if mode.format is None:
                raise ValueError(f"mode {mode.name} is in no lane")
            self._plans[shape, dtype] = Plan(
                mode, (codecs.by_code(mode.code)[0] or self.mode).name, view, mode.scaled, mode.tiled,
                way=quantize.WAYS[stage(mode, -2)] if mode.tiled else (None, None, None),
                coder=stage(mode) if stage(mode) in blockcodes.CODERS else "",
                size=mode.format.shortest * view.blocks(mode.tiled),
                side=mode.model.side_bytes(whole, **self.options) if mode.scaled else 0)
        return self._plans[shape, dtype]

    def _table(self, plan, device):
        """The quantizer's table, int32 [..., 8, 8, 1]; None without tiles."""
        if not plan.tiled:
            return None
        if (plan.mode.name, device) not in self._tables:
            settings = plan.mode.model.settings(**{key: value for key, value in self.options.items() if key != "cdus"})
            table = torch.from_numpy(plan.way[2](settings).astype("int32"))
            self._tables[plan.mode.name, device] = table[..., None].to(device)
        return self._tables[plan.mode.name, device]


def stage(mode: Mode, last: int = -1) -> str:
    """The name of a stage, by default the last one; empty if there is none."""
    return mode.path[last].partition(":")[2] if len(mode.path) >= -last else ""


def keeps_bits(mode: Mode) -> bool:
    """Whether it keeps only one bit of each value: whether it is positive."""
    return mode.lossy and not mode.scaled


def encode_values(x: torch.Tensor, view: Any, scales: Any, signs: Any, way: Any, table: Any, lines: bool) -> Any:
    """int8 values, or coefficients if there is a ``table``, which are quantized by ``way``; as a CDU's blocks, uint8
    [blocks, 64], if ``lines``."""
    if table is not None:
        return tiles.encode(x, view, scales, signs, way, table, lines)
    q = sfpr.quantize(x, view, scales, signs)
    return blockcodes.lines(q, view) if lines else q


def decode_values(q: torch.Tensor, view: Any, scales: Any, way: Any, table: Any, dtype: Any) -> Any:
    """The inverse of :func:`encode_values`: flat values."""
    if table is not None:
        return tiles.decode(q, view, scales, way, table, dtype)
    if q.dtype is torch.uint8:
        q = blockcodes.values_of_lines(q, view)
    return sfpr.dequantize(q, view, scales, dtype)
