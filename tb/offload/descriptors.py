"""What any legal descriptor means: golden's payload of a tensor's rows, and its rows of a payload, whatever the mode.

Nothing here asks where a descriptor comes from: its rows and channels need not be those of any shape.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from actcodec.codecs import Mode
from actcodec.golden.comet import comet, lorenzo
from actcodec.golden.comet.book import Book
from actcodec.golden.division import codec
from actcodec.golden.division import stream as division
from actcodec.golden.division.table import Table
from actcodec.golden.division.view import View
from actcodec.golden.jpegact import cdu, sfpr
from actcodec.golden.offload import blocks
from actcodec.golden.offload.wire import stream
from tb.comet.streams import counts, restored

__all__ = ["Descriptor", "Encoded"]

CODES = ("nibble_table", "rice_table", "divisors")  # settings that are the table of a coder, or of DIV


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
    shifts: np.ndarray | None = None  # uint8 [8, 8]
    settings: dict = field(default_factory=dict)

    @property
    def view(self):
        return blocks.View(self.rows, self.width, self.channels, self.height, self.mode.tiled)

    @property
    def blocks(self):
        return self.view.blocks(self.mode.tiled)

    @property
    def scales(self):
        """How many entries of the scale table are looked at, its first ones; none in a mode without."""
        return min(self.channels, -(-self.rows // self.height)) if self.mode.scaled else 0

    def registers(self, decompress):
        """Values by their names in the map, all but addresses and ``stride``."""
        settings = sum(self.settings[setting.name] << setting.low for setting in self.mode.told)
        shifts = 0 if self.shifts is None else sum(int(s) << 3 * k for k, s in enumerate(self.shifts.reshape(-1)))
        return {"mode": self.mode.code, "decompress": int(decompress), "signs": int(self.signs), "rows": self.rows,
                "width": self.width, "height": self.height, "channels": self.channels, "table": shifts,
                "settings": settings}

    # ------------------------------------------------------------------------------------------------------ compressing
    def compress(self, x, words=None):
        """:class:`Encoded`, of rows (float32 [rows, width]) and the words of the scale table (uint32 [scales])."""
        form, settings = self.mode.format, self.settings
        if form.endless:
            empty = self._streams
            one = comet.compress(x, empty.s / 2, empty.config, empty.book, self.cdus, self.view)
            return Encoded(stream.weave(one.streams), lengths=tuple(map(len, one.streams)),
                           histogram=counts(one, x, self.view))
        if form.segmented:
            table = Table((words & np.uint32(0xFFFF0000)).view(np.float32), words.astype(np.uint8).view(np.int8))
            one = codec.encode(x, table, form.row, settings["seed"], bool(settings["lfc"]),
                               "nearest" if settings["nearest"] else "stochastic",
                               "min" if settings["minimum"] else "mean", self._planes, self.signs)
            payload = division.interleave(one.payload, self._planes, form.row, self.cdus)
            return Encoded(payload, one.nans, one.saturated, one.clipped > 0)
        k = sfpr.compressing(words) if self.mode.scaled else None
        payload = cdu.to_payload(x, self.view, self.mode.name, k, *self._tables, self.cdus, self.signs,
                                 settings.get("dead_zone", 0))
        return Encoded(payload, *(sfpr.counts(x, k[self.view.channel, None]) if self.mode.scaled else ()))

    # ---------------------------------------------------------------------------------------------------- decompressing
    def decompress(self, payload, words=None):
        """Rows of a payload (bytes) in a mode of blocks, all of which are there, and the words of the scale table."""
        r = sfpr.decompressing(words) if self.mode.scaled else None
        if self.mode.format.segmented:
            bits = self.mode.format.row
            return codec.restore(division.deinterleave(payload, self._planes, bits, self.cdus), r, self._planes, bits)
        return cdu.from_payload(payload, self.view, self.mode.name, r, *self._tables, self.cdus)

    def restore(self, payload, lengths):
        """Rows of a payload, any bytes, in a mode of streams, with any ``lengths``; and the error code."""
        return restored(self._streams, self.view, payload, lengths)

    def block_sizes(self, payload):
        """Bytes of each of the blocks that a payload, any bytes, begins with, in its order."""
        form = self.mode.format
        if form.segmented:
            return codec.block_sizes(self._planes, form.row)[stream.order(self.blocks, self.cdus)]
        if form.kind == "fixed":
            return np.full(self.blocks, form.longest)
        sizes, at = np.zeros(self.blocks, int), 0
        for k in range(self.blocks):
            sizes[k] = form.head + form.row // 8 * int(np.bitwise_count(payload[at : at + form.head]).sum())
            at += sizes[k]
        return sizes

    # ------------------------------------------------------------------------------------------------- golden's own
    @property
    def _tables(self):
        """Of a CDU's path: the table of its quantizer, and that of its coder or of DIV."""
        table, code = self.shifts, cdu.TABLES.get(self.mode.name)
        if "steps" in self.settings:
            table = np.frombuffer(self.settings["steps"].to_bytes(64, "little"), np.uint8).reshape(8, 8)
        return table, code and code.of(next(self.settings[name] for name in CODES if name in self.settings))

    @property
    def _planes(self):
        """DIVISION's view; channels that no row has do not matter."""
        return View(self.mode.tiled, self.rows, self.width, self.scales, self.height)

    @property
    def _streams(self):
        """COMET's ``Encoded``, but for its streams."""
        flags = (bool(self.settings[name]) for name in ("horizontal", "vertical", "signed"))
        book = Book.from_bytes(self.settings["counts"].to_bytes(7, "little"))
        step = float(np.uint32(self.settings["step"] << 16).view(np.float32))
        return comet.Encoded(step, lorenzo.Config(self.mode.tiled, *flags), book, (b"",) * self.cdus)
