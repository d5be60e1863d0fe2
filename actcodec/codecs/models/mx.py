"""MX: ``golden/mx``. No side information: the scales are in the payload."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from actcodec.codecs.codec import LaneCodec, LanePayload
from actcodec.codecs.compressed import Compressed
from actcodec.golden.jpegact import sfpr
from actcodec.golden.mx import element, path
from actcodec.golden.mx.coded import Coded
from actcodec.golden.mx.scale import GROUP, RULES
from actcodec.golden.offload import blocks
from actcodec.golden.offload.wire import stream

__all__ = ["Mx", "apart", "inline", "ordered", "scales_of"]


class Mx(LaneCodec):
    """Files may have the scales apart, unless there is a coder: those of all blocks, in the tensor's order, and then
    all elements."""

    @property
    def element(self) -> path.Element:
        """The stage that makes elements."""
        return next(stage for stage in (*self.path.stages, self.path.coder) if isinstance(stage, path.Element))

    def counts(self, rows: np.ndarray, view: Any, words: Any, settings: Mapping[str, int]) -> sfpr.Counts:
        x = blocks.split(rows, view, False).reshape(-1, GROUP)
        return sfpr.Counts(*path.counts(x, self.element.form, RULES[settings[self.element.rule]]))

    def saturated(self, x: NDArray[np.float32], compressed: Compressed) -> int:
        """By the scales that there are: files do not say by what rule."""
        c = self.unpack(compressed)
        values = blocks.split(x, c.view, False).reshape(-1, path.HEAD, GROUP)
        return int(np.count_nonzero(element.encode(values, scales_of(c)[..., None], c.mode.model.element.form)[1]))

    def pack(self, c: LanePayload, scales: str = "inline", **options: Any) -> Compressed:
        compressed = super().pack(c, scales=scales, **options)
        return replace(compressed, payload=apart(c)) if scales == "apart" else compressed

    def unpack(self, compressed: Compressed) -> LanePayload:
        c = super().unpack(compressed)
        return replace(c, payload=inline(c)) if compressed.options["scales"] == "apart" else c


def scales_of(c: LanePayload) -> NDArray[np.uint8]:
    """The scales of a payload's blocks in the tensor's order, uint8 [n, 2]."""
    coder = c.mode.model.path.coder
    if not isinstance(coder, Coded):
        return ordered(c)[:, : path.HEAD]
    payload, sizes = np.frombuffer(c.payload, np.uint8), coder.sizes(c.payload, c.blocks)
    return coder.scales(*stream.deinterleave(payload, sizes, c.cdus))


def ordered(c: LanePayload) -> NDArray[np.uint8]:
    """The blocks of a :class:`~actcodec.codecs.codec.LanePayload`, without a coder, in the tensor's order, uint8 [n,
    size]."""
    data = np.frombuffer(c.payload, np.uint8).reshape(c.blocks, -1)
    return data[np.argsort(stream.order(c.blocks, c.cdus))]


def apart(c: LanePayload) -> bytes:
    """The payload of a :class:`~actcodec.codecs.codec.LanePayload` as a file with its scales apart has it."""
    data = ordered(c)
    return data[:, : path.HEAD].tobytes() + data[:, path.HEAD :].tobytes()


def inline(c: LanePayload) -> bytes:
    """The reverse of :func:`apart`. A payload of another length stays as it is."""
    if len(c.payload) != c.blocks * c.mode.model.path.coder.shortest:
        return c.payload
    data, at = np.frombuffer(c.payload, np.uint8), c.blocks * path.HEAD
    data = np.concatenate([data[:at].reshape(c.blocks, -1), data[at:].reshape(c.blocks, -1)], axis=1)
    return data[stream.order(c.blocks, c.cdus)].tobytes()
