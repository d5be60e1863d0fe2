"""COMET: ``golden/comet``.

Side information: the step as bfloat16, two bytes; a byte of flags, the predictor (bit 0 tiled, 1 horizontal, 2
vertical, 3 signed); seven of the code book; for several CDUs eight of each one's length. The payload is their streams.
"""

import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from actcodec.codecs.codec import LaneCodec, LanePayload
from actcodec.codecs.compressed import Compressed
from actcodec.codecs.models import flat
from actcodec.codecs.registry import lane_modes
from actcodec.golden.comet import comet, lorenzo, prequantise
from actcodec.golden.comet.book import Book
from actcodec.golden.comet.comet import Encoded
from actcodec.golden.comet.huffman import Error
from actcodec.golden.comet.lorenzo import Config
from actcodec.golden.offload import blocks
from actcodec.golden.offload.wire import stream

__all__ = ["Comet"]

HEAD = 2 + 1 + 7  # step, flags, book
PER_BYTE = 8  # values that a byte of the payload can stand for, at most
FLAGS = ("tiled", "horizontal", "vertical", "signed")
UNPREDICTED = ("none+", "none")  # symbols without and with a sign; the cheaper one is taken


class Comet(LaneCodec):
    """A tensor's values decide between the mode and its variant without tiles."""

    def view(self, shape: Sequence[int]) -> Any:
        return blocks.view(shape) if self.mode.tiled else flat.view(shape)

    # ----------------------------------------------------------------------------------------- of the lane's own mode
    def fit(self, x: NDArray[np.float32], signs: bool = False,
            **options: Any) -> tuple[NDArray[np.uint32] | None, dict[str, int]]:
        """The settings of the cheapest predictor that the lane's mode has; no scales."""
        values = self.mode.option_values(options)
        values.pop("cdus")
        among = [config for config in lorenzo.CONFIGS.values() if config.tiled == self.mode.tiled]
        eb, config, book = parameters(x, **values, among=among)
        return None, settings(prequantise.step(eb), config, book)

    def encode(self, rows: np.ndarray, view: Any, words: NDArray[np.uint32] | None, settings: Mapping[str, int],
               cdus: int, signs: bool = False) -> tuple[bytes, tuple[int, ...]]:
        e = self.encoded(settings)
        streams = comet.compress(rows, e.s / 2, e.config, e.book, cdus, view).streams
        return stream.weave(streams), tuple(map(len, streams))

    def decode(self, payload: bytes, view: Any, words: NDArray[np.uint32] | None, settings: Mapping[str, int],
               cdus: int, lengths: Sequence[int] = ()) -> np.ndarray:
        return restore(self.encoded(settings, stream.unweave(payload, lengths)), view)

    def encoded(self, settings: Mapping[str, int], streams: Sequence[bytes] = (b"",)) -> Encoded:
        """Golden's ``Encoded`` of these numbers."""
        config = lorenzo.Config(self.mode.tiled, *(bool(settings[name]) for name in FLAGS[1:]))
        book = Book.from_bytes(settings["counts"].to_bytes(7, "little"))
        return comet.Encoded(float(np.uint32(settings["step"] << 16).view(np.float32)), config, book, tuple(streams))

    # ----------------------------------------------------------------------------------------------- of the user's mode
    def plan(self, x: NDArray[np.float32], dtype: str = "float32", cdus: int = 1,
             **options: Any) -> tuple[Any, NDArray[np.uint32] | None, dict[str, int]]:
        eb, config, book = parameters(x, **options)
        return self._of(config), None, settings(prequantise.step(eb), config, book)

    def compress(self, x: NDArray[np.float32], cdus: int = 1, dtype: str = "float32", **options: Any) -> Compressed:
        eb, config, book = parameters(x, **options)
        return self._packed(x.shape, comet.compress(x, eb, config, book, cdus))

    def decompress(self, compressed: Compressed) -> np.ndarray:
        return restore(unpacked(compressed), compressed.shape)

    def pack(self, c: LanePayload, **options: Any) -> Compressed:
        return self._packed(c.shape, c.mode.model.encoded(c.settings, stream.unweave(c.payload, c.lengths)))

    def unpack(self, compressed: Compressed) -> LanePayload:
        e, c = unpacked(compressed), compressed
        return LanePayload(self._of(e.config), c.shape, stream.weave(e.streams), None, settings(e.s, e.config, e.book),
                      c.cdus, tuple(map(len, e.streams)))

    def _of(self, config):
        return self.mode if config.tiled else lane_modes(self.mode.fallback)[0]

    def _packed(self, shape, encoded):
        """The ``Compressed`` of golden's ``Encoded``."""
        flags = sum(getattr(encoded.config, name) << bit for bit, name in enumerate(FLAGS))
        side = struct.pack("<HB", bfloat16(encoded.s), flags) + encoded.book.to_bytes()
        cdus = len(encoded.streams)
        if cdus > 1:
            side += struct.pack(f"<{cdus}Q", *map(len, encoded.streams))
        return Compressed(self.mode.name, shape, b"".join(encoded.streams), {"cdus": cdus}, side)

    def side_bytes(self, shape: Sequence[int], cdus: int = 1, **options: Any) -> int:
        return HEAD + (8 * cdus if cdus > 1 else 0)

    def size(self, shape: Sequence[int], dtype: str = "float32", **options: Any) -> int | None:
        return None

    def check(self, compressed: Compressed, **more: Any) -> None:
        unpacked(compressed)
        if compressed.length > PER_BYTE * compressed.payload_bytes:
            raise ValueError(f"a payload of {compressed.payload_bytes} bytes cannot hold {compressed.length} values")

    def saturated(self, x: NDArray[np.float32], compressed: Compressed) -> int:
        return 0

    def facts(self, compressed: Compressed) -> dict[str, Any]:
        e = unpacked(compressed)
        names = [name for name, config in lorenzo.CONFIGS.items() if config == e.config]
        return {"error_bound": e.s / 2, "predictor": names[0] if names else str(e.config),
                "code_lengths": list(e.book.counts)}


