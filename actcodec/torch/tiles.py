"""DCT and quantization of tensors in 8x8 tiles, bit-equal to ``golden/jpegact/cdu.py`` (JPEG-ACT, sections III-C to
III-E)."""

from typing import Any

import torch

from actcodec.torch import dct, kernels, packing, sfpr
from actcodec.torch import quantize as ways

__all__ = ["decode", "encode", "restore", "transform"]

FORWARD, BACK = zip(*(one[:2] for one in ways.WAYS.values()), strict=True)  # kernels know functions by their index


def encode(x: torch.Tensor, view: Any, scales: Any, signs: bool, quantize: Any, table: Any) -> Any:
    """:func:`transform` of what SFPR makes of a contiguous float32 tensor."""
    if native := kernels.fused(__name__, x, table):
        q = torch.empty(8, 8, view.blocks(True), dtype=torch.int8, device=x.device)
        native.encode(x, *_planes(view), scales.k, signs, FORWARD.index(quantize), table, q)
        return q
    return transform(sfpr.quantize(x, view, scales, signs), view, quantize, table)


def decode(q: torch.Tensor, view: Any, scales: Any, dequantize: Any, table: Any, dtype: torch.dtype) -> Any:
    """The inverse of :func:`encode`: flat values."""
    if native := kernels.fused(__name__, q, table):
        x = torch.empty(view.rows * view.width, dtype=dtype, device=q.device)
        native.decode(q, *_planes(view), scales.r, BACK.index(dequantize), table, x)
        return x
    return sfpr.dequantize(restore(q, view, dequantize, table), view, scales, dtype)


def _planes(view):
    """Rows and width of a tensor, and the rows of a plane that has a scale, in so many channels."""
    shape = sfpr.planes(view)
    return view.rows, view.width, shape.length // view.width, shape.channels


def transform(y: torch.Tensor, view: Any, quantize: Any, table: Any) -> Any:
    """Quantized coefficients, int8 [8, 8, blocks], of flat int8 values seen as golden's ``view``; ``quantize`` is a
    function of :mod:`actcodec.torch.quantize`, ``table`` its shifts or divisors, int32 [8, 8, 1]."""
    if native := kernels.of(__name__, y, table):
        q = torch.empty(8, 8, view.blocks(True), dtype=torch.int8, device=y.device)
        native.transform(y, view.rows, view.width, FORWARD.index(quantize), table, q)
        return q
    y = y.view(view.rows, view.width)
    bottom, right = -view.rows % 8, -view.width % 8
    if bottom or right:
        y = torch.nn.functional.pad(y, (0, right, 0, bottom))
    tiles = y.view(-1, 8, view.tiles_per_row, 8)
    q = torch.empty(8, 8, view.blocks(True), dtype=torch.int8, device=y.device)
    for rows, place in _rows(tiles.shape[0], view, y):
        block = tiles[rows].permute(1, 3, 0, 2).to(torch.int32, memory_format=torch.contiguous_format)
        q[:, :, place] = quantize(dct.forward(block.view(8, 8, -1)), table)
    return q


def restore(q: torch.Tensor, view: Any, dequantize: Any, table: Any) -> Any:
    """The inverse of :func:`transform`: flat int8 values."""
    if native := kernels.of(__name__, q, table):
        y = torch.empty(view.rows * view.width, dtype=torch.int8, device=q.device)
        native.restore(q, view.rows, view.width, BACK.index(dequantize), table, y)
        return y
    y = torch.empty(-(-view.rows // 8), 8, view.tiles_per_row, 8, dtype=torch.int8, device=q.device)
    for rows, place in _rows(y.shape[0], view, q):
        c = dequantize(q[:, :, place].to(torch.int32, memory_format=torch.contiguous_format), table)
        x = dct.inverse(c)
        y[rows] = x.view(8, 8, -1, view.tiles_per_row).permute(2, 0, 3, 1)
    return y.view(-1, view.padded_width)[:view.rows, :view.width].reshape(-1)


def _rows(count, view, x):
    """Slices of rows of tiles, and of their blocks, of about :func:`~actcodec.torch.packing.part_of` values."""
    step = max(packing.part_of(x) // (64 * view.tiles_per_row), 1)
    for i in range(0, count, step):
        last = min(i + step, count)
        yield slice(i, last), slice(i * view.tiles_per_row, last * view.tiles_per_row)
