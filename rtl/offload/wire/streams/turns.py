"""Whose turn it is to put bytes into a packet, or to get some of it, where lanes have streams without blocks."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.onehot_shift import choose
from actcodec.rtl.offload.wire.round_robin import PACKET, check_cdus

__all__ = ["SLOTS", "TURN", "Turns"]

TURN = 8  # bytes that a lane moves when it is its turn
SLOTS = PACKET // TURN  # turns of a packet


def counted(bits):
    """How many of them are set, one-hot."""
    result = [Const(1, 1)]
    for bit in bits:
        result = [~bit & same | bit & less for same, less in zip([*result, 0], [0, *result], strict=True)]
    return result


class Turns(wiring.Component):
    """Lanes take turns, slot after slot of a packet; one whose stream has ended is left out. In a cycle every lane can
    move once, in the order of turns, as far as the packet goes.

    Throughput: up to a turn of each lane a cycle. Latency, buffering: none. Combinational paths: ``able``, ``slots`` to
    ``moves``, ``after`` and ``whole``; these and ``ends`` to ``left``; none to ``at``.

    Source: COMET leaves open how several units share a stream; JPEG-ACT, section III-G (round robin).

    Parameters
    ----------
    cdus : int
        Lanes, 1 to 8.

    Ports
    -----
    start : input
        Pulse that starts a tensor; in the cycle before the first turn.
    used : input
        With ``start``: the lanes that have a stream.
    able : input
        Lanes that can move in this cycle.
    ends : input
        Lanes whose next turn is their last.
    slots : input, of 16 bits
        Those of the packet, the first ones.
    next : input
        The next cycle has the next packet.
    moves : output
        Lanes that move.
    at : output, for each lane, of 16 bits
        The slot in which it does, one-hot; none after the packets' ends.
    after : output
        Slots of the packet that are done after this cycle.
    whole : output
        All of them are.
    open, left : output
        Lanes whose stream has not ended, before this cycle and after it.

    Raises
    ------
    ValueError
        If ``cdus`` is not 1 to 8.
    """

    def __init__(self, cdus):
        check_cdus(cdus)
        self.cdus = cdus
        super().__init__({"start": In(1), "used": In(cdus), "able": In(cdus), "ends": In(cdus), "slots": In(SLOTS),
                          "next": In(1), "moves": Out(cdus), "at": Out(SLOTS).array(cdus),
                          "after": Out(range(SLOTS + 1)), "whole": Out(1), "open": Out(cdus), "left": Out(cdus)})

    def elaborate(self, platform):
        m = Module()
        done = Signal(range(SLOTS + 1))
        spot = Signal(SLOTS + 1, init=1)  # the same, one-hot
        pending = Signal(self.cdus)  # lanes that still have a turn in this round
        rest = Signal(self.cdus)  # after this cycle
        # What holds for a lane is chosen by how many have their turn before it; for each number it is known early.
        final = self.slots & ~(self.slots >> 1)  # the packet's last slot
        counts = range(self.cdus + 1)
        spots = [(spot << count)[: SLOTS + 1] for count in counts]
        inside = [(one[:SLOTS] & self.slots).any() for one in spots]
        last = [(one[:SLOTS] & final).any() for one in spots]
        closing = Signal(self.cdus)  # a lane's slot is the packet's last one
        able = 1
        for c in range(self.cdus):
            able &= ~pending[c] | self.able[c]
            before = counted(pending[:c])
            m.d.comb += [self.at[c].eq(choose(zip(before, spots, strict=False))),
                         closing[c].eq(choose(zip(before, last, strict=False))),
                         # Each lane before it has a slot if it has one.
                         self.moves[c].eq(pending[c] & able & choose(zip(before, inside, strict=False)))]
        moved = counted(self.moves)
        following = choose(zip(moved, spots, strict=True))
        m.d.comb += [
            self.after.eq(choose((one, (done + count)[: len(done)]) for count, one in enumerate(moved))),
            self.whole.eq((spot & Cat(~self.slots[0], final)).any() | (self.moves & closing).any()),
            self.left.eq(self.open & ~(self.moves & self.ends)),
            rest.eq(pending & ~self.moves),
        ]
        m.d.sync += [self.open.eq(self.left), pending.eq(Mux(rest.any(), rest, self.left)),
                     done.eq(Mux(self.next, 0, self.after)), spot.eq(Mux(self.next, 1, following))]
        with m.If(self.start):
            m.d.sync += [self.open.eq(self.used), pending.eq(self.used), done.eq(0), spot.eq(1)]
        return m
