"""What a run leaves to chance: the accelerator, how memory and streams behave, tensors and where they lie."""

from dataclasses import replace

import numpy as np

from actcodec import codecs
from actcodec.rtl.offload.control import limits
from actcodec.sim.accelerator import Accelerator
from actcodec.sim.environment import KINDS, PATTERNS, MemoryBehaviour
from tb import reference
from tb.offload import draws
from tb.offload.jobs import Job
from tb.offload.lanes import selectable

__all__ = ["ALONE", "CONFIGURATIONS", "EQUIPPED", "FEW", "INDEPENDENT", "LANE", "LANES", "LARGE", "LUTS", "RINGS",
           "SINGLE", "STORED", "WHOLE", "accelerator", "around", "job", "memory", "pattern", "window"]

JPEG_ACT = ("sfpr", "sfpr-zvc", "jpeg-act", "brc")
STREAMS = tuple(mode.name for mode in codecs.lane_modes() if mode.format.endless)  # instead of blocks
EVERY = tuple(mode.name for mode in codecs.lane_modes())
FORMATS = tuple(limits.FORMATS)
LANE = Accelerator(1, EVERY, formats=FORMATS, scan=True)  # which many tests use, as it takes long to compile
LANES, LARGE = replace(LANE, cdus=4), replace(LANE, cdus=3, payload="both", queue=16)  # several of the same
SMALL = ("raw", "sfpr-zvc", "brc", "zvc")  # quickly compiled
EQUIPPED = Accelerator(2, SMALL, formats=FORMATS, payload="both", scan=True, queue=8)  # with all that is optional
SINGLE = replace(EQUIPPED, cdus=1)  # one of its lanes
# Lanes that never wait for each other at memory; and payloads in memory alone, with few reads outstanding.
INDEPENDENT = Accelerator(2, JPEG_ACT, memory="independent", scan=True, queue=256)
STORED = Accelerator(4, ("sfpr-zvc", "brc"), outstanding=8, address_width=64, payload="memory", scan=True, queue=8)
LUTS = Accelerator(2, JPEG_ACT, scan=True, target="lut")
ALONE = Accelerator(1, JPEG_ACT, payload="both", scan=True, queue=256, target="lut")  # one lane, with all but formats
CONFIGURATIONS = (
    Accelerator(4, JPEG_ACT), Accelerator(2, ("raw", "zvc")), Accelerator(3, JPEG_ACT),
    replace(LANE, cdus=3), Accelerator(8, JPEG_ACT), Accelerator(3, STREAMS),
    *(Accelerator(cdus, EVERY) for cdus in (1, 2, 4, 8)), *(replace(LANE, cdus=cdus) for cdus in (2, 4)),
    EQUIPPED, Accelerator(4, JPEG_ACT, payload="memory", scan=True, queue=256), LARGE)
FEW = range(6)  # of these, for a short run
WHOLE = tuple(number for number, one in enumerate(CONFIGURATIONS) if one.modes is EVERY and not one.queue)
RINGS = tuple(number for number, one in enumerate(CONFIGURATIONS) if one.queue)
SIZE = 1 << 17  # bytes of memory


def accelerator(number):
    """The one of that number."""
    if number < len(CONFIGURATIONS):
        return CONFIGURATIONS[number]
    random = np.random.default_rng([number, 1])
    modes = [JPEG_ACT, ("raw", "zvc"), reference.MODES, EVERY, None, None][random.integers(6)]
    if modes is None:
        some = {str(random.choice(selectable(EVERY)))} | {mode for mode in EVERY if random.random() < 0.3}
        modes = tuple(mode for mode in EVERY if mode in some)
    return Accelerator(
        cdus=int(random.choice([1, 2, 2, 3, 3, 4, 4, 4, 5, 6, 7, 8, 8])), modes=modes,
        memory=str(random.choice(["shared", "shared", "shared", "independent"])),
        outstanding=int(random.choice([8, 9, 15, 16, 40, 100, 384, 384])),
        address_width=int(random.choice([32, 33, 40, 40, 48, 64])), coders=int(random.choice([1, 2, 4, 4, 8])),
        formats=[("float32",), ("float32",), FORMATS, ("float32", "bfloat16"), ("float32", "float16", "int8"),
                 ("float32", "int8")][random.integers(6)],
        payload=str(random.choice(["stream", "both"])), scan=bool(random.random() < 0.4),
        queue=int(random.choice([0, 0, 2, 16, 256])))


