"""DCT and quantization of tensors in 8x8 tiles, bit-equal to ``golden/jpegact/cdu.py`` (JPEG-ACT, sections III-C to
III-E)."""

from typing import Any

import torch

from actcodec.torch import dct, kernels, packing, sfpr
from actcodec.torch import quantize as ways

__all__ = ["decode", "encode", "restore", "transform"]

FORWARD, BACK = zip(*(one[:2] for one in ways.WAYS.values()), strict=True)  # kernels know functions by their index


def encode(x: torch.Tensor, view: Any, scales: Any, signs: bool, quantize: Any, table: Any, lines: bool) -> Any:
    """Quantized coefficients of what SFPR makes of a contiguous float32 tensor, seen as golden's ``view``: int8
    [8, 8, blocks], or, if ``lines``, blocks in the CDU's order of values, column by column: uint8 [blocks, 64].
    ``quantize`` is a function of :mod:`actcodec.torch.quantize`, ``table`` its shifts or divisors, int32 [8, 8, 1]."""
    blocks = view.blocks(True)
    shape, dtype = ((blocks, 64), torch.uint8) if lines else ((8, 8, blocks), torch.int8)
    q = torch.empty(shape, dtype=dtype, device=x.device)
    if native := kernels.of(__name__, x, table):
        native.encode(x, *_planes(view), scales.k, signs, FORWARD.index(quantize), lines, table, q)
    else:
        transform(sfpr.quantize(x, view, scales, signs), view, quantize, table, _places(q))
    return q


def decode(q: torch.Tensor, view: Any, scales: Any, dequantize: Any, table: Any, dtype: torch.dtype) -> Any:
    """The inverse of :func:`encode`: flat values."""
    lines = q.dtype is torch.uint8
    if native := kernels.of(__name__, q, table, dtype=dtype):
        x = torch.empty(view.rows * view.width, dtype=dtype, device=q.device)
        native.decode(q, *_planes(view), scales.r, BACK.index(dequantize), lines, table, x)
        return x
    return sfpr.dequantize(restore(_places(q), view, dequantize, table), view, scales, dtype)


def _places(q):
    """A view of coefficients as int8 [8, 8, blocks]."""
    return q.view(torch.int8).view(-1, 8, 8).permute(2, 1, 0) if q.dtype is torch.uint8 else q.view(8, 8, -1)


def _planes(view):
    """Rows and width of a tensor, and the rows of a plane that has a scale, in so many channels."""
    shape = sfpr.planes(view)
    return view.rows, view.width, shape.length // view.width, shape.channels


def transform(y: torch.Tensor, view: Any, quantize: Any, table: Any, q: torch.Tensor) -> None:
    """Computes quantized coefficients, int8 [8, 8, blocks], of flat int8 values, by operations."""
    y = y.view(view.rows, view.width)
    bottom, right = -view.rows % 8, -view.width % 8
    if bottom or right:
        y = torch.nn.functional.pad(y, (0, right, 0, bottom))
    tiles = y.view(-1, 8, view.tiles_per_row, 8)
    for rows, place in _rows(tiles.shape[0], view, y):
        block = tiles[rows].permute(1, 3, 0, 2).to(torch.int32, memory_format=torch.contiguous_format)
        q[:, :, place] = quantize(dct.forward(block.view(8, 8, -1)), table)


def restore(q: torch.Tensor, view: Any, dequantize: Any, table: Any) -> Any:
    """The inverse of :func:`transform`: flat int8 values."""
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
