"""What the two directions of max pooling share: what they are told, what they carry, and how they find the windows."""

from amaranth.hdl import Mux, Signal, signed
from amaranth.lib import data

__all__ = ["Axis", "Config", "Error", "Watch", "check_width", "positions", "values"]

values = data.StructLayout({"data": 32, "last": 1})  # float32 words in raster order
positions = data.StructLayout({"data": data.ArrayLayout(4, 2), "last": 1})  # a byte of the map


class Config(data.Struct):
    """What a tensor needs to be told before it starts."""

    planes: 32
    height: 16
    width: 16
    k: 2  # of the window, 2 or 3
    stride: 2  # 1 to 3
    padding: 2  # 0 or 1


class Error(data.Struct):
    """Why a tensor is not what it should be; stands until the next one starts."""

    config: 1  # a number that is zero or too large, or a window that is larger than the padded map; nothing was done
    short: 1  # a stream ended early; zeros stand for values that were missing; gradients or places alone add nothing
    excess: 1  # a stream went on after its last value; the rest was dropped
    position: 1  # a place outside of the window, or in the padding; its gradient was dropped


def check_width(width):
    """Raises ValueError unless ``width`` is legal as the widest map."""
    if not isinstance(width, int) or not 2 <= width <= 4096:
        raise ValueError(f"width must be 2 to 4096 values, not {width!r}")


class Axis:
    """A counter along the rows or the columns of a map, which knows where a window starts.

    ``position`` stands at the start of a window every ``stride`` steps from ``first`` (0 or 1) on, ``hit``, as long as
    the window ends in the padded map; ``final`` says that no other follows, ``edge`` that a window would end with the
    padded map. The number of windows, a quotient, is not needed.
    """

    def __init__(self, m, bits, stride):
        self._m, self._stride = m, stride
        self.position = Signal(bits)
        self.phase = Signal(2)
        self.hit, self.final, self.edge = Signal(), Signal(), Signal()
        self._limit = Signal(bits)
        self._final = Signal(signed(len(self._limit) + 1))  # below 0 where one stride is more than the map
        self._first = Signal()
        self._beyond, self._behind = Signal(signed(3)), Signal(signed(4))  # limit and final, less the size
        m.d.comb += [
            self.hit.eq((self.phase == 0) & (self.position <= self._limit) & ~(self._first & (self.position == 0))),
            self.final.eq(self.position >= self._final),
            self.edge.eq(self.position == self._limit),
        ]

    def load(self, size, k, padding, first=0):
        """Assigns what is known of the window; returns 1 if there is none. ``k`` is 2 or 3 here, whatever it is."""
        three = k[0]
        limit = Signal(signed(3))
        self._m.d.comb += limit.eq(Mux(padding, -three, -2 - three) + first)
        self._m.d.sync += [self._beyond.eq(limit), self._behind.eq(limit - self._stride + 1), self._first.eq(first)]
        return size < Mux(padding, 1, 2 + three)

    def measure(self, size):
        """Assigns what is known of the map; a cycle after :meth:`load`."""
        self._m.d.sync += [self._limit.eq(size + self._beyond), self._final.eq(size + self._behind)]

    def move(self, restart):
        """Assigns the next position, 0 if ``restart``."""
        turn = self.phase == self._stride - 1
        start = Mux(self._first, self._stride - 1, 0)
        self._m.d.sync += [
            self.position.eq(Mux(restart, 0, self.position + 1)),
            self.phase.eq(Mux(restart, start, Mux(turn, 0, self.phase + 1))),
        ]


class Watch:
    """Whether a stream has ended, and whether too early or too late: ``take`` is a transfer, ``final`` the one that
    should be its last."""

    def __init__(self, m, stream, error):
        self._m, self._stream, self._error = m, stream, error
        self.ended = Signal(init=1)

    def transfer(self, take, final):
        last = self._stream.p.last
        with self._m.If(take):
            self._m.d.sync += self.ended.eq(last)
            with self._m.If(last & ~final):
                self._m.d.sync += self._error.short.eq(1)
            with self._m.If(~last & final):
                self._m.d.sync += self._error.excess.eq(1)
