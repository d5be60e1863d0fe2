"""Gist's encodings and A2DTWP's Bitpack as modes of the command line: the golden engine.

A tensor is a flat array in memory order, without padding, and one unit does all of it: nothing is shared among CDUs.
"""

import math
from dataclasses import dataclass

import numpy as np

from golden.gist import binarize, bitpack, dpr, ssdc

__all__ = ["MODES", "Compressed", "compress", "decompress"]

MODES = ("binarize", "ssdc", *(f"ssdc-{form}" for form in dpr.FORMATS), *(f"dpr-{form}" for form in dpr.FORMATS),
         "bitpack-1", "bitpack-2", "bitpack-3")


def parts(mode):
    """The unit of a mode, and its parameter: a format of DPR (or None), or RoundTo."""
    kind, _, parameter = mode.partition("-")
    return kind, int(parameter) if kind == "bitpack" else parameter or None


def words(count, form):
    """32-bit words that ``count`` values take in a format of DPR, or in full."""
    return -(-count // (dpr.named(form).per_word if form else 1))


@dataclass(frozen=True, eq=False)
class Compressed:
    """A compressed tensor; what it has in common with ``golden.jpegact.cdu.Compressed`` has the same name.

    Raises ValueError for parts that do not fit together.
    """

    mode: str
    shape: tuple[int, ...]
    payload: bytes  # of SSDC: values, columns, row counts
    nonzero: int | None = None  # values that SSDC stored; None in other modes

    dqt = None
    cdus = 1

    def __post_init__(self):
        if self.mode not in MODES:
            raise ValueError(f"unknown mode {self.mode!r}, legal are {', '.join(MODES)}")
        if min(self.shape) < 1:
            raise ValueError(f"shape {self.shape} is empty, every dimension has to be at least 1")
        kind, parameter = parts(self.mode)
        if (self.nonzero is None) == (kind == "ssdc"):
            raise ValueError(f"mode {self.mode} has {'a' if kind == 'ssdc' else 'no'} number of non-zero values")
        sizes = self.sizes()
        if self.payload_bytes != sum(sizes):
            raise ValueError(f"payload has {self.payload_bytes} bytes, mode {self.mode} asks for {sum(sizes)}")
        if kind == "ssdc":
            ssdc.places(self.arrays(), self.length, parameter)

    def sizes(self):
        """Bytes of each array in the payload."""
        kind, parameter = parts(self.mode)
        if kind == "ssdc":
            return 4 * words(self.nonzero, parameter), self.nonzero, 2 * -(-self.length // ssdc.ROW)
        if kind == "dpr":
            return (4 * words(self.length, parameter),)
        return (self.length * parameter if kind == "bitpack" else -(-self.length // 8),)

    def arrays(self):
        """The arrays of SSDC."""
        values, columns, _ = self.sizes()
        content = np.frombuffer(self.payload, np.uint8)
        return ssdc.Encoded(content[:values] if parts(self.mode)[1] else content[:values].view("<f4"),
                            content[values : values + columns],
                            np.frombuffer(self.payload[values + columns :], "<u2"))

    @property
    def length(self):
        """Values of the tensor."""
        return math.prod(self.shape)

    @property
    def blocks(self):
        """Blocks of 64 values, by which cycles are counted."""
        return -(-self.length // 64)

    @property
    def payload_bytes(self):
        return len(self.payload)

    @property
    def ratio(self):
        """Bytes of the float32 tensor over bytes of the payload."""
        return 4 * self.length / self.payload_bytes


def check(x, mode, cdus):
    """Raises as :func:`compress` does."""
    if not isinstance(x, np.ndarray) or x.dtype != np.float32:
        raise TypeError(f"tensor is {getattr(x, 'dtype', type(x).__name__)}, has to be a float32 array")
    if not x.size:
        raise ValueError(f"shape {x.shape} is empty, every dimension has to be at least 1")
    if mode not in MODES:
        raise ValueError(f"unknown mode {mode!r}, legal are {', '.join(MODES)}")
    if cdus != 1:
        raise ValueError(f"mode {mode} has no CDUs: cdus must be 1, not {cdus!r}")


def compress(x, mode, dqt=None, cdus=1):
    """Compresses a float32 tensor in one of MODES: :class:`Compressed`.

    ``dqt`` and ``cdus`` are there for the sake of ``golden.jpegact.cdu.compress``; the former has no effect. Raises
    TypeError unless ``x`` is a float32 array, ValueError for an empty one, an unknown mode, and any ``cdus`` but 1.
    """
    check(x, mode, cdus)
    kind, parameter = parts(mode)
    if kind == "ssdc":
        arrays = ssdc.encode(x, parameter)
        return Compressed(mode, x.shape, b"".join(array.tobytes() for array in arrays), arrays.columns.size)
    if kind == "binarize":
        payload = binarize.forward(x)
    else:
        payload = (dpr.encode if kind == "dpr" else bitpack.pack)(x, parameter)
    return Compressed(mode, x.shape, payload.tobytes())


def decompress(compressed):
    """The float32 tensor of a :class:`Compressed`. Lossless in mode ssdc, but that -0.0 becomes +0.0; 1.0 or +0.0 in
    mode binarize."""
    c, (kind, parameter) = compressed, parts(compressed.mode)
    content = np.frombuffer(c.payload, np.uint8)
    if kind == "ssdc":
        x = ssdc.decode(c.arrays(), c.length, parameter)
    elif kind == "binarize":
        x = binarize.backward(np.ones(c.length, np.float32), content)
    else:
        x = (dpr.decode if kind == "dpr" else bitpack.unpack)(content, parameter, c.length)
    return x.reshape(c.shape)
