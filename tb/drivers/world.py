"""The driver in C as Python calls it, in the world of ``world.c``, and what golden makes of its tensors."""

import ctypes
import math
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np

from actcodec import codecs
from actcodec.codecs import host_mode
from actcodec.golden.jpegact import sfpr
from actcodec.golden.offload.memory import formats
from actcodec.rtl.offload.control.register_map import COUNTERS, LANES
from actcodec.sim.environment import EITHER, Environment
from tb.offload.draws import SPECIAL
from tb.offload.lanes import drawn, model, stored

__all__ = ["C_SOURCES", "PAYLOAD", "ROOM", "ROOT", "SHAPES", "SIZE", "SOURCES", "TABLE", "WARNINGS", "Golden", "Host",
           "Mode", "Outcome", "configure", "form_for", "four", "job_type", "pointer", "tensor", "u8", "u32", "u64",
           "word"]

ROOT = Path(__file__).resolve().parents[2]
C_SOURCES = sorted((ROOT / "drivers/c").glob("*.c"))
SOURCES = [*C_SOURCES, Path(__file__).with_name("world.c")]
WARNINGS = ("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Wno-sign-conversion", "-Werror")
SIZE = 1 << 18  # bytes of memory
TABLE, PAYLOAD, ROOM = 0x18000, 0x20000, 0x20000  # places in it
SHAPES = [(2, 3, 8, 16), (1, 5, 13, 11), (3, 2, 5, 4), (2, 9), (3, 40), (1, 2, 24)]


class Outcome(IntEnum):
    """What functions return, beside errors of the accelerator."""

    NO_DEVICE = -1
    WRONG_VERSION = -2
    NO_MODE = -3
    BAD_SHAPE = -4
    NO_SETTING = -5
    NO_MEMORY = -6
    TOO_LARGE = -7
    DMA_FAILED = -8
    GAVE_UP = -9
    NO_FORMAT = -10
    NO_PAYLOAD = -11
    BUSY = -12
    NO_QUEUE = -13
    BAD_RING = -14
    RING_FULL = -15
    RING_EMPTY = -16
    RING_STOPPED = -17
    RING_FAILED = -18
    NO_REPORT = -19
    BAD_ADDRESS = -20
    NO_ENGINE = -21


u8, u32, u64, pointer = ctypes.c_uint8, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_void_p


class Mode(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), *((name, u8) for name in (
        "code", "fallback", "view", "flags", "row", "first", "count"))]


class Device(ctypes.Structure):
    _fields_ = [("hooks", pointer), ("context", pointer), *((name, ctypes.c_uint) for name in (
        "cdus", "address_width", "formats", "payloads", "queue", "moving")), ("modes", u64)]


def job_type(words):
    class Job(ctypes.Structure):
        _fields_ = [("mode", ctypes.POINTER(Mode)), *((name, u32) for name in (
                        "rows", "width", "stride", "height", "channels")),
                    ("address", u64), ("scales", u64), ("words", pointer), ("payload", u64), ("room", u64),
                    ("size", u64), *((name, u8) for name in ("format", "resident", "signs", "clipped", "decompress")),
                    ("shifts", u8 * 64), ("settings", u32 * words),
                    ("lengths", u32 * LANES), ("counters", u64 * len(COUNTERS))]

    return Job


class World(ctypes.Structure):
    _fields_ = [(name, pointer) for name in ("environment", "access", "run", "send", "take", "bytes", "cached")] + [
        ("size", u64), ("address", u64), ("room", u64), ("cycles", ctypes.c_int64), ("lag", ctypes.c_int64),
        *((name, ctypes.c_int) for name in ("failures", "receiving", "cancelled"))]