def restore(encoded: Encoded, shape: Sequence[int]) -> NDArray[np.float32]:
    """The values of an ``Encoded``. Raises ValueError for streams that end early or go on."""
    x, error = comet.decompress(encoded, shape)
    if error:
        what = "end early" if Error.SHORT in error else "have bytes left"
        raise ValueError(f"the streams {what}")
    return x


def unpacked(compressed: Compressed) -> Encoded:
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


def parameters(x: NDArray[np.float32], error_bound: float | None, relative_bound: float | None, l2: float | None,
           predictor: str, among: Sequence[Config] = ()) -> tuple[float, Config, Book]:
    """What software decides: bound, predictor and book. Raises ValueError if the predictor is none of those ``among``
    which it may choose."""
    eb = bound(x, error_bound, relative_bound, l2)
    candidates = configs(x.shape, predictor)
    if among and not (candidates := [config for config in candidates if config in among]):
        raise ValueError(f"predictor {predictor} does not exist in this mode of a lane")
    return eb, *comet.choose(x, prequantise.step(eb), candidates)


def configs(shape: Sequence[int], predictor: str) -> list[Config]:
    """Golden's configurations of a predictor, of which the cheapest one is taken."""
    names = UNPREDICTED if predictor == "none" else (predictor,)
    return lorenzo.legal(shape) if predictor == "auto" else [lorenzo.CONFIGS[name] for name in names]


def bfloat16(s: float) -> int:
    """The bits of a step, which is one."""
    return int(np.float32(s).view(np.uint32) >> 16)


def bound(x: NDArray[np.float32], error_bound: float | None, relative_bound: float | None, l2: float | None) -> float:
    """The absolute error bound, of which one is given. Raises ValueError where it would be too small for a step."""
    if error_bound is not None:
        return error_bound
    with np.errstate(invalid="ignore"):
        low, high = float(x.min()), float(x.max())
    if relative_bound is not None and math.isfinite(low - high):
        return range_bound(low, high, relative_bound)
    finite = x[np.isfinite(x)]
    if not finite.any():
        return 1.0
    if relative_bound is not None:
        return range_bound(float(finite.min()), float(finite.max()), relative_bound)
    assert l2 is not None
    return l2_bound(np.abs(finite[finite != 0], dtype=np.float64), l2)


def range_bound(low: float, high: float, relative_bound: float) -> float:
    """The error bound of values from ``low`` to ``high``, as a share of that range; of one number: a share of that."""
    if low == high == 0:
        return 1.0  # zeros stay what they are with any bound
    eb = relative_bound * (high - low or abs(high))
    if 2 * eb < prequantise.SMALLEST_STEP:
        raise ValueError(f"relative_bound {relative_bound:g} needs an error bound of {eb:g}, legal are 2^-126 "
                         "(1.18e-38) and more")
    return eb


def l2_bound(values: NDArray[np.float64], error: float) -> float:
    """Half of the largest step that keeps the relative L2 error of magnitudes (float64) within ``error``; found by
    bisection, as if the error rose with every step, which it nearly does."""
    limit = error * np.linalg.norm(values)

    def step(number):  # the steps in ascending order, 128 an octave
        exponent, mantissa = divmod(number, 128)
        return math.ldexp(128 + mantissa, exponent)

    def number(s):
        fraction, exponent = math.frexp(s)
        return 128 * (exponent - 8) + math.floor(math.ldexp(fraction, 8)) - 128

    def within(s):
        q = np.floor(values / s + 0.5)
        return np.linalg.norm(np.where(q > prequantise.LARGEST, 0, values - q * s)) <= limit  # outliers lose nothing

    # Below the first one no value is off by more than all may be in the mean; the second one makes all of them 0.
    low = number(2 * limit / math.sqrt(values.size))
    high = number(min(4 * float(values.max()), prequantise.LARGEST_STEP))
    if low < number(prequantise.SMALLEST_STEP):
        raise ValueError(f"l2 {error:g} needs an error bound below 2^-126 (1.18e-38)")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if within(step(middle)) else (low, middle)
    return step(low) / 2


def settings(s: float, config: Config, book: Book) -> dict[str, int]:
    """A number for each setting of a lane's mode."""
    flags = {name: int(getattr(config, name)) for name in FLAGS if name != "tiled"}
    return {"step": bfloat16(s), **flags, "counts": int.from_bytes(book.to_bytes(), "little")}
