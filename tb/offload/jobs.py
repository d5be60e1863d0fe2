"""Tensors for an accelerator, whose descriptors come from the limits: what it is given, and what has to come of it."""

from dataclasses import dataclass, replace

import numpy as np

from actcodec.driver import LENGTH
from actcodec.golden.jpegact import sfpr
from actcodec.golden.offload import scan
from tb.offload import draws
from tb.offload.descriptors import Descriptor, Encoded

__all__ = ["Job"]


@dataclass(frozen=True, eq=False)
class Job:
    """A descriptor, rows for it, what they are compressed to, and where they lie; addresses are those that the
    accelerator sees."""

    descriptor: Descriptor
    x: np.ndarray  # [rows, width], float32, words of 16 bits, or codes
    words: np.ndarray  # of the scale table, to compress
    back: np.ndarray  # and to decompress
    encoded: Encoded
    address: int = 0
    stride: int = 0
    table: int = 0  # of scales
    scan: bool = False  # the accelerator finds the words to compress with

    @classmethod
    def draw(cls, random, descriptor, scan=False):
        """Rows and scales for a descriptor, golden's with ``scan``; it has no place yet."""
        x = draws.rows(random, descriptor)
        if scan:
            return cls.scanned(descriptor, x)
        words = draws.scale_words(random, descriptor, descriptor.values(x))
        return cls.of(descriptor, x, words, draws.back_words(random, words))

    @classmethod
    def scanned(cls, descriptor, x):
        """Rows whose scales the accelerator finds."""
        words = descriptor.scan(x)[0][: descriptor.scales]
        return replace(cls.of(descriptor, x, words, scan.reciprocal(words).view(np.uint32)), scan=True)

    @classmethod
    def of(cls, descriptor, x, words=(), back=()):
        """These rows; of scales there are as many as are looked at."""
        words, back = (np.asarray(table, np.uint32) for table in (words, back))
        return cls(descriptor, x, words, back, descriptor.compress(x, words))

    @classmethod
    def shaped(cls, mode, cdus, x, words=None, settings=None, signs=False, format="float32"):
        """A tensor of any shape in a lane's mode, with these words of the scale table, and what undoes them."""
        view, words = mode.model.view(x.shape), np.zeros(0, np.uint32) if words is None else words
        back = sfpr.reciprocal((words & np.uint32(0xFFFF0000)).view(np.float32)).view(np.uint32)
        return cls.of(Descriptor(mode, cdus, view.rows, view.width, view.height, view.channels, signs, settings or {},
                                 format),
                      np.ascontiguousarray(x).reshape(view.rows, view.width), words, back)

    def at(self, address, stride=None, gap=0):
        """The same at a place. ``gap`` bytes, a multiple of 32, are between the tensor and its table of scales."""
        d = self.descriptor
        stride = stride or d.bytes * d.width
        end = address + (d.rows - 1) * stride + d.bytes * d.width
        return replace(self, address=address, stride=stride, table=-(-end // 32) * 32 + gap)

    def within(self, address_width):
        """The same, with no more channels than are looked at if all their scales would not lie within addresses."""
        d = self.descriptor
        return self if self.table + 4 * d.channels <= 1 << address_width else replace(
            self, descriptor=replace(d, channels=max(d.scales, 1)))

    @property
    def mode(self):
        return self.descriptor.mode

    @property
    def payload(self):
        return self.encoded.payload

    @property
    def lengths(self):
        """Of the streams in the payload, which are none if it has blocks."""
        return self.encoded.lengths

    @property
    def end(self):
        """Behind what is read, or written, of the table of scales."""
        return self.table + 4 * (self.descriptor.channels if self.scan else self.descriptor.scales)

    def registers(self, decompress, lengths=()):
        """All that is written for it."""
        together = sum(int(length) << LENGTH * k for k, length in enumerate(lengths))
        return self.descriptor.registers(decompress) | {
            "base": self.address, "stride": self.stride, "scales": self.table} | (
            {"lengths_in": together} if lengths else {}) | ({"scan": 1} if self.scan and not decompress else {})

    def index(self, origin):
        """Where its bytes are in memory that begins at ``origin``."""
        row = self.address - origin + self.stride * np.arange(self.descriptor.rows)[:, None]
        return (row + np.arange(self.descriptor.bytes * self.descriptor.width)).reshape(-1)

    def __str__(self):
        d = self.descriptor
        return (f"{d.mode.name}, {d.format}, {d.rows} rows of {d.width}, {self.stride} bytes apart, at "
                f"{self.address:#x}; {d.height} rows a channel, {d.channels} channels; {'signs, ' * d.signs}"
                f"{'scan, ' * self.scan}"
                f"{d.settings}; {len(self.payload)} bytes of payload")
