"""DIVISION: ``golden/division``. Side information are the scales k of the planes, as bfloat16."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from actcodec.codecs.codec import LaneCodec, scales
from actcodec.codecs.compressed import Compressed
from actcodec.golden.division import codec, memory, stream, table
from actcodec.golden.division import view as views
from actcodec.golden.division.codec import Encoded
from actcodec.golden.jpegact import sfpr

__all__ = ["Division"]


class Division(LaneCodec):
    """Averages are of segments, which reach from one block into another: the model takes the path as one."""

    smallest = np.finfo(np.float32).tiny

    @property
    def bits(self) -> int:
        return self.mode.format.row

    def view(self, shape: Sequence[int]) -> Any:
        return views.view(shape).jpegact

    def settings(self, seed: int = 0, rounding: str = "stochastic", offset: str = "mean",
                 **options: Any) -> dict[str, int]:
        return {"seed": seed, "minimum": int(offset == "min"), "nearest": int(rounding == "nearest")}

    def fit(self, x: NDArray[np.float32], signs: bool = False, lfc: str = "auto", offset: str = "mean",
            **options: Any) -> tuple[NDArray[np.uint32] | None, dict[str, int]]:
        if lfc == "auto":
            planes, averaged = table.auto(x, self.bits, offset)
        else:
            averaged = lfc == "on"
            planes = table.table(x, self.bits, averaged, offset)
        words = planes.k.view(np.uint32) | planes.delta.view(np.uint8)
        return words, self.settings(offset=offset, **options) | {"lfc": int(averaged)}

    def encode(self, rows: np.ndarray, view: Any, words: Any, settings: Mapping[str, int], cdus: int,
               signs: bool = False) -> tuple[bytes, tuple[int, ...]]:
        encoded, planes = self.encoded(rows, view, words, settings, signs), self.planes(view)
        return stream.interleave(encoded.payload, planes, self.bits, cdus), ()

    def encoded(self, rows: np.ndarray, view: Any, words: Any, settings: Mapping[str, int],
                signs: bool = False) -> Encoded:
        """Golden's ``Encoded`` of rows, with the counts of what was clipped."""
        planes = self.planes(view)
        words = words[: planes.planes]
        k, delta = scales(words), words.astype(np.uint8).view(np.int8)
        assert k is not None
        return codec.encode(rows, table.Table(k, delta), self.bits, settings["seed"], bool(settings["lfc"]),
                            "nearest" if settings["nearest"] else "stochastic",
                            "min" if settings["minimum"] else "mean", planes, signs)

    def decode(self, payload: bytes, view: Any, words: Any, settings: Mapping[str, int], cdus: int,
               lengths: Sequence[int] = ()) -> np.ndarray:
        planes = self.planes(view)
        expected = codec.size(planes, self.bits)
        if len(payload) != expected:
            raise ValueError(f"payload has {len(payload)} bytes, {planes.rows} rows of {planes.width} values with "
                             f"{self.bits} bits have {expected}")
        payload = stream.deinterleave(payload, planes, self.bits, cdus)
        return codec.restore(payload, sfpr.decompressing(words)[: planes.planes], planes, self.bits)

    def planes(self, view: Any) -> Any:
        """DIVISION's view of the same rows; channels that no row has do not matter."""
        planes = min(view.channels, -(-view.rows // view.height))
        return views.View(self.mode.tiled, view.rows, view.width, planes, view.height)

    def size(self, shape: Sequence[int], dtype: str = "float32", **options: Any) -> int:
        return codec.size(shape, self._lane(shape, **options).format.row) + self.side_bytes(shape, **options)

    def check(self, compressed: Compressed, **more: Any) -> None:
        super(LaneCodec, self).check(compressed)
        self.unpack(compressed)

    def beside(self, network: str, graph: Any, minibatch: int, bits: int = 2,
               **options: Any) -> Iterable[tuple[str, Any]]:
        """What the paper has to compare with."""
        yield "DIVISION, appendix P", memory.appendix(graph, minibatch, bits)
        if bits == 2 and minibatch in memory.MINIBATCHES:
            for name, totals in memory.TABLE_1A.get(network, {}).items():
                if total := totals[memory.MINIBATCHES.index(minibatch)]:
                    yield f"{name}, Table 1a", total * 2**30
