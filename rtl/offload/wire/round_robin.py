"""What collector and splitter agree on: the order of blocks, and the pieces in which they move."""

from dataclasses import dataclass

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.offload.control.config import check_blocks
from actcodec.rtl.offload.wire.block_format import MASK

__all__ = ["GROUP", "MAX_CDUS", "PACKET", "RoundRobin", "Sizes", "check_cdus"]

PACKET = 128  # bytes that DMA moves at once
GROUP = 4  # blocks that a CDU works on before it is the next one's turn to be given some
MAX_CDUS = 8
HALF = 16  # bits of a number of blocks that is counted in two halves


def check_cdus(cdus):
    """Raises ValueError unless ``cdus`` is an int from 1 to 8."""
    if type(cdus) is not int or not 1 <= cdus <= MAX_CDUS:
        raise ValueError(f"cdus must be an integer from 1 to {MAX_CDUS}, not {cdus!r}")


@dataclass(frozen=True)
class Sizes:
    """Bytes of everything, for ``cdus`` CDUs that can do ``modes``.

    A CDU makes a block in eight cycles, so that four of them leave two cycles for each block: a block of up to 74 bytes
    moves in two pieces of a half, and in one where there are more CDUs. With one or two, and no counted blocks, it
    moves in three, of which the first has its first two chunks: when that has left, the next block's second chunk may
    come. Where some have longer rows, which make blocks longer than a packet, all move in pieces of a packet, as many
    as they have.

    Raises
    ------
    ValueError
        If ``cdus`` is not 1 to 8, or ``modes`` are not such of a lane, with blocks.
    """

    cdus: int
    modes: tuple

    def __post_init__(self):
        check_cdus(self.cdus)
        check_blocks(self.modes)

    @property
    def wide(self):
        """Some blocks have rows of more than 8 bytes, and may be longer than a packet."""
        return any(mode.format.row > 8 for mode in self.modes)

    @property
    def granule(self):
        """All sizes are multiples of it."""
        return 4 if all(mode.format.row == 32 for mode in self.modes) else 1

    @property
    def counted(self):
        """Some blocks say in their first byte how long they are."""
        return any(mode.format.counted for mode in self.modes)

    @property
    def halved(self):
        """Some blocks begin with a byte for each of their halves, and have neither mask nor first byte."""
        return any(mode.format.kind == "halves" for mode in self.modes)

    @property
    def halves(self):
        """Some blocks with a mask or a first byte have one for each of their halves."""
        return any(mode.format.halves for mode in self.modes)

    @property
    def head(self):
        """What is in front of the rows of any block."""
        return max(MASK, *(mode.format.head for mode in self.modes))

    @property
    def segmented(self):
        """Some blocks have a byte for each segment."""
        return any(mode.format.segmented for mode in self.modes)

    @property
    def segments(self):
        """How long some blocks are depends on where rows of the tensor begin in them."""
        return any(mode.format.kind == "segments" for mode in self.modes)

    @property
    def row(self):
        """A row of a block without its zeros."""
        return max(8, *(mode.format.row for mode in self.modes))

    @property
    def chunk(self):
        """The longest chunk of a block after the first: a row, or whatever a coder of counted blocks makes of it. A
        power of two."""
        return 32 if self.wide else MASK + 8 if self.counted else 8

    @property
    def front(self):
        """What the first chunk of a block is written to."""
        return max(self.chunk, self.first)

    @property
    def first(self):
        """The longest first chunk."""
        return max(MASK + self.row, self.head + 8)

    @property
    def block(self):
        """The longest block: heads of more than a mask are in front of rows of 8 bytes."""
        return max(MASK + 8 * self.row, self.head + 64)

    @property
    def hurried(self):
        """There must be a block in every cycle, not in every other one."""
        return self.cdus > 4

    @property
    def piece(self):
        """What moves in a cycle."""
        if self.wide:
            return PACKET
        if self.hurried:
            return self.block
        return self.block // 2 if self.cdus > 2 or self.counted else self.front + self.chunk

    @property
    def pieces(self):
        """Of the longest block."""
        return -(-self.block // self.piece)

    @property
    def early(self):
        """Rows at the beginning of a block that lie in its first piece, whatever their masks are."""
        return min((self.piece - self.head) // self.row, 8)

    def chunks_within(self, pieces):
        """Chunks at the beginning of a block that lie in its first so many pieces, however long they are."""
        return min(1 + (pieces * self.piece - self.front) // self.chunk, 8)


class RoundRobin(wiring.Component):
    """Whose block is next: of every run of ``cdus`` groups first the blocks 0, then the blocks 1, and so on.

    Throughput: one block a cycle, those that do not exist are skipped in no time. Combinational path: none.

    Source: JPEG-ACT, section III-G (round robin).

    Parameters
    ----------
    cdus : int
        Lanes, 1 to 8.

    Ports
    -----
    blocks : input
        Of the tensor, read at ``start``.
    start : input
        Pulse that starts a tensor.
    next : input
        Pulse: the block has been dealt with.
    active : output
        There is a block.
    turn : output
        The CDU to which it belongs: one bit for each.
    follows : output
        And that of the block behind it; none if it is the last.
    ends : output
        It is the last one of that CDU.
    last : output
        It is the last one of all.

    Raises
    ------
    ValueError
        If ``cdus`` is not 1 to 8.
    """

    def __init__(self, cdus):
        check_cdus(cdus)
        self.cdus = cdus
        super().__init__({"blocks": In(32), "start": In(1), "next": In(1), "active": Out(1), "turn": Out(cdus, init=1),
                          "follows": Out(cdus), "ends": Out(1), "last": Out(1)})

    def elaborate(self, platform):
        m = Module()
        run = GROUP * self.cdus
        # Blocks of this run of groups and those after it; the upper half, and whether it has any, may follow
        # late, since then the lower one alone is more than any question is about.
        left = Signal(32, reset_less=True)
        upper = Signal(reset_less=True)
        borrow = Signal()
        index = Signal(2, reset_less=True)  # in the group

        # No question is about more than two runs.
        bits = (2 * run).bit_length()
        near = Signal(bits)
        m.d.comb += near.eq(Mux(upper | left[bits:HALF].any(), -1, left[:bits]))
        place = Signal(bits)  # of the block in the run, in memory's order
        number = Cat(Cat(self.turn[c] for c in range(self.cdus) if c >> bit & 1).any()
                     for bit in range((self.cdus - 1).bit_length()))
        m.d.comb += place.eq(Cat(index, number))
        across, down, over = Signal(), Signal(), Signal()
        m.d.comb += [
            across.eq(~self.turn[-1] & (near > place + GROUP)),
            down.eq((index != GROUP - 1) & (near > index + 1)),
            over.eq(near > run),
            self.follows.eq(Mux(across, self.turn << 1, down | over)),
            self.last.eq(~(across | down | over)),
            self.ends.eq(((index == GROUP - 1) | (near <= place + 1)) & (near <= Cat(Const(0, 2), number) + run)),
        ]
        m.d.sync += [borrow.eq(0), upper.eq(Mux(self.start, self.blocks, left)[HALF:].any())]
        with m.If(borrow):
            m.d.sync += left[HALF:].eq(left[HALF:] - 1)
        with m.If(self.next):
            m.d.sync += self.turn.eq(Mux(across, self.turn << 1, 1))
            with m.If(~across):
                m.d.sync += [index.eq(Mux(down, index + 1, 0)), self.active.eq(down | over)]
                with m.If(~down):
                    m.d.sync += Cat(left[:HALF], borrow).eq(left[:HALF] - run)
        with m.If(self.start):
            m.d.sync += [left.eq(self.blocks), borrow.eq(0), index.eq(0), self.turn.eq(1),
                         self.active.eq(self.blocks != 0)]
        return m
