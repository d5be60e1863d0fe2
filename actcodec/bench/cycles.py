"""What the simulated accelerator reaches with one tensor, or a network's, in exact cycles.

:func:`measure` has cycles a block when nothing but the accelerator limits; :func:`share` what lanes make of one port to
memory for all of them; :func:`offload` the effective offload rate with a DMA engine of 12.8 GB/s, as in section VI-E,
Figure 21 and Table V of the JPEG-ACT paper; :func:`streamed` the rate of lanes that make streams, COMET's. Every
payload and tensor is compared with the golden model's on the way.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from actcodec import codecs
from actcodec.demo import sample
from actcodec.golden.jpegact import rle, sfpr
from actcodec.rtl.offload.wire.block_format import MASK, VALUES

__all__ = ["AT_CACHE", "CACHE", "CHANNELS", "CLOCK", "DENSE", "ERRORS", "FIXED", "LATENCY", "ONE_PORT", "PAPER", "PCIE",
           "POLICIES", "RATIOS", "SECTOR", "SFPR", "SHOWN", "SYMBOLS", "Coding", "Offload", "Rate", "Shared",
           "Streamed", "choice", "code", "lossy_streams", "masked", "measure", "measured", "offload",
           "offload_by_name", "options_of", "real", "share", "streamed"]

CLOCK = 1.455  # GHz
PCIE = 12.8  # GB/s
JPEG_BASE = codecs.METHODS["JPEG-BASE"][0]
LATENCY = 300  # of memory, cycles
SECTOR = 32  # bytes
FORMATS = ("float32", "int8")  # of an accelerator with SFPR at the cache
GROUPS = 250  # of each CDU, at least
# What networks have: channels of maps of that width.
CHANNELS = {8: 256, 16: 128, 24: 96, 28: 128, 32: 64, 56: 64, 112: 64, 224: 64}
PAPER = {"cDMA+": (1.3, 15.6), "SFPR": (4.0, 48.0), "JPEG-BASE": (5.8, 69.6), "JPEG-ACT": (8.5, 108.8)}
"""Table V, 4 CDUs: compression ratio and GB/s. The last is the ratio times 12.8 GB/s, the others times 12.0."""
RATIOS = (2, 4, 6, 8, 12, 16)  # of synthetic tensors
FIXED = (2, 4, 8, 12)  # those of Figure 21
SHOWN = 4  # for the tables, and as in Table V
SFPR = 4  # ratio of SFPR alone: of codes, no tensor has less
CACHE, ONE_PORT = ", SFPR at the cache", ", one port"  # behind a ratio
AT_CACHE = tuple(f"{ratio}x{cache}{port}" for port in ("", ONE_PORT) for cache in ("", CACHE) for ratio in FIXED
                 if ratio >= SFPR and (cache or port))
"""Of Figure 21 the curves for SFPR at the cache, with which int8 pass the accelerator's ports; and, with and without,
those of an accelerator whose CDUs have one port to memory for all of them."""
SYMBOLS = {"jpeg60": 21.4, "optH-div": 27.5, "jpeg80": 29.3, "optL-div": 47.2}
"""Tables for division, and how many of JPEG's codes a block of the sample's dense tensors was expected to have on
average when the coders, of a code a cycle, were planned."""
ERRORS = (0.0635, 0.1737)  # relative L2 errors that COMET is asked for
DENSE = ", dense"  # behind the name of a policy: of the sample, only what is no ReLU
BATCH = 16  # images of the real tensors, repeated
SYNTHETIC = (8, 64, 32, 32)  # shape of the tensors of a chosen ratio


@dataclass(frozen=True)
class Rate:
    """A tensor when memory and the DMA engine do not limit."""

    mode: str
    decompress: bool
    width: int
    cdus: int
    shape: tuple
    blocks: int  # of the CDU that has most of them
    cycles: int  # the accelerator's counter: from its start to its end
    steady: float  # cycles a block of that CDU between its first and its last beat at the side of memory

    @property
    def total(self) -> float:
        """Cycles a block and CDU with everything: start, latency of memory, end."""
        return self.cycles / self.blocks


@dataclass(frozen=True)
class Shared:
    """A tensor when all lanes' ports lead to one slave, which moves a beat a cycle in each direction."""

    mode: str
    decompress: bool
    width: int
    cdus: int
    beats: int  # of the tensor and its scales
    used: float  # share of the cycles, from the first to the last of these beats, in which one moves


@dataclass(frozen=True)
class Coding:
    """Dense tensors by JPEG's codes, when nothing but one CDU and its coders limit."""

    dqt: str
    coders: int
    decompress: bool
    symbols: float  # codes of a block, on average
    steady: float  # cycles a block, as those of :class:`Rate`, of all tensors together


@dataclass(frozen=True)
class Offload:
    """Tensors one after the other through a DMA engine of :data:`PCIE`."""

    name: str
    decompress: bool
    cdus: int
    ratio: float
    cycles: int
    rate: float  # GB/s of uncompressed data


