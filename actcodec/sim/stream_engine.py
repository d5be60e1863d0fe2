"""The rtl engine of modes without a lane: a simulation of the pair of stream units that the mode declares."""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from actcodec.codecs import find, import_object
from actcodec.codecs.compressed import Compressed
from actcodec.codecs.mode import Mode
from actcodec.sim.rtl_engine import Cycles
from actcodec.sim.streams import SimulationError, payloads, run

__all__ = ["Beats", "SimulationError", "compress", "decompress"]

BLOCK = 64  # values, by which cycles are counted


class Beats(NamedTuple):
    """How a stream carries bytes, as its payload says: ``data`` (or ``bits``), ``count`` of valid items unless all of
    them are, and ``last`` on the tensor's last beat."""

    size: int  # bytes of a beat
    item: int  # bytes of an item
    count: int | None  # first bit
    last: int | None
    words: int  # of 32 bits

    @classmethod
    def of(cls, shape: Any) -> Self:
        """Of a payload's layout. A plain number has neither count nor last."""
        try:
            fields = dict(iter(shape))
        except TypeError:
            return None
        data = fields.get("data") or fields["bits"]
        elements = getattr(data.shape, "length", 1)
        places = [fields[name].offset if name in fields else None for name in ("count", "last")]
        return cls(data.width // 8, data.width // 8 // elements, *places, -(-shape.size // 32))

    def carry(self, content: bytes) -> NDArray[np.uint32]:
        """The beats of a tensor's bytes; at least one."""
        content = np.frombuffer(content, np.uint8)
        beats = max(-(-content.size // self.size), 1)
        data = np.zeros((beats, 4 * self.words), np.uint8)
        data[:, : self.size] = np.pad(content, (0, beats * self.size - content.size)).reshape(beats, self.size)
        words = data.view("<u4").astype(np.uint32)
        counts = np.full(beats, self.size // self.item, np.uint32)
        counts[-1] = (content.size - self.size * (beats - 1)) // self.item
        for place, value in ((self.count, counts), (self.last, np.arange(beats) == beats - 1)):
            if place is not None:
                words[:, place // 32] |= np.asarray(value, np.uint32) << np.uint32(place % 32)
        return words

    def content(self, beats: NDArray[np.uint32]) -> bytes:
        """The reverse of :meth:`carry`. Raises :class:`SimulationError` unless the last beat is the tensor's last."""
        ends = np.arange(len(beats)) == len(beats) - 1
        size = self.size * len(beats)
        if self.count is not None:
            most = (1 << self.last - self.count) - 1
            counts = beats[:, self.count // 32] >> np.uint32(self.count % 32) & np.uint32(most)
            if np.any(counts[:-1] != self.size // self.item):
                raise SimulationError("a simulated unit ends its tensor in the wrong place")
            size += self.item * int(counts[-1]) - self.size
        if np.any((beats[:, self.last // 32] >> np.uint32(self.last % 32) & 1) != ends):
            raise SimulationError("a simulated unit ends its tensor in the wrong place")
        return beats.astype("<u4").view(np.uint8)[:, : self.size].tobytes()[:size]


def compress(x: NDArray[np.float32], mode: Mode, **options: Any) -> tuple[Compressed, Cycles]:
    """As the model's ``compress``, by simulated hardware: (``Compressed``, :class:`Cycles`)."""
    unit = import_object(mode.streams.encoder)
    inputs, outputs = ({name: Beats.of(shape) for name, shape in shapes.items()} for shapes in payloads(unit))
    size = 4 * x.size
    done = run(unit, {"i": inputs["i"].carry(np.ascontiguousarray(x, "<f4").tobytes())},
               {name: size // beats.size + 2 for name, beats in outputs.items()}, **dict(mode.streams.inputs))
    arrays = {name: beats.content(done.beats[name]) for name, beats in outputs.items()}
    try:
        if hasattr(mode.model, "joined"):
            compressed = mode.model.joined(x.shape, arrays)
        else:
            compressed = Compressed(mode.name, x.shape, arrays["o"], options)
        compressed.check()
    except ValueError as error:
        raise SimulationError(f"the simulated {unit.__name__} gives a wrong payload: {error}") from error
    return compressed, _cycles(done, compressed)


def decompress(compressed: Compressed) -> tuple[np.ndarray, Cycles]:
    """As the model's ``decompress``, by simulated hardware: (tensor, :class:`Cycles`)."""
    c, mode = compressed, find(compressed.mode)
    unit = import_object(mode.streams.decoder)
    inputs, outputs = payloads(unit)
    arrays = mode.model.arrays(c) if hasattr(mode.model, "arrays") else {"length": c.length, "i": c.payload}
    carried = {name: Beats.of(shape).carry(arrays[name]) if Beats.of(shape) else np.array([[arrays[name]]], np.uint32)
               for name, shape in inputs.items()}
    beats = Beats.of(outputs["o"])
    done = run(unit, carried, {"o": 4 * c.length // beats.size + 2}, **dict(mode.streams.inputs))
    if done.results.get("error"):
        raise SimulationError(f"the simulated {unit.__name__} reports error {done.results['error']}")
    content = beats.content(done.beats["o"])
    if beats.count is None:
        content = content[: 4 * c.length]  # what fills up the last beat
    return np.frombuffer(content, "<f4").astype(np.float32).reshape(c.shape), _cycles(done, c)


def _cycles(done, compressed):
    return Cycles(done.cycles, -(-compressed.length // BLOCK), done.latency, compressed.payload_bytes)
