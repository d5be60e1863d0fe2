"""What any legal descriptor means: golden's payload of a tensor's rows, and its rows of a payload, whatever the mode.

Nothing here asks where a descriptor comes from: its rows and channels need not be those of any shape.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from actcodec.codecs import Mode
from actcodec.golden.comet import comet
from actcodec.golden.division import codec
from actcodec.golden.division import stream as division
from actcodec.golden.offload import blocks, scan
from actcodec.golden.offload.memory import formats
from actcodec.golden.offload.wire import stream
from actcodec.rtl.offload.wire.block_format import MASK
from tb.comet.streams import counts, restored

__all__ = ["Descriptor", "Encoded"]

class Encoded(NamedTuple):
    """What comes of a tensor that is compressed."""

    payload: bytes
    nans: int = 0
    saturated: int = 0
    clipped: bool = False
    lengths: tuple = ()  # of the lanes' streams
    histogram: list | None = None


@dataclass(frozen=True, eq=False)
class Descriptor:
    """A tensor as the registers describe it, but for where it lies, and ``cdus``, the lanes that share it."""

    mode: Mode  # of a lane
    cdus: int
    rows: int
    width: int
    height: int = 1
    channels: int = 1
    signs: bool = False
    settings: dict = field(default_factory=dict)  # ``table`` is a DQT of shifts
    format: str = "float32"  # of values in memory

    @property
    def bytes(self):
        """Bytes of a value."""
        return formats.bytes_of(self.format)

    @property
    def lane(self):
        """The mode that a lane has for it."""
        return {2: self.mode.halves, 1: self.mode.codes}.get(self.bytes) or self.mode

    def values(self, x):
        """Rows as memory has them, as the lane's mode sees them."""
        return formats.widen(x, self.format) if self.bytes == 2 and not self.mode.halves else x

    def stored(self, x):
        """The reverse."""
        return formats.narrow(x, self.format) if self.bytes == 2 and not self.mode.halves else x

    @property
    def view(self):
        return blocks.View(self.rows, self.width, self.channels, self.height, self.mode.tiled)

    @property
    def blocks(self):
        return self.view.blocks(self.mode.tiled)

    @property
    def scales(self):
        """How many entries of the scale table are looked at, its first ones; none in a mode without."""
        return min(self.channels, -(-self.rows // self.height)) if self.lane.scaled else 0

    def registers(self, decompress):
        """Values by their names in the map, all but addresses and ``stride``."""
        settings = sum(self.settings[setting.name] << setting.low for setting in self.mode.settings)
        return {"mode": self.mode.code, "decompress": int(decompress), "signs": int(self.signs),
                "format": formats.FORMATS.index(self.format), "rows": self.rows, "width": self.width,
                "height": self.height, "channels": self.channels, "table": self.settings.get("table", 0),
                "settings": settings}

    def scan(self, x):
        """The words of a table for all channels, and the statistics, of rows as memory has them."""
        x = formats.widen(x, self.format) if self.bytes == 2 else x
        channel = np.arange(self.rows) // self.height % self.channels
        largest = np.array([scan.largest(x[channel == c]) for c in range(self.channels)], np.float32)
        return scan.scale(largest).astype(np.float32).view(np.uint32), scan.statistics(x)

    # ------------------------------------------------------------------------------------------------------ compressing
    def compress(self, x, words=None):
        """:class:`Encoded`, of rows (float32, words of 16 bits, or codes, [rows, width]) and the words of the scale
        table (uint32 [scales])."""
        model, view, x = self.lane.model, self.view, self.values(x)
        if self.mode.format.endless:
            empty = self._streams
            one = comet.compress(x, empty.s / 2, empty.config, empty.book, self.cdus, view)
            return Encoded(stream.weave(one.streams), lengths=tuple(map(len, one.streams)),
                           histogram=counts(one, x, view))
        if self.mode.format.segmented:
            one, planes = model.encoded(x, view, words, self.settings, self.signs), model.planes(view)
            payload = division.interleave(one.payload, planes, model.bits, self.cdus)
            return Encoded(payload, one.nans, one.saturated, one.clipped > 0)
        payload, _ = model.encode(x, view, words, self.settings, self.cdus, self.signs)
        return Encoded(payload, *model.counts(x, view, words, self.settings))

    # ---------------------------------------------------------------------------------------------------- decompressing
    def decompress(self, payload, words=None):
        """Rows of a payload (bytes) in a mode of blocks, all of which are there, and the words of the scale table."""
        return self.stored(self.lane.model.decode(payload, self.view, words, self.settings, self.cdus))

    def restore(self, payload, lengths):
        """Rows of a payload, any bytes, in a mode of streams, with any ``lengths``; and the error code."""
        rows, code = restored(self._streams, self.view, payload, lengths)
        return self.stored(rows), code

    def block_sizes(self, payload):
        """Bytes of each of the blocks that a payload, any bytes, begins with, in its order."""
        form = self.lane.format
        if form.segmented:
            return codec.block_sizes(self.mode.model.planes(self.view), form.row)[stream.order(self.blocks, self.cdus)]
        if form.shortest == form.longest:
            return np.full(self.blocks, form.longest)
        sizes, at = np.zeros(self.blocks, int), 0
        for k in range(self.blocks):
            mask = payload[at + form.head - MASK : at + form.head]
            sizes[k] = form.head + form.row // 8 * int(np.bitwise_count(mask).sum())
            at += sizes[k]
        return sizes

    @property
    def _streams(self):
        """COMET's ``Encoded``, but for its streams."""
        return self.mode.model.encoded(self.settings, (b"",) * self.cdus)
