"""A simulated accelerator whose environment is polite: nothing limits but what it is asked to."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from actcodec.sim.accelerator import Accelerator
from actcodec.sim.environment import EITHER, KINDS, ROTATION, Environment, MemoryBehaviour

__all__ = ["Simulator", "aligned"]

PACKET, BEAT = 128, 32  # bytes of a beat of the streams, and of memory


def aligned(size: int) -> int:
    """Bytes in whole beats of memory."""
    return -(-size // BEAT) * BEAT


class Simulator(Environment):
    """A simulated accelerator with ``cdus`` CDUs that have ``modes``, a memory, and a DMA engine at its streams.

    Memory has ``size`` bytes from address 0 on, rounded up to beats. It answers a burst after ``latency`` cycles, with
    a beat a cycle at each port, or, ``shared``, at all of them together, in the order in which the bursts of all ports
    came. The streams carry up to ``rate`` bytes a cycle in each direction. ``hardware`` are other parameters of
    :class:`~actcodec.sim.accelerator.Accelerator`.
    """

    def __init__(self, modes: Iterable[str], cdus: int, size: int, latency: int = 20, rate: float = math.inf,
                 shared: bool = False, **hardware: Any) -> None:
        super().__init__(Accelerator(cdus, tuple(modes), **hardware), 0, aligned(size), owned=False)
        self.begin(MemoryBehaviour(KINDS.index("shared" if shared else "independent"), fair=ROTATION, latency=latency,
                                   early=0 if shared else 1 << 20), rate=rate)
        self.phase(EITHER)

    def send_payload(self, payload: bytes) -> None:
        """Has the DMA engine send ``payload`` as a frame."""
        beats = max(-(-len(payload) // PACKET), 1)
        data, keep = np.zeros((2, beats, PACKET), np.uint8)
        data.reshape(-1)[: len(payload)] = np.frombuffer(payload, np.uint8)
        keep.reshape(-1)[: len(payload)] = 1
        self.send(data, keep, np.arange(beats) == beats - 1)
