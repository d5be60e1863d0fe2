"""The models of modes, in NumPy: :class:`Codec`, and :class:`LaneCodec`, which consists of a lane's stages."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from actcodec.codecs.compressed import Compressed
from actcodec.codecs.mode import Mode, import_object
from actcodec.codecs.registry import by_code, effective
from actcodec.golden.jpegact import cdu, sfpr
from actcodec.golden.offload import blocks

__all__ = ["Codec", "LaneCodec", "LanePayload"]


class Codec:
    """The model of a :class:`~actcodec.codecs.mode.Mode`. Tensors are float32, of 2 or 4 dimensions, in C order; in a
    mode with ``halves`` also uint16, the words of 16-bit values; in a mode with ``codes`` also int8, its codes."""

    def __init__(self, mode: Any) -> None:
        self.mode = mode

    def compress(self, x: NDArray[np.float32], **options: Any) -> Compressed:
        """The :class:`~actcodec.codecs.compressed.Compressed` of a tensor, with a value for each of the mode's
        options."""
        raise NotImplementedError

    def decompress(self, compressed: Compressed) -> np.ndarray:
        """The tensor. Raises ValueError for an inconsistent payload."""
        raise NotImplementedError

    def side_bytes(self, shape: Sequence[int], **options: Any) -> int:
        """Bytes of side information; ``options`` are those that a file has."""
        return 0

    def size(self, shape: Sequence[int], **options: Any) -> int | None:
        """Bytes of payload and side information, or None if they do not depend on the shape alone."""
        return None

    def check(self, compressed: Compressed, **more: Any) -> None:
        """Raises ValueError where payload, side information and shape contradict each other, as far as can be checked
        without decompression. ``more`` is passed to :meth:`size`."""
        c = compressed
        size = self.size(c.shape, **more, **c.options)
        if size is not None and c.payload_bytes != size - len(c.side):
            raise ValueError(f"payload has {c.payload_bytes} bytes, mode {c.mode} needs {size - len(c.side)}")

    def saturated(self, x: NDArray[np.float32], compressed: Compressed) -> int:
        """The number of values beyond the range of the mode."""
        return 0

    def facts(self, compressed: Compressed) -> dict[str, Any]:
        """Further lines of ``actcodec info``."""
        return {}

    def beside(self, network: str, graph: Any, minibatch: int, **options: Any) -> Iterable[tuple[str, Any]]:
        """Further rows of ``actcodec mfr``: pairs of a name and bytes, in total or for each category of
        ``golden/common/footprint.py``."""
        return ()


@dataclass(frozen=True, eq=False)
class LanePayload:
    """A compressed tensor in the layout of a lane, as its driver returns and takes it."""

    mode: Mode  # of the lane
    shape: tuple[int, ...]
    payload: bytes = field(repr=False)  # as it passes the stream
    scales: np.ndarray | None  # k of each channel, float32; None in a mode without scales
    settings: dict[str, int]
    cdus: int
    lengths: tuple[int, ...] = ()  # bytes of each lane's stream, in a mode whose payload is streams
    dtype: str = "float32"  # of the tensor in memory

    @property
    def view(self) -> Any:
        return self.mode.model.view(self.shape)

    @property
    def blocks(self) -> int:
        return self.view.blocks(self.mode.tiled)

    @property
    def payload_bytes(self) -> int:
        """Without the padding of the streams' last turns."""
        return sum(self.lengths) if self.lengths else len(self.payload)


