"""What a run leaves to chance: the accelerator, how memory and streams behave, tensors and where they lie."""

import numpy as np

from actcodec import codecs
from actcodec.golden.jpegact import cdu
from actcodec.golden.offload.blocks import view
from tb.offload.lanes import asked
from tb.soak.session import Job
from tb.soak.world import KINDS, PATTERNS, Accelerator, Manners

__all__ = ["accelerator", "job", "manners", "pattern", "window"]

JPEG_ACT = ("sfpr", "sfpr-zvc", "jpeg-act", "brc")
STREAMS = tuple(mode.name for mode in codecs.lane_modes() if mode.format.endless)  # instead of blocks
EVERY = tuple(mode.name for mode in codecs.lane_modes())
FOUND = ((4, JPEG_ACT), (2, ("raw", "zvc")), (3, JPEG_ACT), (2, EVERY), (8, JPEG_ACT), (3, STREAMS))
SIZE = 1 << 17  # bytes of memory
SPECIAL = np.array([np.nan, -np.nan, np.inf, -np.inf, 1e-40, -3e-39, -0.0, 3e38, 0], np.float32)


def accelerator(number):
    """The one of that number; the first few are what other tests build, too."""
    if number < len(FOUND):
        return Accelerator(*FOUND[number])
    random = np.random.default_rng([number, 1])
    modes = [JPEG_ACT, ("raw", "zvc"), cdu.MODES, EVERY, None, None][random.integers(6)]
    if modes is None:
        some = {str(random.choice(asked(EVERY)))} | {mode for mode in EVERY if random.random() < 0.3}
        modes = tuple(mode for mode in EVERY if mode in some)
    return Accelerator(
        cdus=int(random.choice([1, 2, 2, 3, 3, 4, 4, 4, 5, 6, 7, 8, 8])), modes=modes,
        memory=str(random.choice(["shared", "shared", "shared", "independent"])),
        outstanding=int(random.choice([8, 9, 15, 16, 40, 100, 384, 384])),
        address_width=int(random.choice([32, 33, 40, 40, 48, 64])), coders=int(random.choice([1, 2, 4, 4, 8])))


def window(random, accelerator):
    """The address at which memory begins: at either end of what there is, or anywhere."""
    last = (1 << accelerator.address_width) - SIZE
    return int(random.choice(np.array([0, last, int(random.random() * last) // 4096 * 4096], object)))


def pattern(random):
    """How a side rests: not at all, all its channels alike, or each in its own way."""
    return PATTERNS.index(str(random.choice(PATTERNS, p=[0.2, 0.1, 0.1, 0.05, 0.1, 0.05, 0.1, 0.3])))


def manners(random, accelerator, errors=(0, 0)):
    """A memory that the accelerator has to get on with. ``errors``: of a thousand reads and writes."""
    def flag(chance=0.5):
        return int(random.random() < chance)

    def depth():
        return int(random.choice([1, 2, 5, 16, 1 << 20]))

    kind = "independent" if accelerator.memory == "independent" else str(random.choice(KINDS))
    alone = kind == "independent"
    coupled = accelerator.memory == "shared"  # reads and writes may wait for each other as well
    early = int(random.choice([0, 0, 8, 20])) if alone else 0
    needs = int(random.integers(2 + (early > 0)))
    return Manners(
        kind=KINDS.index(kind), region=int(random.choice([12, 12, 13, 14, 16])), ordered=flag(0.8),
        strict=coupled and flag(0.3), single=coupled and flag(0.3), narrow=flag(0.7), fair=flag(), stalls=flag(0.3),
        reads=depth(), writes=depth(), early=early, needs=needs, latency=int(random.choice([0, 1, 4, 30, 200])),
        jitter=int(random.choice([0, 0, 5, 100])), read_errors=errors[0], write_errors=errors[1],
        pauses=pattern(random))


def _shape(random):
    kind = random.integers(5)
    if kind == 0:
        return tuple(int(size) for size in random.integers(1, (12, 40)))
    most = ((3, 6, 12, 40), (3, 12, 12, 12), (2, 4, 40, 17), (2, 3, 10, 120))[kind - 1]
    return tuple(int(size) for size in random.integers(1, np.array(most) + 1))


def _tensor(random, shape):
    x = random.normal(0, 1, shape).astype(np.float32)
    kind = random.integers(5)
    if kind <= 1:
        x = np.maximum(x - np.float32(0.5 * kind), 0)
    if kind == 2:
        there = random.random(shape) < 0.05
        x[there] = random.choice(SPECIAL, there.sum())
        x[:, : shape[1] // 2] *= np.float32(1e-20)
    if kind == 3:  # any bits
        x = random.integers(0, 1 << 32, shape, np.uint32).view(np.float32)
    return x


def _dqt(random, mode, values):
    """Any table that the mode takes with these values of other options, the paper's or another; nothing where it takes
    none."""
    if mode.option("dqt") is None:
        return {}
    names = list(mode.own("dqt", values).own.named.TABLES)
    return {"dqt": [*names, 2 ** random.integers(0, 8, 64)][random.integers(len(names) + 1)]}


def _bound(random, mode, shape):
    """A bound of errors, near what values are or any, and a predictor that the shape can have; nothing where the mode
    takes none."""
    if mode.option("error_bound") is None:
        return {}
    decades = (-4, 1) if random.random() < 0.8 else np.log10(mode.option("error_bound").range)
    predictors = mode.option("predictor").choices if view(shape).tileable else ("auto", "none", "line")
    return {"error_bound": float(10 ** random.uniform(*decades)), "predictor": str(random.choice(predictors))}


def job(random, accelerator, origin, mode=None):
    """A tensor in a mode of the accelerator, or in ``mode``, somewhere in memory."""
    while True:
        x = _tensor(random, _shape(random))
        mode = mode or str(random.choice(asked(accelerator.modes)))
        known, values = codecs.by_code(codecs.lane_modes(mode)[0].code)
        given = _dqt(random, known, values) | _bound(random, known, x.shape)
        found = Job.of(x, mode, accelerator.cdus, random, **given)
        seen = found.view
        stride = 4 * seen.width + int(random.choice([0, 0, 4 * random.integers(40)]))
        gap = 32 * int(random.integers(4))
        size = (seen.rows - 1) * stride + 4 * seen.width + gap + 64 + 4 * seen.channels
        if found.lane.name in accelerator.modes and size < SIZE:
            break
    room = SIZE - size
    offset = int(random.choice([0, room, random.integers(room + 1)]))
    offset = offset // 32 * 32 if random.random() < 0.5 else offset // 4 * 4
    return found.at(origin + offset, stride, gap)
