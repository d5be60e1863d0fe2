"""What the accelerator counts: of a tensor, and of all lanes together. Its bench is the accelerator's."""

from functools import reduce
from operator import or_

from amaranth.hdl import Module, Mux, Signal

from actcodec.rtl.common.counter import Counter
from actcodec.rtl.common.numbers import INFINITY, MINUS_INFINITY, below
from actcodec.rtl.offload.wire.round_robin import MAX_CDUS

__all__ = ["add_up", "bins", "count", "extremes"]


def count(m: Module, registers, amounts, start):
    """Adds up ``amounts``, what happens in a cycle by name, and gives ``registers`` the sums; from ``start`` on. A
    "tensor" and a "stream" are bytes in and out, by the direction. The sums, by name."""
    control, status = registers.control, registers.status
    totals = {}
    for name, amount in amounts.items():
        m.submodules[f"count_{name}"] = counter = Counter(len(amount))
        m.d.comb += counter.clear.eq(start)
        m.d.sync += counter.amount.eq(amount)  # some are known late in a cycle
        totals[name] = counter.value
        if hasattr(status, name):
            m.d.comb += getattr(status, name).eq(counter.value)
    restored = Signal()  # the last tensor was decompressed, whatever the registers say of the next one
    with m.If(start):
        m.d.sync += restored.eq(control.decompress)
    m.d.comb += [
        status.bytes_in.eq(Mux(restored, totals["stream"], totals["tensor"])),
        status.bytes_out.eq(Mux(restored, totals["tensor"], totals["stream"])),
    ]
    return totals


def extremes(m: Module, status, lanes, used):
    """The least of the lanes' minima and the greatest of their maxima, over and over: of the lanes that are ``used``,
    and infinities without any."""
    turn, first = Signal(len(lanes), init=1), Signal()
    m.d.sync += [turn.eq(turn.rotate_left(1)), first.eq(turn[0])]
    for name, none in (("minimum", INFINITY), ("maximum", MINUS_INFINITY)):
        value, best = Signal(32, name=f"one_{name}"), Signal(32, name=f"best_{name}")
        m.d.sync += value.eq(reduce(or_, (Mux(turn[k], Mux(used[k], lane.statistics[name], none), 0)
                                          for k, lane in enumerate(lanes))))
        replaces = below(m, value, best) if name == "minimum" else below(m, best, value)
        with m.If(first | replaces):
            m.d.sync += best.eq(value)
        with m.If(first):
            m.d.sync += getattr(status, name).eq(best)


def add_up(m: Module, sums, lanes, used, launched, holds=None, at_once=1):
    """The lanes' values by the names of ``sums``, which get their totals, ``at_once`` of them after the other, over and
    over: of the lanes that are ``used``, once the tensor is ``launched``. While a signal ``holds``, sums stand."""
    turn = Signal(-(-len(lanes) // at_once), init=1)
    m.d.sync += turn.eq(turn.rotate_left(1))
    for name, result in sums.items():
        total = Signal(35)
        values = (reduce(or_, (Mux(turn[k // at_once] & used[k] & launched, getattr(lane, name), 0)
                               for k, lane in list(enumerate(lanes))[first::at_once])) for first in range(at_once))
        m.d.sync += total.eq(sum(values, Mux(turn[0], 0, total)))
        with m.If(turn[0] if holds is None else turn[0] & ~holds):
            m.d.sync += result.eq(total)


def bins(m: Module, registers, lanes, used, launched):
    """The same of the bin that the host asks for; ``counted`` once its count has passed the lanes' registers, and then
    all turns."""
    control, status, late = registers.control, registers.status, 2 * MAX_CDUS + 8
    last_bin, settled = Signal.like(control.bin), Signal(range(late + 1))
    m.d.sync += last_bin.eq(control.bin)
    m.d.comb += [lane.bin.eq(control.bin) for lane in lanes]
    m.d.comb += status.counted.eq((control.bin == last_bin) & (settled == late))
    with m.If(control.bin != last_bin):
        m.d.sync += settled.eq(0)
    with m.Elif(settled != late):
        m.d.sync += settled.eq(settled + 1)
    add_up(m, {"count": status.count}, lanes, used, launched)
