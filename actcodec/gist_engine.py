"""The rtl engine of Gist's modes: the same tensors and files as the golden one, through simulations of the units."""

import numpy as np
from amaranth.hdl import Cat, Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec import gist
from actcodec.rtl_engine import Cycles
from actcodec.streams import SimulationError, run
from golden.gist.ssdc import ROW
from rtl.common.minifloat import Format
from rtl.common.packer import chunk
from rtl.common.vectors import sectors
from rtl.gist.binarize import Binarize, Unbinarize
from rtl.gist.bitpack import Bitpack, Bitunpack
from rtl.gist.dpr import DprDecode, DprEncode
from rtl.gist.ssdc import SsdcEncode
from rtl.gist.ssdc_decode import SsdcDecode

__all__ = ["SimulationError", "compress", "decompress"]

BEAT = 32  # bytes


class SsdcDprEncode(wiring.Component):
    """SSDC, and DPR behind its values."""

    i: In(stream.Signature(sectors))
    values: Out(stream.Signature(chunk(BEAT)))
    columns: Out(stream.Signature(chunk(BEAT)))
    counts: Out(stream.Signature(chunk(BEAT)))
    format: In(Format)

    def elaborate(self, platform):
        m = Module()
        m.submodules.ssdc = ssdc = SsdcEncode()
        m.submodules.dpr = dpr = DprEncode()
        wiring.connect(m, wiring.flipped(self.i), ssdc.i)
        wiring.connect(m, ssdc.values, dpr.i)
        wiring.connect(m, dpr.o, wiring.flipped(self.values))
        wiring.connect(m, ssdc.columns, wiring.flipped(self.columns))
        wiring.connect(m, ssdc.counts, wiring.flipped(self.counts))
        m.d.comb += dpr.format.eq(self.format)
        return m


class SsdcDprDecode(wiring.Component):
    """DPR in front of SSDC's values: ``nonzero`` is how many there are."""

    length: In(stream.Signature(32))
    nonzero: In(stream.Signature(32))
    values: In(stream.Signature(chunk(BEAT)))
    columns: In(stream.Signature(chunk(BEAT)))
    counts: In(stream.Signature(chunk(BEAT)))
    o: Out(stream.Signature(sectors))
    format: In(Format)
    error: Out(6)

    def elaborate(self, platform):
        m = Module()
        m.submodules.dpr = dpr = DprDecode()
        m.submodules.ssdc = ssdc = SsdcDecode()
        wiring.connect(m, wiring.flipped(self.length), ssdc.length)
        wiring.connect(m, wiring.flipped(self.nonzero), dpr.length)
        wiring.connect(m, wiring.flipped(self.values), dpr.i)
        wiring.connect(m, dpr.o, ssdc.values)
        wiring.connect(m, wiring.flipped(self.columns), ssdc.columns)
        wiring.connect(m, wiring.flipped(self.counts), ssdc.counts)
        wiring.connect(m, ssdc.o, wiring.flipped(self.o))
        m.d.comb += [dpr.format.eq(self.format), self.error.eq(Cat(ssdc.error, dpr.error))]
        return m


def _units(mode):
    """Encoder and decoder of a mode, and what their constant inputs are for it."""
    kind, parameter = gist.parts(mode)
    if kind == "bitpack":
        return Bitpack, Bitunpack, {"width": parameter - 1}
    if not parameter:
        return *((Binarize, Unbinarize) if kind == "binarize" else (SsdcEncode, SsdcDecode)), {}
    constants = {"format": Format[parameter.upper()].value}
    return *((DprEncode, DprDecode) if kind == "dpr" else (SsdcDprEncode, SsdcDprDecode)), constants