@dataclass(frozen=True)
class Streamed:
    """A real tensor through lanes that make streams, when memory and the DMA engine do not limit, both ways."""

    mode: str
    tensor: str
    error: float  # relative L2 error that was asked for
    cdus: int
    ratio: float
    blocks: int  # of the CDU that has most of them
    cycles: tuple  # to compress and to decompress: the accelerator's counter, from its start to its end

    @property
    def rates(self) -> tuple[float, ...]:
        """Sectors a cycle and CDU."""
        return tuple(8 * self.blocks / cycles for cycles in self.cycles)


def measured() -> list[str]:
    """The modes whose rates are measured: those of a lane that no tensor slows down."""
    return [name for name, mode in codecs.MODES.items() if mode.format and mode.steady]


def lossy_streams() -> list[str]:
    """The modes of lanes without blocks that can be asked for an error."""
    return [name for name, mode in codecs.MODES.items() if mode.format and mode.format.endless and mode.option("l2")]


def masked(ratio: int) -> tuple[str, float]:
    """The mode that compresses any tensor to 1/ratio if enough of it is zero, and which share of it is not zero then:
    of those with a mask the one with the shortest items, unless these are too short."""
    masks = [(mode.format.item, mode.name) for mode in codecs.MODES.values()
             if mode.format and mode.format.kind == "mask" and not mode.tiled]
    for item, name in sorted(masks):
        share = (4 * VALUES / ratio - MASK) / (VALUES * item)
        if share <= 1:
            return name, share
    raise ValueError(f"no mode makes tensors {ratio} times smaller")


def shape(width: int, cdus: int) -> tuple[int, int, int, int]:
    """A tensor that is as long as it has to be; [N, C, H, W]."""
    planes = math.ceil(4 * GROUPS * cdus / (width / 8 * math.ceil(width / 8)))
    channels = min(planes, CHANNELS.get(width, 64))
    return math.ceil(planes / channels), channels, width, width


def sparse(size: Sequence[int], zeros: float, seed: int = 0) -> NDArray[np.float32]:
    """A tensor of which that share is zero."""
    rng = np.random.default_rng(seed)
    x = np.abs(rng.normal(size=size)).astype(np.float32) + np.float32(0.1)
    x[rng.random(size) < zeros] = 0
    return x


def options_of(name: str, dqt: str | None, cdus: int) -> tuple[Any, dict[str, Any]]:
    """The registry's mode for a lane's, and its options, with a DQT for a mode that takes one."""
    variant = codecs.lane_modes(name)[0]
    mode, chosen = codecs.by_code(variant.code)  # a fallback may be the hardware's alone, with a code that no file has
    if mode is None:
        raise ValueError(f"mode {name} has no code of a file")
    tables = {"dqt": dqt} if dqt and any(option.name == "dqt" for option in mode.options) else {}
    return mode, mode.option_values(chosen | tables | {"cdus": cdus})


def simulate(x: np.ndarray, name: str, dqt: str | None, cdus: int, decompress: bool,
             **options: Any) -> tuple[dict[str, int], dict[str, Any], Any]:
    """One tensor one way in a lane's mode: (counters, traffic, golden's compressed tensor). Raises SimulationError if a
    bit differs."""
    from actcodec.sim.rtl_engine import SimulatedHost, SimulationError

    mode, chosen = options_of(name, dqt, cdus)
    form = "int8" if x.dtype == np.int8 else "float32"
    if form != "float32":
        chosen, options = chosen | {"dtype": form}, {"formats": FORMATS, **options}
    whole = mode.model.compress(x, **chosen)
    stored = codecs.find(whole.mode).model.unpack(whole)
    lane = codecs.host_mode(stored.mode).name
    host = SimulatedHost(x.shape, lane, cdus, form, **options)
    if decompress:
        result, tensor = host.decompress(stored)
        equal = tensor.tobytes() == codecs.find(whole.mode).model.decompress(whole).tobytes()
    else:
        _, words, settings = mode.model.plan(x, **chosen)
        result, payload = host.compress(x, lane, signs=chosen.get("signs", False), scales=words,
                                        settings=settings)
        equal = payload == stored.payload
    if not equal:
        raise SimulationError(f"{name} {x.shape}, {cdus} CDUs: the hardware differs from the golden model")
    return result.counters, host.simulator.traffic(), stored


def measure(mode: str, decompress: bool, width: int, cdus: int, x: np.ndarray | None = None) -> Rate:
    """:class:`Rate` of ``x``, or of noise that is long enough."""
    x = sparse(shape(width, cdus), 0.5) if x is None else x
    counters, traffic, compressed = simulate(x, mode, "optL", cdus, decompress, latency=LATENCY)
    total = compressed.blocks
    most = int(np.minimum(4, total - np.arange(0, total, 4 * cdus)).sum())  # the first CDU's
    passed = traffic["written" if decompress else "read"][0]
    steady = (passed.last - passed.first + 1) / most
    return Rate(mode, decompress, width, cdus, x.shape, most, counters["cycles"], steady)


