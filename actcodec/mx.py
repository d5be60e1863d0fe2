"""Conversion of MX tensors between this package and torchao, which stores scales and elements separately."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from actcodec.codecs.compressed import Compressed
from actcodec.codecs.models.mx import ordered
from actcodec.codecs.registry import find
from actcodec.golden.mx.element import FORMATS
from actcodec.golden.mx.path import HEAD, pack, unpack
from actcodec.golden.mx.scale import GROUP
from actcodec.golden.offload.blocks import BLOCK

if TYPE_CHECKING:
    import torch

__all__ = ["from_torchao", "to_torchao"]

TYPES = {"e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2", "e2m1": "float4_e2m1fn_x2"}  # torch's; or bytes


def _check(form: str, shape: Sequence[int]) -> None:
    if form not in FORMATS or form == "int8":
        raise ValueError(f"format is {form!r}, torchao has {', '.join(name for name in FORMATS if name != 'int8')}")
    if not shape or shape[-1] % GROUP:
        raise ValueError(f"shape {tuple(shape)} has rows that are no multiple of {GROUP} values")


def to_torchao(compressed: Compressed) -> "tuple[torch.Tensor, torch.Tensor]":
    """Scales and elements of a :class:`~actcodec.Compressed` of mode ``mx`` in the layout of
    ``torchao.prototype.mx_formats``: a tensor of float8_e8m0fnu, one for each 32 values of a row, and one of
    float8_e4m3fn or float8_e5m2, of bytes with one element each (e3m2, e2m3), or of bytes with two, the first in the
    lower half (e2m1).

    Nothing is decoded. Raises ValueError for another mode, for int8, which torchao does not have, for elements that
    have passed a coder, and for rows that are not a multiple of 32 values.
    """
    import torch

    if compressed.mode != "mx":
        raise ValueError(f"mode is {compressed.mode}, must be mx")
    if compressed.options["coder"] != "none":
        raise ValueError(f"coder is {compressed.options['coder']}, must be none")
    form, shape = compressed.options["format"], compressed.shape
    _check(form, shape)
    data = ordered(find("mx").model.unpack(compressed.seen))
    groups = compressed.length // GROUP
    scales = np.ascontiguousarray(data[:, :HEAD]).reshape(-1)[:groups].reshape(*shape[:-1], -1)
    elements, width = data[:, HEAD:], FORMATS[form].width
    elements = np.ascontiguousarray(unpack(elements, 6) if width == 6 else elements).reshape(-1)
    elements = elements[: compressed.length * (4 if width == 4 else 8) // 8].reshape(*shape[:-1], -1)
    elements = torch.from_numpy(elements)
    return (torch.from_numpy(scales).view(torch.float8_e8m0fnu),
            elements.view(getattr(torch, TYPES[form])) if form in ("e4m3", "e5m2") else elements)


def from_torchao(scales: "torch.Tensor", elements: "torch.Tensor", format: str) -> Compressed:
    """The :class:`~actcodec.Compressed` of torchao's scales and elements, of ``format`` e4m3, e5m2, e3m2, e2m3 or e2m1:
    the reverse of :func:`to_torchao`. Its scales are inline, for one CDU.

    Raises ValueError for another format, for rows that are not a multiple of 32 values, for scales of another shape,
    for tensors that have neither the types of :func:`to_torchao` nor bytes, and for elements of more than 6 bits in
    e3m2 and e2m3.
    """
    import torch

    _check(format, (GROUP,))
    for what, tensor, name in (("scales", scales, "float8_e8m0fnu"), ("elements", elements, TYPES.get(format))):
        if str(tensor.dtype).removeprefix("torch.") not in (name, "uint8"):
            raise ValueError(f"{what} are {tensor.dtype}, must be {' or '.join(filter(None, (name, 'uint8')))}")
    elements, scales = (one.contiguous().view(torch.uint8).cpu().numpy() for one in (elements, scales))
    per_byte = 2 if format == "e2m1" else 1
    shape = (*elements.shape[:-1], elements.shape[-1] * per_byte) if elements.ndim else ()
    _check(format, shape)
    if scales.shape != (*shape[:-1], shape[-1] // GROUP):
        raise ValueError(f"scales have the shape {scales.shape}, elements need {(*shape[:-1], shape[-1] // GROUP)}")
    width, length = FORMATS[format].width, elements.size * per_byte
    if width == 6 and elements.max(initial=0) >= 64:
        raise ValueError(f"elements are up to {elements.max()}, must be less than 64 in {format}")
    blocks = -(-length // BLOCK)
    data = np.zeros((blocks, HEAD + BLOCK * width // 8), np.uint8)
    lacking = blocks * BLOCK - length
    data[:, :HEAD] = np.pad(scales.reshape(-1), (0, lacking // GROUP)).reshape(blocks, -1)
    codes = np.pad(elements.reshape(-1), (0, lacking // per_byte)).reshape(blocks, -1)
    data[:, HEAD:] = pack(codes, 6) if width == 6 else codes
    return Compressed("mx", shape, data.tobytes(), {"format": format})
