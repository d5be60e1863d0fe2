"""The rtl engine of modes without a lane: a simulation of the pair of stream units that the mode declares."""

from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from amaranth.lib.data import ArrayLayout, Field, Layout

from actcodec.codecs import find, found
from actcodec.codecs.compressed import Compressed
from actcodec.rtl_engine import Cycles
from actcodec.streams import SimulationError, payloads, run

__all__ = ["Beats", "Runs", "SimulationError", "compress", "decompress", "numbers"]

BLOCK = 64  # values, by which cycles are counted


class Beats(NamedTuple):
    """How a stream carries bytes, as its payload says: an array, or ``data`` (or ``bits``), ``count`` of valid items
    unless all of them are, and ``last`` on the tensor's last beat."""

    size: int  # bytes of a beat
    item: int  # bytes of an item
    count: int | None  # first bit
    last: int | None
    words: int  # of 32 bits

    @classmethod
    def of(cls, shape):
        """Of a payload's shape. Numbers carry no bytes: None."""
        try:
            fields = dict(iter(shape))
        except TypeError:
            return None
        fields = {"data": Field(shape, 0)} if 0 in fields else fields
        data = fields.get("data") or fields.get("bits")
        if not data:
            return None
        elements = getattr(data.shape, "length", 1)
        places = [fields[name].offset if name in fields else None for name in ("count", "last")]
        return cls(data.width // 8, data.width // 8 // elements, *places, -(-shape.size // 32))

    def carry(self, content):
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

    def content(self, beats, expected=None):
        """The reverse of :meth:`carry`. Raises :class:`SimulationError` unless the last beat is the tensor's last, and
        beats have as many items as ``expected``: by default all, but for the last one."""
        ends = np.arange(len(beats)) == len(beats) - 1
        counts = np.full(len(beats), self.size // self.item)
        if self.count is not None:
            most = (1 << self.last - self.count) - 1
            found = beats[:, self.count // 32] >> np.uint32(self.count % 32) & np.uint32(most)
            counts[-1] = found[-1]
            counts = counts if expected is None else expected
            if not np.array_equal(found, counts):
                raise SimulationError("a simulated unit ends its tensor in the wrong place")
        if np.any((beats[:, self.last // 32] >> np.uint32(self.last % 32) & 1) != ends):
            raise SimulationError("a simulated unit ends its tensor in the wrong place")
        data = beats.astype("<u4").view(np.uint8)[:, : self.size].reshape(len(beats), -1, self.item)
        return data[np.arange(data.shape[1]) < counts[:, None]].tobytes()


def numbers(shape, values):
    """Beats of a payload that is a number, or of numbers by their names: each an array, or one for all beats, of up to
    32 bits; for an array of them, a list."""
    if not isinstance(values, dict):
        return np.array([[values]], np.uint32)
    layout = Layout.cast(shape)
    placed = []
    for name, field in layout:
        several = isinstance(field.shape, ArrayLayout)
        for k, value in enumerate(values[name] if several else [values[name]]):
            placed.append((field.offset + k * field.width // (field.shape.length if several else 1), value))
    beats = np.zeros((np.broadcast(*(value for _, value in placed)).size, -(-layout.size // 32) + 1), np.uint32)
    for offset, value in placed:
        word, bit = divmod(offset, 32)
        wide = np.asarray(value).astype(np.uint64) << np.uint64(bit)
        beats[:, word] |= wide.astype(np.uint32)
        beats[:, word + 1] |= (wide >> np.uint64(32)).astype(np.uint32)
    return beats[:, :-1]


class Runs:
    """Runs of a unit for the shares of a tensor, which so many units of a device would do side by side."""

    def __init__(self, unit, constants):
        self.unit, self.constants = unit, dict(constants)
        self.inputs, self.outputs = payloads(unit)
        self.done, self.blocks = [], []

    def __call__(self, inputs, output, expected, blocks):
        """One share, of so many ``blocks``: (bytes of a port, what the unit's other ports say in the end).

        ``inputs`` are bytes, or what :func:`numbers` takes, by the names of ports; ``expected`` is the most bytes that
        may come at the port ``output``, or how many items in each of its beats.
        """
        carried = {name: Beats.of(self.inputs[name]).carry(value) if isinstance(value, bytes) else
                   numbers(self.inputs[name], value) for name, value in inputs.items()}
        beats = Beats.of(self.outputs[output])
        counts = None if isinstance(expected, int) else expected
        done = run(self.unit, carried, {output: expected // beats.size + 2 if counts is None else len(counts)},
                   **self.constants)
        self.done.append(done)
        self.blocks.append(blocks)
        return beats.content(done.beats[output], counts), done.results

    def cycles(self, compressed):
        """:class:`Cycles` of all shares side by side."""
        return Cycles(max(done.cycles for done in self.done), max(self.blocks), min(done.latency for done in self.done),
                      compressed.payload_bytes)


def compress(x, mode, **options):
    """As the model's ``compress``, by simulated hardware: (``Compressed``, :class:`Cycles`)."""
    unit = found(mode.streams.encoder)
    if shared := mode.optional("compress_by"):
        runs = Runs(unit, mode.streams.inputs)
        compressed = shared(runs, x, mode, **options)
        with _right(unit):
            compressed.check()
        return compressed, runs.cycles(compressed)
    inputs, outputs = ({name: Beats.of(shape) for name, shape in shapes.items()} for shapes in payloads(unit))
    size = 4 * x.size
    done = run(unit, {"i": inputs["i"].carry(np.ascontiguousarray(x, "<f4").tobytes())},
               {name: size // beats.size + 2 for name, beats in outputs.items()}, **dict(mode.streams.inputs))
    arrays = {name: beats.content(done.beats[name]) for name, beats in outputs.items()}
    with _right(unit):
        if mode.optional("joined"):
            compressed = mode.model.joined(x.shape, mode, arrays)
        else:
            compressed = Compressed(mode.name, x.shape, arrays["o"], options)
        compressed.check()
    return compressed, _cycles(done, compressed)


def decompress(compressed):
    """As the model's ``decompress``, by simulated hardware: (tensor, :class:`Cycles`)."""
    c, mode = compressed, find(compressed.mode)
    unit = found(mode.streams.decoder)
    if shared := mode.optional("decompress_by"):
        runs = Runs(unit, mode.streams.inputs)
        return shared(runs, c), runs.cycles(c)
    inputs, outputs = payloads(unit)
    arrays = mode.model.arrays(c) if mode.optional("arrays") else {"length": c.length, "i": c.payload}
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


@contextmanager
def _right(unit):
    try:
        yield
    except ValueError as error:
        raise SimulationError(f"the simulated {unit.__name__} gives a wrong payload: {error}") from error


def _cycles(done, compressed):
    return Cycles(done.cycles, -(-compressed.length // BLOCK), done.latency, compressed.payload_bytes)
