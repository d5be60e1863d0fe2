"""Gist's modes: ``golden/gist``. A tensor is a flat array in memory order, without padding."""

import math
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from actcodec.codecs.codec import Codec
from actcodec.codecs.compressed import Compressed
from actcodec.golden.gist import binarize, dpr, ssdc
from actcodec.golden.gist.ssdc import Encoded

__all__ = ["Binarize", "Dpr", "Ssdc"]


class Formatted(Codec):
    """Values in a format of DPR, or in full."""

    @property
    def form(self) -> Any:
        return self.mode.parameter["form"]

    def value_bytes(self, count: int) -> int:
        """Bytes that ``count`` values take: whole words of 32 bits."""
        return 4 * -(-count // (dpr.named(self.form).per_word if self.form else 1))

    def saturated(self, x: NDArray[np.float32], compressed: Compressed) -> int:
        """Values that are larger than any of the format."""
        return int(np.count_nonzero(np.abs(x) > np.float32(dpr.named(self.form).largest))) if self.form else 0


class Binarize(Codec):
    """One bit a value; what comes back is 1.0 or +0.0."""

    def compress(self, x: np.ndarray, cdus: int = 1, **options: Any) -> Compressed:
        return Compressed(self.mode.name, x.shape, binarize.forward(x).tobytes())

    def decompress(self, compressed: Compressed) -> np.ndarray:
        c = compressed
        return binarize.backward(np.ones(c.length, np.float32), np.frombuffer(c.payload, np.uint8)).reshape(c.shape)

    def size(self, shape: Sequence[int], **options: Any) -> int:
        return -(-math.prod(shape) // 8)


class Dpr(Formatted):
    """Floats of fewer bits."""

    def compress(self, x: np.ndarray, cdus: int = 1, **options: Any) -> Compressed:
        return Compressed(self.mode.name, x.shape, dpr.encode(x, self.form).tobytes())

    def decompress(self, compressed: Compressed) -> np.ndarray:
        c = compressed
        return dpr.decode(np.frombuffer(c.payload, np.uint8), self.form, c.length).reshape(c.shape)

    def size(self, shape: Sequence[int], **options: Any) -> int:
        return self.value_bytes(math.prod(shape))


class Ssdc(Formatted):
    """Narrow CSR. The payload is values, columns, row counts; side information is the number of values, 8 bytes."""

    def compress(self, x: np.ndarray, cdus: int = 1, **options: Any) -> Compressed:
        return self.joined(x.shape, ssdc.encode(x, self.form)._asdict())

    def joined(self, shape: Sequence[int], arrays: Any) -> Compressed:
        """Of the arrays, or their bytes, by name."""
        payload = b"".join(arrays[name] for name in ("values", "columns", "counts"))
        return Compressed(self.mode.name, tuple(shape), payload, side=struct.pack("<Q", len(arrays["columns"])))

    def arrays(self, compressed: Compressed, content: Any = None) -> dict[str, Any]:
        """The arrays, and what else a decoder takes. ``content`` is the payload in another type."""
        c, nonzero = compressed, struct.unpack("<Q", compressed.side)[0]
        values = self.value_bytes(nonzero)
        columns, content = values + nonzero, c.payload if content is None else content
        return {"length": c.length, "nonzero": nonzero, "values": content[:values],
                "columns": content[values:columns], "counts": content[columns:]}

    def encoded(self, compressed: Compressed) -> Encoded:
        a = self.arrays(compressed, memoryview(compressed.payload))
        return ssdc.Encoded(np.frombuffer(a["values"], np.uint8 if self.form else "<f4"),
                            np.frombuffer(a["columns"], np.uint8), np.frombuffer(a["counts"], "<u2"))

    def decompress(self, compressed: Compressed) -> np.ndarray:
        c = compressed
        return ssdc.decode(self.encoded(c), c.length, self.form).reshape(c.shape)

    def side_bytes(self, shape: Sequence[int], **options: Any) -> int:
        return 8

    def check(self, compressed: Compressed, **more: Any) -> None:
        c = compressed
        nonzero = struct.unpack("<Q", c.side)[0]
        expected = self.value_bytes(nonzero) + nonzero + 2 * -(-c.length // ssdc.ROW)
        if c.payload_bytes != expected:
            raise ValueError(f"payload has {c.payload_bytes} bytes, mode {c.mode} asks for {expected}")
        ssdc.places(self.encoded(c), c.length, self.form)
