"""A tensor that autograd saves, and the forms in which it is kept for the operations that saved it."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cached_property
from typing import Any

import torch

from actcodec.torch import saved
from actcodec.torch.needs import EXACT, SHAPE, Bit, Need
from actcodec.torch.offload import HostMemory

__all__ = ["Entry", "Form", "serves"]


class Form:
    """One form of a detached tensor: what is ``need``ed of it, or its values, compressed by a ``codec``; without both,
    the tensor as it is. A ``host`` takes the payload."""

    def __init__(self, tensor: torch.Tensor, codec: Any = None, need: Need | None = None,
                 host: HostMemory | None = None) -> None:
        self.codec, self.need = codec, need
        self.uncompressed = codec is None and need is None  # the tensor as it is
        self.users = self.reads = 0
        self.cache: torch.Tensor | None = None
        self.stream: Any = None  # on which the cached values were made, on a GPU
        self.seconds = 0.0
        if self.uncompressed:
            # detached, it does not keep its graph alive, but shares its version
            self.packed, self.version = tensor, tensor._version
        else:
            self._encode(tensor, host)

    @torch.no_grad()
    def _encode(self, tensor, host):
        start = time.perf_counter()
        if self.need is None:
            plain = tensor.is_contiguous() and not tensor.is_neg()
            values = tensor if plain else tensor.resolve_neg().contiguous()
            if not (hasattr(self.codec, "reads") and self.codec.reads(values)):
                values = values.float()
            shape = saved.shape_of(values.shape)
            self.packed = self.codec.encode(values if shape == values.shape else values.view(shape))
        else:
            self.packed = self.need.encode(self.codec, tensor)
        self.moved = host.take(self.packed) if host is not None else None
        if self.moved is not None:  # only figures stay here
            self.packed = replace(self.packed, data=None,
                                  held=self.packed.held if self.moved.device.type == "cpu" else 0)
        self.seconds = time.perf_counter() - start

    @cached_property
    def mode(self) -> str:
        """The mode that compressed it."""
        if self.codec is None:
            return self.packed.mode
        mode = self.codec.mode
        # the mode may have fallen back
        return mode.variant(self.codec.options).name if self.packed.mode == mode.name else self.packed.mode

    @property
    def table(self) -> str:
        """The name of its quantization table, if any."""
        options = {} if self.codec is None else self.codec.options
        return str(options["dqt"]) if "dqt" in options and self.packed.mode == self.codec.mode.name else ""

    @property
    def mask(self) -> str:
        """The mode of the bits that are packed with the values, if any."""
        return getattr(self.codec, "mask", "")

    def exact(self, shape: torch.Size | None = None) -> torch.Tensor:
        """The tensor that is kept as it is. Raises RuntimeError, with the ``shape`` of its user, if it was changed in
        place."""
        if self.packed._version != self.version:
            what = "" if shape is None else f" of shape {tuple(shape)}"
            raise RuntimeError(f"a tensor{what} needed for gradient computation was changed in "
                               f"place: it is at version {self.packed._version}, expected {self.version}")
        return self.packed

    @torch.no_grad()
    def values(self, entry: Entry) -> torch.Tensor:
        """The tensor of an entry as backward passes will see it."""
        if self.uncompressed:
            return self.packed
        packed = self.packed if self.moved is None else self.moved.fetch()
        values = self.need.decode(self.codec, packed) if self.need else self.codec.decode(packed)
        if (values.shape, values.dtype) != (entry.shape, entry.dtype):
            values = values.view(entry.shape).to(entry.dtype)
        if values.stride() != entry.stride and entry.fills:
            values = torch.empty_strided(entry.shape, entry.stride, dtype=entry.dtype,
                                         device=values.device).copy_(values)
        return values


class Entry:
    """A tensor that is kept, once for all operations that need the same of it: ``forms`` by what they need, None for
    its values."""

    def __init__(self, tensor: torch.Tensor, kind: str, row: Any, account: Any) -> None:
        self.kind, self.row, self.account = kind, row, account
        self.shape, self.stride, self.dtype, self.device = tensor.shape, tensor.stride(), tensor.dtype, tensor.device
        self.fills = tensor.is_contiguous() or saved.fills(self.shape, self.stride)
        self.forms: dict[Need | None, Form] = {}
        self.signed = False  # its values' signs have to be exact

    @property
    def compressed(self) -> list[Form]:
        """Forms other than the tensor as it is."""
        return [form for form in self.forms.values() if not form.uncompressed]

    def replace(self, old: Need, new: Need | None) -> None:
        """Operations that need ``old`` use the form for ``new`` from now on."""
        self.forms[new].users += self.forms.pop(old).users

    def restore(self, need: Need | None, shape: torch.Size, stride: tuple[int, ...]) -> torch.Tensor:
        """The tensor as one of its users saw it. Decoded values are cached until the last user has read them. Raises
        RuntimeError if a tensor that is kept as it is was changed in place."""
        form = self.forms.get(need) or self.forms.get(None)
        if form is None or (need is SHAPE and not form.uncompressed):
            return torch.empty_strided(shape, stride, dtype=self.dtype, device=self.device).zero_()
        if form.uncompressed:
            return self.strided(form.exact(shape), shape, stride)
        values, start = form.cache, time.perf_counter()
        if values is None:
            values = form.values(self)
            self.row.decode_seconds += time.perf_counter() - start
            form.stream = torch.cuda.current_stream(values.device) if values.is_cuda else None
        elif form.stream is not None and form.stream != (stream := torch.cuda.current_stream(values.device)):
            stream.wait_stream(form.stream)
            values.record_stream(stream)
        form.reads += 1
        form.cache = values if form.reads % form.users else None
        return self.strided(values, shape, stride)

    def strided(self, values: torch.Tensor, shape: torch.Size, stride: tuple[int, ...]) -> torch.Tensor:
        """Values in the shape and strides of another user of the same memory."""
        same = (values.shape, values.stride()) == (shape, stride) or not self.fills
        return values if same else values.as_strided(shape, stride)


def serves(values: Form, need: Need | None) -> bool:
    """Whether the form of the values also serves a need. A bit must be exact: with ``signs`` no positive value becomes
    0."""
    if not (isinstance(need, Bit) or need is EXACT):
        return need is None
    if values.codec is None or not values.codec.mode.lossy:
        return True
    signs = values.codec.options.get("signs") and not values.codec.mode.tiled
    return isinstance(need, Bit) and need.sign and bool(signs)
