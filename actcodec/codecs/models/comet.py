"""COMET: ``golden/comet``.

Side information: the step as bfloat16, two bytes; a byte of flags, the predictor (bit 0 tiled, 1 horizontal, 2
vertical, 3 signed); seven of the code book; for several CDUs eight of each one's length. The payload is their streams.
"""

import math
import struct

import numpy as np

from actcodec.codecs.compressed import Compressed
from actcodec.golden.comet import comet, lorenzo, prequantise
from actcodec.golden.comet.book import Book
from actcodec.golden.offload import blocks

__all__ = ["check", "compress", "decompress", "facts", "side_bytes"]

HEAD = 2 + 1 + 7  # step, flags, book
PER_BYTE = 8  # values that a byte of the payload can stand for, at most
FLAGS = ("tiled", "horizontal", "vertical", "signed")
UNPREDICTED = ("none+", "none")  # symbols without and with a sign; the cheaper one is taken


def compress(x, mode, error_bound, relative_bound, l2, predictor, cdus):
    eb = bound(x, error_bound, relative_bound, l2)
    names = {"auto": (), "none": UNPREDICTED}.get(predictor, (predictor,))
    config, book = comet.choose(x, prequantise.step(eb), [lorenzo.CONFIGS[name] for name in names])
    encoded = comet.compress(x, eb, config, book, cdus)
    flags = sum(getattr(config, name) << bit for bit, name in enumerate(FLAGS))
    step = np.float32(encoded.s).view(np.uint32) >> 16  # exact: a step is a bfloat16
    side = struct.pack("<HB", step, flags) + book.to_bytes()
    if cdus > 1:
        side += struct.pack(f"<{cdus}Q", *map(len, encoded.streams))
    return Compressed(mode.name, x.shape, b"".join(encoded.streams), {"cdus": cdus}, side)


def bound(x, error_bound, relative_bound, l2):
    """The absolute error bound, of which one is given. Raises ValueError where it would be too small for a step."""
    if error_bound is not None:
        return error_bound
    finite = x[np.isfinite(x)]
    if not finite.any():
        return 1.0  # zeros stay what they are with any bound
    if l2 is not None:
        return l2_bound(np.abs(finite[finite != 0], dtype=np.float64), l2)
    low, high = float(finite.min()), float(finite.max())
    eb = relative_bound * (high - low or abs(high))  # of one number: a share of that
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
    if config.tiled and not blocks.view(c.shape).tileable:
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
