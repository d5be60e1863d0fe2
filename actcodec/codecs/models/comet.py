"""COMET: ``golden/comet``.

Side information: the step as bfloat16, two bytes; a byte of flags, the predictor (bit 0 tiled, 1 horizontal, 2
vertical, 3 signed); seven of the code book; for several CDUs eight of each one's length. The payload is their streams.
"""

import math
import struct
from dataclasses import dataclass

import numpy as np

from actcodec.codecs import find, lane_modes
from actcodec.codecs.compressed import Compressed
from actcodec.golden.comet import comet, lorenzo, prequantise
from actcodec.golden.comet.book import Book
from actcodec.golden.offload.blocks import LANES, View, view
from actcodec.golden.offload.wire import stream

__all__ = ["Flat", "check", "compress", "compressed", "decompress", "facts", "fit", "lane", "side_bytes", "stored"]

HEAD = 2 + 1 + 7  # step, flags, book
WIDEST = 2**24 - 8  # values of a row that a lane can have
PER_BYTE = 8  # values that a byte of the payload can stand for, at most
FLAGS = ("tiled", "horizontal", "vertical", "signed")
UNPREDICTED = ("none+", "none")  # symbols without and with a sign; the cheaper one is taken


def compress(x, mode, cdus, **options):
    eb, config, book = chosen(x, **options)
    return packed(mode, x.shape, comet.compress(x, eb, config, book, cdus))


def chosen(x, error_bound, relative_bound, l2, predictor, among=()):
    """What software decides: bound, predictor and book. Raises ValueError if the predictor is none of those ``among``
    which it may choose."""
    eb = bound(x, error_bound, relative_bound, l2)
    found = configs(x.shape, predictor)
    if among and not (found := [config for config in found if config in among]):
        raise ValueError(f"predictor {predictor} is none of this mode of a lane")
    return eb, *comet.choose(x, prequantise.step(eb), found)


def configs(shape, predictor):
    """Golden's configurations of a predictor, of which the cheapest one is taken."""
    names = UNPREDICTED if predictor == "none" else (predictor,)
    return lorenzo.legal(shape) if predictor == "auto" else [lorenzo.CONFIGS[name] for name in names]


def packed(mode, shape, encoded):
    """The ``Compressed`` of golden's ``Encoded``."""
    flags = sum(getattr(encoded.config, name) << bit for bit, name in enumerate(FLAGS))
    side = struct.pack("<HB", bfloat16(encoded.s), flags) + encoded.book.to_bytes()
    cdus = len(encoded.streams)
    if cdus > 1:
        side += struct.pack(f"<{cdus}Q", *map(len, encoded.streams))
    return Compressed(mode.name, shape, b"".join(encoded.streams), {"cdus": cdus}, side)


def bfloat16(s):
    """The bits of a step, which is one."""
    return int(np.float32(s).view(np.uint32) >> 16)


def bound(x, error_bound, relative_bound, l2):
    """The absolute error bound, of which one is given. Raises ValueError where it would be too small for a step."""
    if error_bound is not None:
        return error_bound
    finite = x[np.isfinite(x)]
    if not finite.any():
        return 1.0
    if l2 is not None:
        return l2_bound(np.abs(finite[finite != 0], dtype=np.float64), l2)
    return range_bound(float(finite.min()), float(finite.max()), relative_bound)


def range_bound(low, high, relative_bound):
    """The error bound of values from ``low`` to ``high``, as a share of that range; of one number: a share of that."""
    if low == high == 0:
        return 1.0  # zeros stay what they are with any bound
    eb = relative_bound * (high - low or abs(high))
    if 2 * eb < prequantise.SMALLEST_STEP:
        raise ValueError(f"relative_bound {relative_bound:g} asks for an error bound of {eb:g}, legal are 2^-126 "
                         "(1.18e-38) and more")
    return eb


def l2_bound(values, error):
    """Half of the largest step that keeps the relative L2 error of magnitudes (float64) within ``error``; found by
    bisection, as if the error rose with every step, which it nearly does."""
    limit = error * np.linalg.norm(values)

    def step(number):  # the steps in ascending order, 128 an octave
        exponent, mantissa = divmod(number, 128)
        return math.ldexp(128 + mantissa, exponent)

    def number(s):
        fraction, exponent = math.frexp(s)
        return 128 * (exponent - 8) + math.floor(math.ldexp(fraction, 8)) - 128

    def kept(s):
        q = np.floor(values / s + 0.5)
        return np.linalg.norm(np.where(q > prequantise.LARGEST, 0, values - q * s)) <= limit  # outliers lose nothing

    # Below the first one no value is off by more than all may be in the mean; the second one makes all of them 0.
    low = number(2 * limit / math.sqrt(values.size))
    high = number(min(4 * float(values.max()), prequantise.LARGEST_STEP))
    if low < number(prequantise.SMALLEST_STEP):
        raise ValueError(f"l2 {error:g} asks for an error bound below 2^-126 (1.18e-38)")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if kept(step(middle)) else (low, middle)
    return step(low) / 2


