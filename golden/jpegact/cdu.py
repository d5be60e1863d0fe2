"""The whole path: a tensor to the payload that leaves n CDUs, and back (JPEG-ACT, section III and figure 8).

A CDU does what the stages of a mode do, one after another: `Path` has them, and one loop each way is all of it.
"""

from collections.abc import Iterable, Mapping
from io import BytesIO
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from actcodec.golden.common import heap
from actcodec.golden.jpegact.path import Coder, Plain, Stage
from actcodec.golden.offload import blocks
from actcodec.golden.offload.blocks import View
from actcodec.golden.offload.wire import stream

PART = 2048  # blocks at a time, about: what is computed between stays in a cache
NO_SETTINGS: Mapping[str, int] = MappingProxyType({})
FITTED = 16  # parts of a tensor, at most, that settings are fitted to


class Path:
    """The models of a mode's stages (see `path`), and whether its blocks are 8x8 tiles (else 8 consecutive sectors).

    Scales, where the first stage takes them, are one for each channel: `k` to compress, `r` to decompress.
    """

    def __init__(self, stages: Iterable[Stage], tiled: bool) -> None:
        stages = list(stages)
        self.tiled, self.rows = tiled, np.dtype(stages[0].rows if stages else np.float32)
        dtypes = [stage.dtype for stage in stages if stage.dtype]
        coded = bool(stages) and isinstance(stages[-1], Coder)
        self.coder: Any = stages.pop() if coded else Plain((dtypes or [np.float32])[-1])
        self.scaling: Any = stages.pop(0) if stages and hasattr(stages[0], "quantize") else None
        self.stages = stages

    def settings(self, **options: Any) -> dict[str, int]:
        """The settings that follow from a mode's options. Raises ValueError for values that are not legal."""
        settings: dict[str, int] = {}
        for stage in (*self.stages, self.coder):
            settings |= stage.settings(**options)
        return settings

    def fit(self, rows: NDArray[np.float32], view: View, k: np.ndarray | None, settings: Mapping[str, int],
            signs: bool = False) -> dict[str, int]:
        """`settings`, and those that fit these rows, or a part of them if they are many. Arguments as in
        `to_payload`."""
        settings = dict(settings)
        if not any(hasattr(stage, "fit") for stage in (*self.stages, self.coder)):
            return settings
        every = parts(view.blocks(self.tiled), 1)
        samples = [self.gather(rows, view, k, part, signs) for part in every[:: -(-len(every) // FITTED)]]
        for stage in (*self.stages, self.coder):
            if hasattr(stage, "fit"):
                settings |= stage.fit(np.concatenate(samples), settings)
            samples = [stage.forward(x, settings) for x in samples]
        return settings

    def gather(self, x: NDArray[np.float32], view: View, k: Any, part: slice,
               signs: bool = False) -> np.ndarray:
        """Blocks of rows `x`: [n, 8, 8] where they are tiles, else [n, 64]."""
        values = np.zeros((part.stop - part.start) * blocks.BLOCK, self.scaling.dtype if self.scaling else self.rows)
        for rows, columns, place in blocks.pieces(view, self.tiled, part.start, part.stop):
            piece = x[rows, columns]
            if self.scaling:
                piece = self.scaling.quantize(piece, k[view.channel_of(rows), None], signs)
            blocks.fill(values[place], piece, self.tiled)
        return values.reshape(self._shape(part))

    def scatter(self, values: np.ndarray, view: View, r: Any, part: slice,
                x: NDArray[np.float32]) -> None:
        """The reverse of `gather`, into rows `x`."""
        values = values.reshape(-1)
        for rows, columns, place in blocks.pieces(view, self.tiled, part.start, part.stop):
            piece = x[rows, columns]
            if not self.scaling:
                blocks.drain(values[place], piece, self.tiled)
                continue
            y = np.empty(piece.shape, self.scaling.dtype)
            blocks.drain(values[place], y, self.tiled)
            piece[:] = self.scaling.dequantize(y, r[view.channel_of(rows), None])

    def _shape(self, part):
        n = part.stop - part.start
        return (n, blocks.LANES, blocks.LANES) if self.tiled else (n, blocks.BLOCK)

    def to_payload(self, rows: np.ndarray, view: View, k: np.ndarray | None = None,
                   settings: Mapping[str, int] = NO_SETTINGS, cdus: int = 1, signs: bool = False) -> bytes:
        """The payload (bytes) of `rows`, float32 (uint16 in modes of 16-bit words), through any View, as `cdus` CDUs
        make it together.

        With `signs`, no positive value becomes 0 under a scale (see `sfpr.quantize`). Raises TypeError for other rows,
        ValueError unless `cdus` is an int, 1 to 8.
        """
        if rows.dtype != self.rows:
            raise TypeError(f"tensor is {rows.dtype}, has to be a {self.rows} array")
        stream.order(0, cdus)  # checks
        payload = BytesIO()  # grows in place, and hands out what it has without a copy
        heap.settle()
        for part in parts(view.blocks(self.tiled), cdus):
            x = self.gather(rows, view, k, part, signs)
            for stage in self.stages:
                x = stage.forward(x, settings)
            coded, sizes = self.coder.encode(x, settings)
            payload.write(stream.interleave(coded, sizes, cdus)[0])
        return payload.getvalue()

    def from_payload(self, payload: bytes, view: View, r: np.ndarray | None = None,
                     settings: Mapping[str, int] = NO_SETTINGS, cdus: int = 1) -> np.ndarray:
        """The reverse of `to_payload`: rows of the same type, [rows, width].

        Raises ValueError if the payload's masks, or lengths, do not add up to its length, and for a malformed block:
        which one, counted in the tensor's part that the message names.
        """
        heap.settle()
        n = view.blocks(self.tiled)
        sizes = self.coder.sizes(payload, n)
        data = np.frombuffer(payload, np.uint8)
        rows, at = np.empty((view.rows, view.width), self.rows), 0
        for part in parts(n, cdus):
            end = at + int(sizes[part].sum())
            try:
                x = self.coder.decode(*stream.deinterleave(data[at:end], sizes[part], cdus), self._shape(part),
                                      settings)
            except ValueError as error:
                raise ValueError(f"{error}, from block {part.start} on" if part.start else str(error)) from error
            for stage in reversed(self.stages):
                x = stage.backward(x, settings)
            self.scatter(x, view, r, part, rows)
            at = end
        return rows


def parts(n: int, cdus: int) -> list[slice]:
    """Numbers of consecutive blocks that are coded together: all CDUs have finished as many groups before and after."""
    run = blocks.GROUP * cdus
    step = max(PART // run, 1) * run
    return [slice(i, min(i + step, n)) for i in range(0, n, step)]