class LaneCodec(Codec):
    """The model of a lane's mode, which consists of its stages' models.

    Side information is the scales, as bfloat16, then the settings that do not follow from options.
    """

    smallest = sfpr.SMALLEST  # scale that is not 0

    @cached_property
    def path(self) -> Any:
        return cdu.Path([import_object(stage.model)() for stage in self.mode.stages], self.mode.tiled)

    # ----------------------------------------------------------------------------------------- of the lane's own mode
    def view(self, shape: Sequence[int]) -> Any:
        """How the mode sees a tensor: :class:`actcodec.golden.offload.blocks.View`."""
        return blocks.view(shape)

    def settings(self, **options: Any) -> dict[str, int]:
        """A number for each setting that follows from options; a DQT of shifts is ``table``."""
        plain = {name: getattr(value, "table", value) for name, value in options.items() if value is not None}
        return self.path.settings(**plain)

    def fit(self, x: NDArray[np.float32], signs: bool = False,
            **options: Any) -> tuple[NDArray[np.uint32] | None, dict[str, int]]:
        """What software chooses for a tensor: the words of the scale table, uint32, or None; the settings."""
        settings, view = self.settings(**options), self.view(x.shape)
        choices = {name: options[name] for name in sfpr.CHOICES if name in options}
        k = sfpr.scales(x, **choices).k if self.mode.scaled else None
        settings = self.path.fit(np.reshape(x, (view.rows, view.width)), view, k, settings, signs)
        return None if k is None else k.view(np.uint32), settings

    def encode(self, rows: np.ndarray, view: Any, words: Any, settings: Mapping[str, int],
               cdus: int, signs: bool = False) -> tuple[bytes, tuple[int, ...]]:
        """The payload of ``rows``, float32, for any view and any words in the scale table, and the lengths of its
        streams, if it has any."""
        k = sfpr.compressing(words) if self.mode.scaled else None
        return self.path.to_payload(rows, view, k, settings, cdus, signs), ()

    def decode(self, payload: bytes, view: Any, words: Any, settings: Mapping[str, int],
               cdus: int, lengths: Sequence[int] = ()) -> np.ndarray:
        """The rows of a payload, for any words in the scale table. Raises ValueError for a malformed payload."""
        r = sfpr.decompressing(words) if self.mode.scaled else None
        return self.path.from_payload(payload, view, r, settings, cdus)

    def counts(self, rows: np.ndarray, view: Any, words: Any, settings: Mapping[str, int]) -> sfpr.Counts:
        """What hardware counts when it compresses rows, arguments as in :meth:`encode`: NaNs, and values beyond the
        range of the mode."""
        return sfpr.counts(rows, sfpr.compressing(words)[view.channel, None]) if self.mode.scaled else sfpr.Counts(0, 0)

    # ----------------------------------------------------------------------------------------------- of the user's mode
    def plan(self, x: NDArray[np.float32], dtype: str = "float32",
             **options: Any) -> tuple[Any, NDArray[np.uint32] | None, dict[str, int]]:
        """The lane's mode that compresses a tensor, for a value of each option; and the results of :meth:`fit`."""
        lane = effective(self.mode.variant(options), x.shape, dtype)
        return lane, *lane.model.fit(x, **options)

    def compress(self, x: NDArray[np.float32], cdus: int = 1, dtype: str = "float32", **options: Any) -> Compressed:
        lane, words, settings = self.plan(x, dtype, **options)
        view = lane.model.view(x.shape)
        rows = np.ascontiguousarray(x).reshape(view.rows, view.width)
        payload, lengths = lane.model.encode(rows, view, words, settings, cdus, options.get("signs", False))
        return self.pack(LanePayload(lane, x.shape, payload, scales(words), settings, cdus, lengths, dtype), **options)

    def decompress(self, compressed: Compressed) -> np.ndarray:
        c = self.unpack(compressed)
        words = None if c.scales is None else sfpr.reciprocal(c.scales).view(np.uint32)
        return c.mode.model.decode(c.payload, c.view, words, c.settings, c.cdus, c.lengths).reshape(c.shape)

    def pack(self, c: LanePayload, **options: Any) -> Compressed:
        """The ``Compressed`` of a :class:`LanePayload`. Its mode may be a fallback of this one, if files can have
        that."""
        mode, implied = by_code(c.mode.code)
        mode = mode or self.mode
        options = {option.name: options[option.name] for option in mode.options
                   if option.stored and option.name in options}
        side = b"" if c.scales is None else (c.scales.view(np.uint32) >> 16).astype("<u2").tobytes()  # bfloat16s, exact
        side += b"".join(c.settings[setting.name].to_bytes(setting.bytes, "little")
                         for setting in file_settings(c.mode))
        return Compressed(mode.name, c.shape, c.payload, options | implied | {"cdus": c.cdus}, side, c.dtype)

    def unpack(self, compressed: Compressed) -> LanePayload:
        """The reverse of :meth:`pack`. Raises ValueError for inconsistent contents."""
        c = compressed
        variant = self.mode.variant(c.options)
        lane = effective(variant, c.shape, c.dtype)
        if lane.code != variant.code and by_code(lane.code)[0]:  # which has files of its own
            raise ValueError(f"shape {c.shape} is too small for mode {c.mode}")
        at = self._scale_bytes(c.shape, lane)
        k = (np.frombuffer(c.side[:at], "<u2").astype(np.uint32) << 16).view(np.float32) if lane.scaled else None
        if k is not None and not np.all((k == 0) | (k >= self.smallest) & (k <= sfpr.LARGEST)):
            raise ValueError("a scale is not a bfloat16 number that a tensor can have")
        settings = dict.fromkeys((setting.name for setting in lane.settings), 0) | lane.model.settings(
            **{name: value for name, value in c.options.items() if name != "cdus"})
        for setting in file_settings(lane):
            number = int.from_bytes(c.side[at : at + setting.bytes], "little")
            if limit := setting.broken(number, decompress=True):
                raise ValueError(f"{setting.name} is {number:#x}, legal is: {limit.text}")
            settings[setting.name] = number
            at += setting.bytes
        return LanePayload(lane, c.shape, c.payload, k, settings, c.cdus, dtype=c.dtype)

    def side_bytes(self, shape: Sequence[int], **options: Any) -> int:
        lane = self._lane(shape, **options)
        return self._scale_bytes(shape, lane) + sum(setting.bytes for setting in file_settings(lane))

    def size(self, shape: Sequence[int], dtype: str = "float32", **options: Any) -> int | None:
        lane = self._lane(shape, dtype, **options)
        if lane.format.shortest != lane.format.longest:
            return None
        count = lane.model.view(shape).blocks(lane.tiled)
        return count * lane.format.longest + self.side_bytes(shape, dtype=dtype, **options)

    def check(self, compressed: Compressed, **more: Any) -> None:
        c = self.unpack(compressed)  # first: a shape that its mode cannot have makes any length wrong
        super().check(compressed, dtype=compressed.dtype)
        least = c.mode.model.path.coder.shortest
        if not c.blocks * least <= c.payload_bytes <= c.blocks * c.mode.format.longest:  # type: ignore[union-attr]
            raise ValueError(f"a payload of {c.payload_bytes} bytes cannot hold {c.blocks} blocks of mode "
                             f"{compressed.mode}")

    def saturated(self, x: NDArray[np.float32], compressed: Compressed) -> int:
        c = self.unpack(compressed)
        words = None if c.scales is None else c.scales.view(np.uint32)
        return c.mode.model.counts(np.reshape(x, (c.view.rows, c.view.width)), c.view, words, c.settings).saturated

    def _lane(self, shape: Sequence[int], dtype: str = "float32", **options: Any) -> Any:
        return effective(self.mode.variant(options), shape, dtype)

    @staticmethod
    def _scale_bytes(shape: Sequence[int], lane: Any) -> int:
        return 2 * lane.model.view(shape).channels if lane.scaled else 0


def scales(words: NDArray[np.uint32] | None) -> NDArray[np.float32] | None:
    """The k in words of a scale table; the other bits are the mode's."""
    return None if words is None else (words & np.uint32(0xFFFF0000)).view(np.float32)


def file_settings(lane: Any) -> list[Any]:
    """The settings that files have; the others follow from options."""
    return [setting for setting in lane.settings if setting.stored]
