"""Gist's modes: ``golden/gist``. A tensor is a flat array in memory order, without padding."""

import math
import struct

import numpy as np

from actcodec.codecs import find
from actcodec.codecs.compressed import Compressed
from actcodec.golden.gist import binarize, dpr, ssdc

__all__ = ["Binarize", "Dpr", "Ssdc", "check_bytes"]


def check_bytes(compressed, expected):
    """Raises ValueError unless the payload is as long as it has to be."""
    if compressed.payload_bytes != expected:
        raise ValueError(f"payload has {compressed.payload_bytes} bytes, mode {compressed.mode} asks for {expected}")


def content(compressed):
    return np.frombuffer(compressed.payload, np.uint8)


def words(count, form):
    """32-bit words that ``count`` values take in a format of DPR, or in full."""
    return -(-count // (dpr.named(form).per_word if form else 1))


def beyond(x, form):
    """Values that are larger than any of a format of DPR; none if that is no format."""
    return int(np.count_nonzero(np.abs(x) > np.float32(dpr.named(form).largest))) if form else 0


class Binarize:
    """One bit a value; what comes back is 1.0 or +0.0."""

    @staticmethod
    def compress(x, mode, cdus=1):
        return Compressed(mode.name, x.shape, binarize.forward(x).tobytes())

    @staticmethod
    def decompress(compressed):
        c = compressed
        return binarize.backward(np.ones(c.length, np.float32), content(c)).reshape(c.shape)

    @staticmethod
    def size(shape, mode, **options):
        return -(-math.prod(shape) // 8)

    @staticmethod
    def check(compressed):
        check_bytes(compressed, Binarize.size(compressed.shape, None))


class Dpr:
    """Floats of fewer bits."""

    @staticmethod
    def compress(x, mode, cdus=1):
        return Compressed(mode.name, x.shape, dpr.encode(x, mode.parameter["form"]).tobytes())

    @staticmethod
    def decompress(compressed):
        c = compressed
        return dpr.decode(content(c), find(c.mode).parameter["form"], c.length).reshape(c.shape)

    @staticmethod
    def size(shape, mode, **options):
        return 4 * words(math.prod(shape), mode.parameter["form"])

    @staticmethod
    def check(compressed):
        check_bytes(compressed, Dpr.size(compressed.shape, find(compressed.mode)))

    @staticmethod
    def saturated(x, compressed):
        return beyond(x, find(compressed.mode).parameter["form"])


class Ssdc:
    """Narrow CSR. The payload is values, columns, row counts; side information is the number of values, 8 bytes."""

    @staticmethod
    def compress(x, mode, cdus=1):
        return Ssdc.joined(x.shape, mode, ssdc.encode(x, mode.parameter["form"])._asdict())

    @staticmethod
    def joined(shape, mode, arrays):
        """Of the arrays, or their bytes, by name."""
        payload = b"".join(arrays[name] for name in ("values", "columns", "counts"))
        return Compressed(mode.name, shape, payload, side=struct.pack("<Q", len(arrays["columns"])))

    @staticmethod
    def arrays(compressed, content=None):
        """The arrays, and what else a decoder has to be told. ``content`` is the payload in another type."""
        c, form = compressed, find(compressed.mode).parameter["form"]
        nonzero = struct.unpack("<Q", c.side)[0]
        values = 4 * words(nonzero, form)
        columns, content = values + nonzero, c.payload if content is None else content
        return {"length": c.length, "nonzero": nonzero, "values": content[:values],
                "columns": content[values:columns], "counts": content[columns:]}

    @staticmethod
    def encoded(compressed):
        a, form = Ssdc.arrays(compressed, memoryview(compressed.payload)), find(compressed.mode).parameter["form"]
        return ssdc.Encoded(np.frombuffer(a["values"], np.uint8 if form else "<f4"),
                            np.frombuffer(a["columns"], np.uint8), np.frombuffer(a["counts"], "<u2"))

    @staticmethod
    def decompress(compressed):
        c = compressed
        return ssdc.decode(Ssdc.encoded(c), c.length, find(c.mode).parameter["form"]).reshape(c.shape)

    @staticmethod
    def side_bytes(shape, mode, **options):
        return 8

    @staticmethod
    def check(compressed):
        c, form = compressed, find(compressed.mode).parameter["form"]
        nonzero = struct.unpack("<Q", c.side)[0]
        check_bytes(c, 4 * words(nonzero, form) + nonzero + 2 * -(-c.length // ssdc.ROW))
        ssdc.places(Ssdc.encoded(c), c.length, form)

    @staticmethod
    def saturated(x, compressed):
        return beyond(x, find(compressed.mode).parameter["form"])
