"""Bytes by the events of PyTorch's own allocator, which counts what nobody here does."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any, NamedTuple

from torch.profiler import ProfilerActivity, profile

__all__ = ["Memory", "measured"]


class Memory(NamedTuple):
    """Of a call: what it gave; bytes that are there after it and were not before, and most of them at a time."""

    result: Any
    left: int
    peak: int


def measured(function: Callable[[], Any]) -> Memory:
    """Calls a function of the CPU."""
    gc.collect()  # else what was there before may go meanwhile
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        result = function()
    events = [event for event in profiler.profiler.kineto_results.events() if event.name() == "[memory]"]
    now = peak = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        now += event.nbytes()
        peak = max(peak, now)
    return Memory(result, now, peak)