def code(dqt: str, coders: int, decompress: bool) -> Coding:
    """:class:`Coding` of the sample's dense tensors."""
    blocks = cycles = symbols = 0
    for x in (x for name, x in sample().items() if not name.startswith("ReLU")):
        _, traffic, compressed = simulate(x, JPEG_BASE, dqt, 1, decompress, latency=LATENCY, coders=coders)
        passed = traffic["written" if decompress else "read"][0]
        blocks, cycles = blocks + compressed.blocks, cycles + passed.last - passed.first + 1
        symbols += int(rle.symbols(rle.decode(compressed.payload, compressed.blocks)).sum())
    return Coding(dqt, coders, decompress, symbols / blocks, cycles / blocks)


def share(mode: str, decompress: bool, width: int, cdus: int) -> Shared:
    """:class:`Shared` of noise."""
    _, traffic, _ = simulate(sparse(shape(width, cdus), 0.5), mode, "optL", cdus, decompress, latency=LATENCY,
                             shared=True)
    lanes = [lane for lane in traffic["written" if decompress else "read"] if lane.transfers]
    beats = sum(lane.transfers for lane in lanes)
    span = max(lane.last for lane in lanes) - min(lane.first for lane in lanes) + 1
    return Shared(mode, decompress, width, cdus, beats, beats / span)


def streamed(mode: str, name: str, error: float, cdus: int) -> Streamed:
    """:class:`Streamed` of a tensor of the sample."""
    from actcodec import container, engines
    from actcodec.sim.toolchain import SimulationError

    x = batch(sample()[name])
    golden, _ = engines.compress("golden", x, mode, l2=error, cdus=cdus)
    simulated, there = engines.compress("rtl", x, mode, l2=error, cdus=cdus)
    after, back = engines.decompress("rtl", golden)
    if (container.pack(simulated) != container.pack(golden)
            or after.tobytes() != engines.decompress("golden", golden)[0].tobytes()):
        raise SimulationError(f"{mode} {name}, {cdus} CDUs: the hardware differs from the golden model")
    return Streamed(mode, name, error, cdus, golden.ratio, there.blocks, (there.cycles, back.cycles))


def offload(name: str, tensors: Sequence[tuple[np.ndarray, str, str]], cdus: int, decompress: bool) -> Offload:
    """:class:`Offload` of [(tensor, mode, dqt)]; int8 are codes of float32."""
    before = after = cycles = 0
    options = {"shared": True} if name.endswith(ONE_PORT) else {}
    for x, mode, dqt in tensors:
        counters, _, compressed = simulate(x, mode, dqt, cdus, decompress, latency=LATENCY, rate=PCIE / CLOCK,
                                           **options)
        before, after, cycles = before + 4 * x.size, after + compressed.payload_bytes, cycles + counters["cycles"]
    return Offload(name, decompress, cdus, before / after, cycles, before / cycles * CLOCK)


def batch(x: np.ndarray, images: int | None = None) -> np.ndarray:
    """A tensor of the sample, repeated to so many images, or :data:`BATCH`."""
    return np.tile(x, ((images or BATCH) // len(x), 1, 1, 1))


def real(policy: str, images: int | None = None) -> list[tuple[np.ndarray, str, str]]:
    """The sample's tensors, as [(tensor, mode, dqt)]: the method's choice of modes (Table II). Behind its first word, a
    ``policy`` has the name of a DQT, and maybe that of a coder. With DENSE at its end, ReLUs' are left out."""
    tensors, (dense, relus, dqt) = [], choice(policy)
    for name, x in sample().items():
        relu = name.startswith("ReLU")
        if not (relu and policy.endswith(DENSE)):
            tensors.append((batch(x, images), relus if relu else dense, dqt))
    return tensors


def choice(policy: str) -> tuple[str, ...]:
    """The modes of dense tensors and of ReLUs', and the DQT."""
    method, *more = policy.removesuffix(DENSE).split()
    dqt, coder = (*more, None, None)[:2]
    options = {"coder": coder} if coder else {}
    return *(codecs.find(name).variant(options).name for name in codecs.METHODS[method]), dqt or "optL"


def fixed(name: str) -> list[tuple[np.ndarray, str, str]]:
    """A synthetic tensor that is compressed by a ratio, with which the ``name`` begins, as [(tensor, mode, dqt)]; with
    CACHE its codes."""
    ratio = int(name.partition("x")[0])
    mode, share = masked(ratio)
    x = sparse(SYNTHETIC, 1 - share, ratio)
    return [(sfpr.quantize(x, sfpr.scales(x).k) if CACHE in name else x, mode, "optL")]


POLICIES = ("cDMA+", "JPEG-BASE jpeg80",
            *(f"JPEG-ACT {dqt}{coder}" for dqt in ("optL", "optH") for coder in ("", " nibble", " rice")),
            *(f"JPEG-ACT optH{coder}{DENSE}" for coder in ("", " nibble", " rice")))


def offload_by_name(name: str, cdus: int, decompress: bool) -> Offload:
    return offload(name, real(name) if name in POLICIES else fixed(name), cdus, decompress)