def window(random, accelerator):
    """The address at which memory begins: at either end of what there is, or anywhere."""
    last = (1 << accelerator.address_width) - SIZE
    return int(random.choice(np.array([0, last, int(random.random() * last) // 4096 * 4096], object)))


def pattern(random):
    """How a side rests: not at all, all its channels alike, or each in its own way."""
    return PATTERNS.index(str(random.choice(PATTERNS, p=[0.2, 0.1, 0.1, 0.05, 0.1, 0.05, 0.1, 0.3])))


def memory(random, accelerator, errors=(0, 0)):
    """A memory that the accelerator has to get on with. ``errors``: of a thousand reads and writes."""
    def flag(chance=0.5):
        return int(random.random() < chance)

    def depth():
        return int(random.choice([1, 2, 5, 16, 1 << 20]))

    kind = "independent" if accelerator.memory == "independent" else str(random.choice(
        KINDS, p=(0.1, 0.8, 0.1) if accelerator.queue else None))
    alone = kind == "independent"
    coupled = accelerator.memory == "shared"  # reads and writes may wait for each other as well
    early = int(random.choice([0, 0, 8, 20])) if alone else 0
    needs = int(random.integers(2 + (early > 0)))
    return MemoryBehaviour(
        kind=KINDS.index(kind), region=int(random.choice([12, 12, 13, 14, 16])), ordered=flag(0.8),
        strict=coupled and flag(0.3), single=coupled and flag(0.3), narrow=flag(0.7), fair=flag(), stalls=flag(0.3),
        reads=depth(), writes=depth(), early=early, needs=needs, latency=int(random.choice([0, 1, 4, 30, 200])),
        jitter=int(random.choice([0, 0, 5, 100])), read_errors=errors[0], write_errors=errors[1],
        pauses=pattern(random))


def around(session, errors=(0, 0), **behaviour):
    """Memory, streams and host of a session behave in another way, but for what is given of memory's ``behaviour``:
    memory's, and the patterns of sink, source and host."""
    random = session.random
    drawn = replace(memory(random, session.environment.accelerator, errors), **behaviour)
    patterns = [pattern(random) for _ in range(3)]
    session.environment.begin(drawn, int(random.integers(2**63)), *patterns)
    return drawn, patterns


def job(random, accelerator, origin, back=False):
    """A tensor in a mode of the accelerator, somewhere in memory; ``back``: only to be decompressed."""
    while True:
        mode, = codecs.lane_modes(str(random.choice(accelerator.modes)))
        scan = accelerator.scan and random.random() < 0.5
        result = Job.draw(random, draws.descriptor(random, mode, accelerator.cdus, back=back,
                                                   formats=accelerator.formats, scan=scan), scan)
        d = result.descriptor
        stride = d.bytes * d.width + int(random.choice([0, 0, d.bytes * random.integers(40)]))
        gap = 32 * int(random.integers(4))
        size = (d.rows - 1) * stride + d.bytes * d.width + gap + 64 + 4 * (d.channels if scan else d.scales)
        if size < SIZE:
            break
    if d.rows == 1 and random.random() < 0.3:
        stride = int(random.choice([d.bytes * random.integers(d.width, 1 << 30), (1 << 32) - d.bytes]))
    room = SIZE - size
    offset = int(random.choice([0, room, random.integers(room + 1)]))
    offset = offset // 32 * 32 if random.random() < 0.5 else offset // d.bytes * d.bytes
    return result.at(origin + offset, stride, gap).within(accelerator.address_width)
