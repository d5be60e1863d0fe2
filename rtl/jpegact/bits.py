"""What the coders `nibble` and `rice` have in common: ports, the steps in which they move, values without a sign."""

from amaranth.hdl import C, Cat, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.carrysave import columns
from actcodec.rtl.common.packer import chunk_layout
from actcodec.rtl.common.vectors import vectors_layout
from actcodec.rtl.offload.control.config import rows_layout

__all__ = ["Coder", "Faults", "Parts", "fold", "unfold"]

LANES = 8  # values of a line


class Faults(data.Struct):
    """Why blocks of a stream are malformed."""

    header: 1  # there is no such length
    length: 1  # it is not what the codes add up to
    padding: 1  # what fills the last byte is not zero


def fold(value, straight):
    """u of a byte: 0, 1, 2, 3, ... for 0, -1, 1, -2, ..., and 255 for -128; if ``straight`` as it is."""
    return Mux(straight, value[:8], Cat(value[7], value[:7] ^ value[7].replicate(7)))


def unfold(u, straight):
    """The byte that :func:`fold` makes ``u`` of."""
    return Mux(straight, u, Cat(u[1:] ^ u[0].replicate(7), u[0]))


class Parts:
    """Registers and wires of a unit of which everything moves with a ``step``."""

    def __init__(self, m, step):
        self.m, self.step = m, step

    def wires(self, values, width):
        """Names for values with several readers, which would otherwise be built once for each of them."""
        wires = [Signal(width, name="wire") for _ in values]
        self.m.d.comb += [wire.eq(value) for wire, value in zip(wires, values, strict=True)]
        return wires

    def wire(self, value):
        """The same for one, as wide as it is."""
        return self.wires([value], len(value))[0]

    def at(self, register, value, when=1):
        """With a step, ``when`` that is so, the register takes the value."""
        with self.m.If(self.step & when):
            self.m.d.sync += register.eq(value)

    def register(self, value, width):
        """A register for a step."""
        register = Signal(width, reset_less=True, name="stage")
        self.at(register, value)
        return register

    def ones(self, bits):
        """How many of ``bits`` are set."""
        return self.wire(columns(self.m, [(bit, 0) for bit in bits], len(bits).bit_length()))

    def above(self, value, count):
        """Whether a value is above 0, 1, 2, ..., ``count`` bits; two digits in front of a level of gates."""
        low = self.wire(Cat(*(value[:3] > j for j in range(7)), C(0, 1)))
        if len(value) <= 3:
            return low[:count]
        high = self.wire(Cat(value[3:] > j for j in range(-(-count // 8))))
        equal = self.wire(Cat(~high[0], high[:-1] & ~high[1:]))
        return self.wire(Cat(high[j // 8] | (equal[j // 8] & low[j % 8]) for j in range(count)))

    def sum(self, values):
        """The sum of values, as a balanced tree."""
        half = len(values) // 2
        return self.wire(self.sum(values[:half]) + self.sum(values[half:])) if half else values[0]


class Coder(wiring.Component):
    """A code for blocks of 64 values, in both directions: 1 to 65 bytes, of which the first tells how many there are.

    All moves in steps, one for each line of 8 values, or row of 8 bytes, that comes in; after the last one steps go on
    until all lines have left. A block so waits until lines of the next ones come, unless its last one carries ``last``.

    Parameters
    ----------
    table : int
        Bits of the table.
    compress, decompress : int
        Steps from a line's, or a row's, to that in which it leaves.
    opens : int
        The phase with which the first row of a block enters; lines begin with phase 0.

    Ports
    -----
    i : stream of :func:`~actcodec.rtl.common.vectors.vectors_layout` of signed 8
        Blocks to compress, eight lines each: columns of a tile, vertical frequency ascending, or sectors.
    chunks : stream of :func:`~actcodec.rtl.common.packer.chunk_layout` of 16
        Compressed: eight chunks a block, of any size.
    rows, empty : stream of :func:`~actcodec.rtl.offload.control.config.rows_layout` of 8
        To decompress: the first row of a block with its first byte in place of a mask and 8 that follow,
        seven more with 8 bytes each, and anything where the block has ended; ``empty``: the row is zeros, and so is the
        first byte.
    o : stream of :func:`~actcodec.rtl.common.vectors.vectors_layout` of signed 8
        Decompressed blocks, 64 values whatever the stream is.
    faults : output, :class:`Faults`
        What was wrong with a block of this tensor. Until ``start``; complete a cycle after the last line was offered.
    decompress, table : input
        Constant from ``start`` on.
    start : input
        Pulse, a cycle or more before the first line or row of a tensor; only while none is under way.
    """

    def __init__(self, table, compress, decompress, opens):
        self._compress, self._decompress, self._opens = compress, decompress, opens
        values = stream.Signature(vectors_layout(signed(8)))
        super().__init__({
            "i": In(values),
            "chunks": Out(stream.Signature(chunk_layout(16))),
            "o": Out(values),
            "faults": Out(Faults),
            "decompress": In(1),
            "table": In(table),
            "rows": In(stream.Signature(rows_layout(8))),
            "empty": In(1),
            "start": In(1),
        })

    def _steps(self, m):
        """Moves lines through. Returns ``phase``, one-hot the line that enters; ``step``; ``inside``, whether there is
        a line in each place, the latest first; and ``leaves``, whether one is about to leave."""
        source, decompress = self.rows, self.decompress
        phase = Signal(LANES)
        step, entering, flush, valid, last = Signal(), Signal(), Signal(), Signal(), Signal(reset_less=True)
        inside, leaves, more, free = Signal(self._compress), Signal(), Signal(), Signal()
        m.d.comb += [
            free.eq(~valid | Mux(decompress, self.o.ready, self.chunks.ready)),
            entering.eq(~flush & Mux(decompress, source.valid, self.i.valid)),
            step.eq((entering | flush) & free),
            source.ready.eq(decompress & ~flush & free),
            self.i.ready.eq(~decompress & ~flush & free),
            leaves.eq(Mux(decompress, inside[self._decompress - 1], inside[self._compress - 1])),
            more.eq(Mux(decompress, inside[self._decompress - 2], inside[self._compress - 2])),
            self.o.valid.eq(valid & decompress),
            self.chunks.valid.eq(valid & ~decompress),
            self.o.p.last.eq(last),
            self.chunks.p.last.eq(last),
        ]
        with m.If(free):
            m.d.sync += valid.eq(step & leaves)
        with m.If(step):
            m.d.sync += [
                phase.eq(phase.rotate_left(1)),
                inside.eq(Cat(entering, inside)),
                flush.eq((entering & Mux(decompress, source.p.last, self.i.p.last))
                         | (flush & (more | ~leaves))),
                last.eq(flush & leaves & ~more),
            ]
        with m.If(self.start):
            m.d.sync += [phase.eq(Mux(decompress, 1 << self._opens, 1 << 0)), inside.eq(0)]
        return phase, step, inside, leaves