def encoded(compressed):
    """Golden's ``Encoded``. Raises ValueError for side information that cannot be."""
    c = compressed
    step, flags = struct.unpack_from("<HB", c.side)
    if flags >> len(FLAGS):
        raise ValueError(f"flags are {flags:#x}, legal are 0 to 0xf")
    config = lorenzo.Config(**{name: bool(flags >> bit & 1) for bit, name in enumerate(FLAGS)})
    if config.tiled and not view(c.shape).tileable:
        raise ValueError(f"the predictor needs tiles, which shape {c.shape} does not have")
    lengths = struct.unpack_from(f"<{c.cdus}Q", c.side, HEAD) if c.cdus > 1 else (c.payload_bytes,)
    if sum(lengths) != c.payload_bytes:
        raise ValueError(f"the streams have {sum(lengths)} bytes, the payload {c.payload_bytes}")
    ends = np.cumsum(lengths).tolist()
    streams = tuple(c.payload[end - length:end] for end, length in zip(ends, lengths, strict=True))
    s = float(np.uint32(step << 16).view(np.float32))
    return comet.Encoded(s, config, Book.from_bytes(c.side[3:HEAD]), streams)


def decompress(compressed):
    x, error = comet.decompress(encoded(compressed), compressed.shape)
    if error:
        what = "end early" if comet.Error.SHORT in error else "have bytes left"
        raise ValueError(f"the streams {what}")
    return x


class Flat:
    """What the lane's mode without tiles has of its own."""

    @staticmethod
    def view(shape):
        """The tensor as one row, or, where that makes no difference, as rows of one sector. Raises ValueError where
        neither fits a descriptor."""
        size = math.prod(shape)
        if size % LANES == 0:
            return View(size // LANES, LANES, 1, 1, False)
        if size > WIDEST:
            raise ValueError(f"shape {tuple(shape)} has {size} values, in a lane legal are multiples of {LANES}, and "
                             f"up to {WIDEST}")
        return View(1, size, 1, 1, False)

    @staticmethod
    def fit(x, lane, **options):
        return fit(x, lane, **options)


def fit(x, lane, **options):
    """The settings of the cheapest predictor that the lane's mode has; no scales."""
    given = lane.settings(options)
    given.pop("cdus")
    eb, config, book = chosen(x, **given, among=[c for c in lorenzo.CONFIGS.values() if c.tiled == lane.tiled])
    return None, settings(prequantise.step(eb), config, book)


def settings(s, config, book):
    """What the lane's units have to be told."""
    flags = {name: int(getattr(config, name)) for name in FLAGS if name != "tiled"}
    return {"step": bfloat16(s), **flags, "counts": int.from_bytes(book.to_bytes(), "little")}


def lane(x, mode, cdus=1, **options):
    """The mode of the lane that has the tensor's predictor, and what else the driver has to know."""
    eb, config, book = chosen(x, **options)
    return lane_of(mode, config), {"settings": settings(prequantise.step(eb), config, book)}


def lane_of(mode, config):
    return mode if config.tiled else lane_modes(mode.fallback)[0]


def compressed(lane, shape, payload, cdus, result, **options):
    numbers = result.settings
    s = float(np.uint32(numbers["step"] << 16).view(np.float32))
    config = lorenzo.Config(lane.tiled, *(bool(numbers[name]) for name in FLAGS[1:]))
    book = Book.from_bytes(numbers["counts"].to_bytes(7, "little"))
    streams = tuple(stream.unweave(payload, result.lengths))
    return packed(find("comet"), shape, comet.Encoded(s, config, book, streams))


@dataclass(frozen=True)
class Stored:
    """As a lane has a compressed tensor."""

    mode: str
    shape: tuple
    payload: bytes
    lengths: tuple  # of each CDU's stream
    blocks: int
    scales: None = None
    table: None = None

    @property
    def cdus(self):
        return len(self.lengths)

    @property
    def payload_bytes(self):
        return sum(self.lengths)


def stored(compressed):
    e = encoded(compressed)
    lane, shape = lane_of(find(compressed.mode), e.config), compressed.shape
    seen = view(shape) if lane.tiled else Flat.view(shape)
    return Stored(lane.name, shape, stream.weave(e.streams), tuple(map(len, e.streams)),
                  seen.blocks(lane.tiled)), settings(e.s, e.config, e.book)


def side_bytes(shape, mode, cdus):
    return HEAD + (8 * cdus if cdus > 1 else 0)


def check(compressed):
    encoded(compressed)
    if compressed.length > PER_BYTE * compressed.payload_bytes:
        raise ValueError(f"a payload of {compressed.payload_bytes} bytes cannot hold {compressed.length} values")


def facts(compressed):
    e = encoded(compressed)
    names = [name for name, config in lorenzo.CONFIGS.items() if config == e.config]
    return {"error_bound": e.s / 2, "predictor": names[0] if names else str(e.config),
            "code_lengths": list(e.book.counts)}