# ------------------------------------------------------------------------------------------------------------- streams
def _beats(content, item=1):
    """Bytes as beats of 32: these, how many items of ``item`` bytes they are, and ``last``."""
    content = np.frombuffer(content, np.uint8)
    count, most = max(-(-content.size // BEAT), 1), BEAT // item
    data = np.pad(content, (0, count * BEAT - content.size)).view("<u4").reshape(count, -1)
    control = np.full((count, 1), most, np.uint32)
    control[-1] = (content.size - BEAT * (count - 1)) // item | 1 << most.bit_length()
    return np.hstack([data, control])


def _content(beats, item=1):
    """The reverse of :func:`_beats`. Raises :class:`SimulationError` unless the last beat is the tensor's last."""
    most = BEAT // item
    last, counts = np.divmod(beats[:, -1], 1 << most.bit_length())
    if np.any(counts[:-1] != most) or np.any(last != _is_last(beats)):
        raise SimulationError("a simulated unit ends its tensor in the wrong place")
    return _data(beats)[: BEAT * (len(beats) - 1) + item * int(counts[-1])]


def _data(beats):
    return beats[:, :-1].astype("<u4").tobytes()


def _is_last(beats):
    return np.arange(len(beats)) == len(beats) - 1


def _most(size):
    """Beats that ``size`` bytes can take at an output; one of them may be empty."""
    return size // BEAT + 2


def _number(value):
    """The beat that tells a length."""
    return np.array([[value]], np.uint32)


# ------------------------------------------------------------------------------------------------------------- engine
def compress(x, mode, dqt=None, cdus=1):
    """As ``gist.compress``, by simulated hardware. Returns (``gist.Compressed``, :class:`Cycles`)."""
    gist.check(x, mode, cdus)
    kind, parameter = gist.parts(mode)
    unit, _, constants = _units(mode)
    beats, nonzero = _beats(np.ascontiguousarray(x, "<f4").tobytes(), 4), None
    room = _most(4 * x.size)
    if kind == "ssdc":
        outputs = {"values": room, "columns": _most(x.size), "counts": _most(2 * -(-x.size // ROW))}
        done = run(unit, {"i": beats}, outputs, **constants)
        columns = _content(done.beats["columns"])
        payload = _content(done.beats["values"], 1 if parameter else 4) + columns + _content(done.beats["counts"])
        nonzero = len(columns)
    elif kind == "binarize":
        beats[:, -1] = _is_last(beats)
        done = run(unit, {"i": beats}, {"o": room})
        payload = done.beats["o"].astype(np.uint8).tobytes()
    else:
        done = run(unit, {"i": beats}, {"o": room}, **constants)
        payload = _content(done.beats["o"])
    try:
        compressed = gist.Compressed(mode, x.shape, payload, nonzero)
    except ValueError as error:
        raise SimulationError(f"the simulated {unit.__name__} gives a wrong payload: {error}") from error
    return compressed, _cycles(done, compressed)


def decompress(compressed):
    """As ``gist.decompress``, by simulated hardware. Returns (tensor, :class:`Cycles`)."""
    c, (kind, parameter) = compressed, gist.parts(compressed.mode)
    _, unit, constants = _units(c.mode)
    if kind == "binarize":
        masks = np.frombuffer(c.payload, np.uint8).astype(np.uint32).reshape(-1, 1)
        inputs = {"i": masks | _is_last(masks)[:, None] << 8}
    elif kind == "ssdc":
        arrays = c.arrays()
        inputs = {"length": _number(c.length), "nonzero": _number(c.nonzero),
                  "values": _beats(arrays.values.tobytes(), 1 if parameter else 4),
                  "columns": _beats(arrays.columns.tobytes()), "counts": _beats(arrays.counts.tobytes())}
    else:
        inputs = {"length": _number(c.length), "i": _beats(c.payload)}
    done = run(unit, inputs, {"o": _most(4 * c.length)}, **constants)
    if done.results.get("error"):
        raise SimulationError(f"the simulated {unit.__name__} reports error {done.results['error']}")
    content = _data(done.beats["o"])[: 4 * c.length] if kind == "binarize" else _content(done.beats["o"], 4)
    return np.frombuffer(content, "<f4").astype(np.float32).reshape(c.shape), _cycles(done, c)


def _cycles(done, compressed):
    return Cycles(done.cycles, compressed.blocks, done.latency, compressed.payload_bytes)
