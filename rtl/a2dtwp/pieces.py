"""How eight values of some bits each lie in sectors, for Bitpack and Bitunpack, in whose bench it is proved."""

from functools import reduce
from operator import or_

from amaranth.hdl import Array, Cat, Const, Mux, Signal
from amaranth.lib import data

__all__ = ["SECTOR", "Phases", "check_widths", "values_layout"]

SECTOR = 256  # bits
LEGAL = (8, 10, 16, 24, 32)


def values_layout(width):
    """Eight values of ``width`` bits as in :data:`~actcodec.rtl.common.vectors.sectors`, which are those of 32 bits."""
    return data.StructLayout({"data": data.ArrayLayout(width, 8), "count": range(9), "last": 1})


def check_widths(widths):
    """``widths`` without repetitions; raises ValueError unless it is a tuple of one or more legal ones."""
    if not isinstance(widths, tuple | list) or not widths or any(
            type(width) is not int or width not in LEGAL for width in widths):
        raise ValueError(f"widths must be one or more of {', '.join(map(str, LEGAL))}, in a tuple, not {widths!r}")
    return tuple(dict.fromkeys(widths))


class Piece:
    """Where eight values of ``width`` bits lie in the array, if they are the piece number ``phase`` of a period, which
    is the least number of pieces that fill whole sectors."""

    def __init__(self, width, phase):
        self.width, self.phase = width, phase
        self.sector = self._bit(0) // SECTOR  # that it starts in
        self.start = self._bit(0) % SECTOR  # bit of that sector
        self.beyond = max(0, self.bit(7) + width - SECTOR)  # bits in the next one
        end = self.bit(7) + width + (2 if width == 10 else 0) * ((8 * phase + 8) % 3 == 0)
        self.fills = end >= SECTOR  # it takes the last bit of its sector
        self.closes = end == SECTOR  # and none of the next one, so that a period ends

    @property
    def leaves(self):
        """Nothing that comes after it lies in the last sector that it lies in, but in its upper half."""
        return self.closes or Piece(self.width, self.phase + 1)._reach > self._reach

    @property
    def _reach(self):
        return self.sector + bool(self.beyond)

    def _bit(self, lane):
        value = 8 * self.phase + lane
        return 32 * (value // 3) + 10 * (value % 3) if self.width == 10 else self.width * value

    def bit(self, lane):
        """First bit of a lane's value, from the start of the sector that the piece starts in."""
        return self._bit(lane) - SECTOR * self.sector

    def end(self, count):
        """Bytes of ``count`` of its values and of what lies before them in the sector that it starts in."""
        if self.width == 10:  # whole 32-bit words
            ends = Array(Const(4 * -(-(8 * self.phase + n) // 3), 6) for n in range(9))
            return ends[count]
        return self.start // 8 + count * (self.width // 8)


def period(width):
    """The pieces of a period."""
    pieces = [Piece(width, 0)]
    while not pieces[-1].closes:
        pieces.append(Piece(width, len(pieces)))
    return pieces


class Phases:
    """Which piece of a period comes next: one bit for each piece of each of ``widths``."""

    def __init__(self, m, widths, width):
        self.phase = Signal(2)
        self._chosen = []
        named = [width == index for index in range(len(widths) - 1)]
        named.append(~Cat(named).any())  # what names none is the last one
        for is_width, bits in zip(named, widths, strict=True):
            pieces = period(bits)
            for piece in pieces:
                chosen = Signal(name=f"piece_{bits}_{piece.phase}")
                m.d.comb += chosen.eq(is_width & (self.phase == piece.phase if len(pieces) > 1 else 1))
                self._chosen.append((chosen, piece))

    def __iter__(self):
        return iter(self._chosen)

    def any(self, what):
        """Whether the next piece is one that ``what`` is true of."""
        return Cat(Const(0, 1), *(chosen for chosen, piece in self if what(piece))).any()

    def select(self, value):
        """``value(piece)`` for the next one, or zero."""
        return reduce(or_, (Mux(chosen, value(piece), 0) for chosen, piece in self))

    def advance(self, restart):
        """Moves on by a piece, or to the first one."""
        return self.phase.eq(Mux(restart | self.any(lambda piece: piece.closes), 0, self.phase + 1))
