"""DIVISION: ``golden/division``. Side information are the scales k of the planes, as bfloat16."""

import numpy as np

from actcodec.codecs.codec import LaneCodec, scales
from actcodec.golden.division import codec, memory, stream, table
from actcodec.golden.division import view as views
from actcodec.golden.jpegact import sfpr

__all__ = ["Division"]


class Division(LaneCodec):
    """Averages are of segments, which reach from one block into another: the model takes the path as one."""

    smallest = np.finfo(np.float32).tiny

    @property
    def bits(self):
        return self.mode.format.row

    def view(self, shape):
        return views.view(shape).jpegact

    def settings(self, seed=0, rounding="stochastic", offset="mean", **options):
        return {"seed": seed, "minimum": int(offset == "min"), "nearest": int(rounding == "nearest")}

    def fit(self, x, lfc="auto", offset="mean", **options):
        if lfc == "auto":
            planes, lfc = table.auto(x, self.bits, offset)
        else:
            planes, lfc = table.table(x, self.bits, lfc == "on", offset), lfc == "on"
        words = planes.k.view(np.uint32) | planes.delta.view(np.uint8)
        return words, self.settings(offset=offset, **options) | {"lfc": int(lfc)}

    def encode(self, rows, view, words, settings, cdus, signs=False):
        encoded, planes = self.encoded(rows, view, words, settings, signs), self.planes(view)
        return stream.interleave(encoded.payload, planes, self.bits, cdus), ()

    def encoded(self, rows, view, words, settings, signs=False):
        """Golden's ``Encoded`` of rows, with the counts of what was clipped."""
        planes = self.planes(view)
        k, delta = scales(words)[: planes.planes], words[: planes.planes].astype(np.uint8).view(np.int8)
        return codec.encode(rows, table.Table(k, delta), self.bits, settings["seed"], bool(settings["lfc"]),
                            "nearest" if settings["nearest"] else "stochastic",
                            "min" if settings["minimum"] else "mean", planes, signs)

    def decode(self, payload, view, words, settings, cdus, lengths=()):
        planes = self.planes(view)
        expected = codec.size(planes, self.bits)
        if len(payload) != expected:
            raise ValueError(f"payload has {len(payload)} bytes, {planes.rows} rows of {planes.width} values with "
                             f"{self.bits} bits have {expected}")
        payload = stream.deinterleave(payload, planes, self.bits, cdus)
        return codec.restore(payload, sfpr.decompressing(words)[: planes.planes], planes, self.bits)

    def planes(self, view):
        """DIVISION's view of the same rows; channels that no row has do not matter."""
        planes = min(view.channels, -(-view.rows // view.height))
        return views.View(self.mode.tiled, view.rows, view.width, planes, view.height)

    def size(self, shape, **options):
        return codec.size(shape, self._lane(shape, **options).format.row) + self.side_bytes(shape, **options)

    def check(self, compressed):
        super(LaneCodec, self).check(compressed)
        self.unpack(compressed)

    def beside(self, network, graph, minibatch, bits, **options):
        """What the paper has to compare with."""
        yield "DIVISION, appendix P", memory.appendix(graph, minibatch, bits)
        if bits == 2 and minibatch in memory.MINIBATCHES:
            for name, totals in memory.TABLE_1A.get(network, {}).items():
                if total := totals[memory.MINIBATCHES.index(minibatch)]:
                    yield f"{name}, Table 1a", total * 2**30
