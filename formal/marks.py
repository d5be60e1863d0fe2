"""No loss, no repetition, order kept: one marked item is followed through the unit.

A beat is a number of items (words, bytes, beats of memory), perhaps with the end of a tensor behind them, which is an
item, too. An adversary marks any one item that comes in, of whatever content. From how many items were inside follows
which one it has to be when it comes out. Since any item may be the marked one, and a unit that has let one go or
invented one gives another in its place, all of them come out once and in their order. What is lost at the very end
would not be missed so; therefore a unit with the end of a tensor inside has to be valid within some cycles.
"""

from dataclasses import dataclass
from functools import reduce
from operator import or_

from amaranth.hdl import Cat, Mux, Signal, Value

__all__ = ["DRAINS", "ORDER", "ROOM", "Beat", "drains", "follow", "full", "padded"]

ORDER = "every item once, in order"
ROOM = "never holds more than its buffers"
DRAINS = "what has come in leaves without waiting for more"


@dataclass
class Beat:
    """What moves in a cycle in which ``moves``: the first ``count`` of ``items``, and behind them the end of a
    tensor if ``last``."""

    moves: Value
    items: list
    count: Value
    last: Value


def follow(h, comes, leaves, room, forgets=0):
    """Adds the property ``ORDER`` to a harness, and ``ROOM``: there are never more than ``room`` items inside.

    ``forgets``: all that came before, and in, this cycle, is thrown away behind what leaves in it.

    Returns how many items are inside, and how many ends of tensors.
    """
    m = h.m
    most = room + len(comes.items) + 2
    inside, ends = Signal(range(most), name="inside"), Signal(range(most), name="ends")
    coming = Signal(range(len(comes.items) + 2), name="coming")
    leaving = Signal(range(len(leaves.items) + 2), name="leaving")
    present = Signal(range(2 * most), name="present")
    m.d.comb += [
        coming.eq(Mux(comes.moves, comes.count + comes.last, 0)),
        leaving.eq(Mux(leaves.moves, leaves.count + leaves.last, 0)),
        present.eq(inside + coming),
    ]
    m.d.sync += [inside.eq(Mux(forgets, 0, present - leaving)),
                 ends.eq(Mux(forgets, 0, ends + (comes.moves & comes.last) - (leaves.moves & leaves.last)))]
    h.check(ROOM, inside <= room)
    h.check(ORDER, leaving <= present)

    # The marked item: how many are in front of it, whether it is the end of a tensor, its content.
    width = len(Value.cast(comes.items[0]))
    lane = h.free(range(len(comes.items) + 1), "lane")
    marks, marked, gone = h.free(1, "marks"), Signal(name="marked"), Signal(name="gone")
    ahead, end, content = Signal(range(most), name="ahead"), Signal(name="end"), Signal(width, name="content")
    now, front, is_end, value = (Signal(), Signal(range(2 * most), name="front"), Signal(name="is_end"),
                                 Signal(width, name="value"))
    begins = comes.moves & marks & ~marked & ~gone & (lane < coming)
    m.d.comb += [
        now.eq(marked | begins),
        front.eq(Mux(marked, ahead, inside + lane)),
        is_end.eq(Mux(marked, end, comes.last & (lane == comes.count))),
        value.eq(Mux(marked, content, choose(comes.items, lane))),
    ]
    leaves_now = now & leaves.moves & (front < leaving)
    h.check(ORDER, ~leaves_now | Mux(is_end, leaves.last & (front == leaves.count),
                                     (front < leaves.count) & (value == choose(leaves.items, front))))
    m.d.sync += [marked.eq(now & ~leaves_now & ~forgets), gone.eq(gone | leaves_now | (now & forgets)),
                 ahead.eq(front - leaving), end.eq(is_end), content.eq(value)]
    return inside, ends


def padded(payload):
    """Lanes beyond the count are zero."""
    return (payload.count <= len(payload.data)) & Cat(
        (payload.count > k) | (lane == 0) for k, lane in enumerate(payload.data)).all()


def full(payload):
    return payload.last | (payload.count == len(payload.data))


def choose(items, index):
    """The item of that index."""
    return reduce(or_, (Mux(index == k, Value.cast(item), 0) for k, item in enumerate(items)))


def drains(h, waits, patience, name=DRAINS):
    """Adds the property that ``waits`` never holds for more than ``patience`` cycles on end."""
    cycles = Signal(range(patience + 2), name="cycles")
    h.m.d.sync += cycles.eq(Mux(waits, cycles + 1, 0))
    h.check(name, cycles <= patience)
