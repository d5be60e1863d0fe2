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
from actcodec.golden.comet.walk import LANES, walk
from actcodec.golden.offload.blocks import view

__all__ = ["check", "compress", "compress_by", "decompress", "decompress_by", "facts", "side_bytes"]

HEAD = 2 + 1 + 7  # step, flags, book
MOST = 7 * LANES  # bytes of a round
PER_BYTE = 8  # values that a byte of the payload can stand for, at most
FLAGS = ("tiled", "horizontal", "vertical", "signed")
UNPREDICTED = ("none+", "none")  # symbols without and with a sign; the cheaper one is taken


def compress(x, mode, cdus, **options):
    eb, config, book = chosen(x, **options)
    return packed(mode, x.shape, comet.compress(x, eb, config, book, cdus))


def chosen(x, error_bound, relative_bound, l2, predictor):
    """What software decides: bound, predictor and book."""
    eb = bound(x, error_bound, relative_bound, l2)
    return eb, *comet.choose(x, prequantise.step(eb), configs(x.shape, predictor))


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
    refuse(error)
    return x


def refuse(error):
    if error:
        what = "end early" if comet.Error.SHORT in error else "have bytes left"
        raise ValueError(f"the streams {what}")


def compress_by(run, x, mode, cdus, **options):
    """As :func:`compress`, by the unit."""
    eb, config, book = chosen(x, **options)
    s, streams = prequantise.step(eb), []
    for own in walks(x.shape, config, cdus):
        stream = b""
        if len(own):
            stream, _ = run({"config": job(s, config, book, own, decompress=0), "edges": edges(own),
                             "sectors_i": own.lanes(x).astype("<f4").tobytes()},
                            "bytes_o", MOST * rounds(own) + LANES, blocks(own))
        streams.append(stream)
    return packed(mode, x.shape, comet.Encoded(s, config, book, tuple(streams)))


def decompress_by(run, compressed):
    """As :func:`decompress`, by the unit."""
    e = encoded(compressed)
    x, error = np.zeros(compressed.length, np.float32), comet.Error(0)
    for own, stream in zip(walks(compressed.shape, e.config, len(e.streams)), e.streams, strict=True):
        if not len(own):
            error |= comet.Error.EXCESS if stream else comet.Error(0)
            continue
        values, results = run({"config": job(e.s, e.config, e.book, own, decompress=1), "edges": edges(own),
                               "bytes_i": stream}, "sectors_o", own.count, blocks(own))
        x[own.order] = np.frombuffer(values, "<f4")
        error |= comet.Error(results["error"] >> 1)  # the lowest bit is the configuration's, which is right
    refuse(error)
    return x.reshape(compressed.shape)


def walks(shape, config, cdus):
    return [walk(shape, config.tiled, cdu, cdus) for cdu in range(cdus)]


def rounds(walk):
    return -(-int(walk.count.sum()) // LANES)


def blocks(walk):
    """Blocks of eight sectors."""
    return -(-len(walk) // LANES)


def job(s, config, book, walk, decompress):
    """What the unit needs to be told, by the names of its configuration."""
    flags = {name: int(getattr(config, name)) for name in FLAGS}
    return {"decompress": decompress, "step": bfloat16(s), **flags, "counts": book.counts[:7], "rounds": rounds(walk)}


def edges(walk):
    """A sector's place, by the names that the unit has for it."""
    return {name: getattr(walk, name) for name in ("count", "left", "above", "tile", "last")}


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
