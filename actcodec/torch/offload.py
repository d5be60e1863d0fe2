"""Moves payloads to the memory of the host, and back ahead of their use (the purpose of JPEG-ACT, whose accelerator is
on this path)."""

from __future__ import annotations

import weakref
from dataclasses import replace
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map_only

from actcodec.torch.packed import Packed

__all__ = ["HostMemory", "Moved"]

AHEAD = 2  # payloads in transit back while another one is decoded


class HostMemory:
    """Takes payloads one after another, and prefetches them in reverse order. From a GPU they go to pinned memory, on a
    stream of their own; tensors of the CPU are copied."""

    def __init__(self) -> None:
        self._last: weakref.ref[Moved] | None = None
        self._streams: dict[torch.device, Any] = {}

    def take(self, packed: Packed) -> Moved:
        """Moves a payload to the host."""
        moved = Moved(self, packed, self._last)
        self._last = weakref.ref(moved)
        return moved

    def stream(self, device: torch.device) -> Any:
        """The stream of copies from and to a device."""
        if device not in self._streams:
            self._streams[device] = torch.cuda.Stream(device)
        return self._streams[device]


class Moved:
    """A payload in the memory of the host."""

    def __init__(self, host: HostMemory, packed: Packed, before: weakref.ref[Moved] | None) -> None:
        self._host, self._before = host, before
        self._back: Any = None
        self._arrived: Any = None  # event of the last copy
        tensors = [one for one in tree_leaves(packed.data) if isinstance(one, torch.Tensor)]
        self.device = tensors[0].device if tensors else torch.device("cpu")
        # a copy does not change
        self._packed = replace(packed, data=self._copied(packed.data, torch.device("cpu")), version=None)

    def _copied(self, data: Any, device: torch.device) -> Any:
        """A copy of the data, with its tensors on another device."""
        if self.device.type == "cpu":
            return tree_map_only(torch.Tensor, torch.clone, data)
        stream = self._host.stream(self.device)
        stream.wait_stream(torch.cuda.current_stream(self.device))

        def copied(tensor: torch.Tensor) -> torch.Tensor:
            out = torch.empty(tensor.shape, dtype=tensor.dtype, device=device, pin_memory=device.type == "cpu")
            tensor.record_stream(stream) if tensor.is_cuda else None
            return out.copy_(tensor, non_blocking=True)

        with torch.cuda.stream(stream):
            data = tree_map_only(torch.Tensor, copied, data)
            self._arrived = stream.record_event()
        return data

    def begin(self) -> None:
        """Starts to copy the payload back, unless this has begun."""
        if self._back is None:
            data = self._packed.data
            self._back = data if self.device.type == "cpu" else self._copied(data, self.device)

    def fetch(self) -> Packed:
        """The payload, on its device. Those that were moved just before it start to come back."""
        self.begin()
        data, self._back = self._back, None
        before = self._before
        for _ in range(AHEAD):
            one = before() if before is not None else None
            if one is None:
                break
            one.begin()
            before = one._before
        if self.device.type != "cpu":
            current = torch.cuda.current_stream(self.device)
            current.wait_event(self._arrived)
            tree_map_only(torch.Tensor, lambda tensor: tensor.record_stream(current), data)
        return replace(self._packed, data=data)