class Host:
    """A driver in its world. Without an accelerator, only what needs memory alone works."""

    def __init__(self, c, accelerator=None, seed=0):
        self.c, self.bytes, self.cached = c, np.zeros(SIZE, np.uint8), np.zeros(SIZE, np.uint8)
        self.world = World(size=SIZE, cycles=1 << 40)
        if accelerator:
            self.environment = Environment(accelerator, seed, SIZE, owned=False)
            self.bytes = self.environment.bytes
            functions = self.environment._library
            self.world.environment = self.environment._environment
            for name in ("access", "run", "send", "take"):
                function = getattr(functions, f"environment_{name}")
                setattr(self.world, name, ctypes.cast(function, pointer))
            self.environment.phase(EITHER)
        self.world.bytes, self.world.cached = self.bytes.ctypes.data, self.cached.ctypes.data
        self.device = Device(ctypes.addressof(pointer.in_dll(c, "hooks")), ctypes.addressof(self.world),
                             1, 40, 7, 2, 0, 0, (1 << 64) - 1)
        if accelerator:
            assert self("probe", ctypes.addressof(pointer.in_dll(c, "hooks")), ctypes.byref(self.world)) == 0

    def __call__(self, name, *arguments):
        """A function of the driver that has the device first."""
        converted = [u64(one) if isinstance(one, int) else one for one in arguments]
        return self.checked(getattr(self.c, f"actcodec_{name}")(ctypes.byref(self.device), *converted))

    def checked(self, outcome):
        """What a function has returned, if the accelerator and its bus have nothing to say."""
        if hasattr(self, "environment"):
            self.environment.check()
            assert not self.world.failures
        return outcome

    def plan(self, mode, shape, words=None, gap=0, address=0x100, form="float32", resident=False):
        """What the driver plans: (outcome, job)."""
        job = self.c.Job()
        outcome = self.c.actcodec_plan(ctypes.byref(self.device), ctypes.byref(job), mode.encode(),
                                       (u32 * max(len(shape), 1))(*shape), len(shape))
        job.address, job.scales, job.payload, job.room = address, TABLE, PAYLOAD, ROOM
        if outcome == 0:
            assert self("set_format", ctypes.byref(job), formats.FORMATS.index(form)) == 0
        job.resident |= resident
        job.stride += gap
        job.memory = np.zeros(max(job.channels, 1), np.uint32) if words is None else words.astype(np.uint32)
        job.words = job.memory.ctypes.data
        return outcome, job

    def rows(self, job, place):
        """The tensor in an array of bytes, as a view."""
        dtype = word(job)
        return np.lib.stride_tricks.as_strided(place[job.address :].view(dtype), (job.rows, job.width),
                                               (job.stride, dtype.itemsize))

    def write(self, job, x):
        """The processor writes a tensor; memory does not have it yet."""
        self.bytes[:PAYLOAD] = self.cached[:PAYLOAD] = 0xA5
        self.rows(job, self.cached)[:] = x.reshape(job.rows, job.width).view(word(job))

    def payload(self, job):
        return self.cached[PAYLOAD : PAYLOAD + job.size].tobytes()

    def store(self, job, payload):
        self.cached[PAYLOAD : PAYLOAD + len(payload)] = np.frombuffer(payload, np.uint8)
        self.bytes[PAYLOAD:] = 0
        job.size = len(payload)


def word(job):
    """The type of a value in memory, as bits."""
    return np.dtype(f"u{formats.bytes_of(formats.FORMATS[job.format])}")


def form_for(random, name):
    """A format that a mode takes, by the name of either."""
    takes = codecs.lane_modes(name)[0].codes
    return str(random.choice(formats.FORMATS if takes else ["float32", *formats.HALVES]))


def tensor(random, shape, kind="normal"):
    x = random.normal(0, 1, shape).astype(np.float32)
    if kind == "relu":
        x = np.maximum(x - np.float32(0.5), 0)
    if kind == "wild":
        at = random.random(x.shape) < 0.1
        x[at] = random.choice(SPECIAL, at.sum())
        x[:, ::2] *= np.float32(1e-20)
    return x


def four(shape):
    """The shape as NCHW, for golden."""
    n, c, *places = shape
    return (n, c, math.prod(places[:-1]), places[-1]) if places else (n, c)


def configure(job, c, settings):
    """Gives a job golden's settings."""
    for name, number in settings.items():
        if name == "table":
            job.shifts[:] = [number >> 3 * k & 7 for k in range(64)]
        else:
            bits = -(-number.bit_length() // 8)
            data = (u8 * 64)(*number.to_bytes(max(bits, 1), "little"))
            assert c.actcodec_set_bytes(ctypes.byref(job), name.encode(), data) == 0


@dataclass(frozen=True)
class Golden:
    """A tensor, and what golden makes of it by settings that are drawn."""

    x: Any  # as it is in memory
    shape: tuple
    form: str
    lane: Any  # the mode of lanes, of which the driver's name is
    name: str
    words: Any  # of the table of scales, or None
    settings: dict
    signs: bool
    payload: bytes
    lengths: tuple
    back: Any  # as it is in memory when it has been decompressed

    @classmethod
    def draw(cls, random, name, shape, kind="normal", form="float32", cdus=1):
        x = tensor(random, shape, kind)
        mode, options = drawn(random, name, cdus, dqt="optL", predictor="auto")
        if form != "float32":
            with np.errstate(all="ignore"):
                x = sfpr.quantize(x, 30) if form == formats.CODES else formats.narrow(x, form)
        widened = form in formats.HALVES and not mode.halves
        values = (formats.widen(x, form) if widened else x).reshape(four(shape))
        options["dtype"] = form
        lane, words, settings = mode.model.plan(values, **options)
        lane = host_mode(lane)
        compressed = mode.model.compress(values, **options)
        golden, back = stored(compressed), model(compressed).decompress(compressed)
        return cls(x, shape, form, lane, lane.name if lane.format.endless else mode.variant(options).name, words,
                   settings, bool(options.get("signs", False)), golden.payload,
                   golden.lengths if lane.format.endless else (), formats.narrow(back, form) if widened else back)

    def job(self, host, gap=0, resident=False):
        """The job that compresses it, as the driver plans it."""
        outcome, job = host.plan(self.name, self.shape, self.words, gap, form=self.form, resident=resident)
        assert outcome == 0 and job.mode.contents.name.decode() == self.lane.name, f"{self.name} {self.shape}"
        view = self.lane.model.view(four(self.shape))
        assert (job.rows, job.width, job.height, job.channels) == (view.rows, view.width, view.height, view.channels)
        configure(job, host.c, self.settings)
        job.signs = self.signs
        return job
