"""The payload in memory: what stands between the accelerator's packets and a memory port of its own."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common import axi
from actcodec.rtl.common.bursts import LIMIT
from actcodec.rtl.common.fifo import Fifo
from actcodec.rtl.common.packer import chunk_layout
from actcodec.rtl.common.target import target
from actcodec.rtl.offload.memory.reader import check_outstanding
from actcodec.rtl.offload.wire.round_robin import PACKET

__all__ = ["Payload"]

PARTS = PACKET // axi.BEAT  # beats of a packet
DIGIT = 18  # bits of an address that are counted in a cycle
STORED = 2 * LIMIT  # beats, of a burst that leaves and one that comes


class Payload(wiring.Component):
    """Writes the packets of a frame to memory, or reads a frame from there.

    One walk through the space serves both directions, beat by beat. Bursts end at multiples of 256 bytes, as those of
    lanes do, at the end of the frame and at the end of the space, so none crosses 4 KiB.

    Whatever this port has begun ends without help from any other port. A burst of writes is stored whole before its
    address is offered, and then leaves without waiting for anything but ``w.ready``; of reads no more beats are
    requested than the FIFO has room for, so ``r.ready`` and ``b.ready`` are always 1.

    A frame that does not fit the space is accepted to its end, so that its length can be counted;
    ``overflow`` is set, and no byte beyond the space is written. Nor does an address wrap: the space ends with memory.

    Throughput: one beat per cycle, so a packet in 4. Latency: writing, 1 cycle from a packet to its first beat in the
    store, and from the last beat of a burst 2 to its address and 4 to its first beat of data; reading, 10 cycles from
    ``start`` to the address of a full burst, and 8 from the first of four beats to their packet. Buffering: two bursts
    of writes, ``outstanding`` beats of reads, a packet. Combinational paths: ``i.valid`` and ``i.p`` to ``i.ready``;
    ``o.ready`` goes to the FIFO's memory.

    Source: AMBA AXI, IHI 0022, sections A3.4.1 (bursts) and A3.4.3 (strobes).

    Parameters
    ----------
    address_width : int
        Bits of a byte address, 12 to 64.
    outstanding : int
        Most beats of reads requested and not yet in a packet, and most bursts of writes without a response, at least 8.
        Full rate needs 16 more than the cycles of memory's latency. Also the depth of the FIFO of reads.

    Ports
    -----
    i : stream of :func:`~actcodec.rtl.common.packer.chunk_layout` of 128 bytes
        The frame to write: full packets, but the last one, whose bytes beyond ``count`` may be anything.
    o : stream of the same
        The frame that was read; without bytes, an empty packet.
    reads, writes : :class:`~actcodec.rtl.common.axi.Read`, :class:`~actcodec.rtl.common.axi.Write`
    decompress : input
        Read instead of write. Constant while ``busy``.
    base : input
        Address of the payload, a multiple of 32: the five bits below are ignored. Looked at with ``start``.
    size : input
        Bytes of the space, or of the frame to read. The low five bits are constant while ``busy``.
    start : input
        A pulse before each frame, while not ``busy``.
    abort : input
        Give up: no more bursts begin, but what is stored of one leaves, closed by a beat without strobes; beats under
        way are dropped. Held until ``busy`` falls; then the unit is as after reset.
    busy : output
        From ``start`` until the last packet is taken and all answers are here.
    error : output
        A response was not OKAY; stands until the next ``start``.
    overflow : output
        A byte of the frame was beyond the space; stands until the next ``start``.

    Raises
    ------
    ValueError
        If a parameter is out of range.
    """

    def __init__(self, address_width=40, outstanding=384):
        if not isinstance(address_width, int) or not 12 <= address_width <= 64:
            raise ValueError(f"address_width must be 12 to 64 bits, not {address_width!r}")
        check_outstanding(outstanding)
        self.address_width, self.outstanding = address_width, outstanding
        super().__init__({
            "i": In(stream.Signature(chunk_layout(PACKET))),
            "o": Out(stream.Signature(chunk_layout(PACKET))),
            "reads": Out(axi.Read(address_width)),
            "writes": Out(axi.Write(address_width)),
            "decompress": In(1),
            "base": In(address_width),
            "size": In(address_width),
            "start": In(1),
            "abort": In(1),
            "busy": Out(1),
            "error": Out(1),
            "overflow": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.stored = w = Fifo(axi.write, STORED, packets=True)
        m.submodules.arrived = r = Fifo(data.StructLayout({"data": 8 * axi.BEAT, "failed": 1}), self.outstanding)
        writing, reading = Signal(), Signal()  # packets are still to come in, or to leave
        part = Signal(range(PARTS))  # of the packet

        # ------------------------------------------------------------------------------------- the walk of the space
        index = Signal(self.address_width - 5, reset_less=True)  # the next beat, and how many begin after it
        left = Signal.like(index, reset_less=True)
        first = Signal(range(LIMIT), reset_less=True)  # of the burst, as the low bits of an index
        fresh, none, final = Signal(), Signal(), Signal()  # just started; no beat is left; the next one is the last
        limited = Signal()  # which has less than 32 bytes in the space
        tail = self.size[:5]
        beyond = [tail <= k for k in range(axi.BEAT)]  # bytes of the last beat that are not in the space
        if target(platform) == "lut":  # near the port, as the wires from what gives the size are long
            near = Signal(5 + len(beyond), reset_less=True)
            m.d.sync += near.eq(Cat(tail, beyond))
            tail, beyond = near[:5], near[5:]
        partial, steps, closes = Signal(), Signal(), Signal()
        edge = index[:3].all() | final  # with the beat a burst ends, whatever the frame does
        m.d.comb += partial.eq(tail.any())
        m.d.sync += fresh.eq(self.start)
        with m.If(self.start):
            m.d.sync += [index.eq(self.base[5:]), left.eq(self.size[5:]), first.eq(self.base[5:]), none.eq(0)]
        with m.If(fresh):
            m.d.sync += [none.eq((left == 0) & ~partial), final.eq((left == Mux(partial, 0, 1)) | index.all()),
                         limited.eq((left == 0) & partial)]
        with m.If(steps):
            m.d.sync += [none.eq(final), final.eq((left == Mux(partial, 1, 2)) | (index[1:].all() & ~index[0]))]
        # A carry is a cycle late: nobody looks at the upper digit in the cycle after a step that made one.
        for value, step in ((index, 1), (left, -1)):
            carry = Signal(name="carry")
            m.d.sync += carry.eq(steps & (value[:DIGIT] == (-1 if step == 1 else 0) % (1 << len(value[:DIGIT]))))
            with m.If(steps):
                m.d.sync += value[:DIGIT].eq(value[:DIGIT] + step)
            with m.If(carry):
                m.d.sync += value[DIGIT:].eq(value[DIGIT:] + step)
        with m.If(steps & ~final):
            m.d.sync += limited.eq((left == 1) & partial)
        with m.If(steps & closes):
            m.d.sync += first.eq(index + 1)

        # ----------------------------------------------------------------------------------------------------- bursts
        # That a beat closes a burst is known late: only then is it counted, and its address offered.
        burst = Signal(axi.address_layout(self.address_width), reset_less=True)
        offered = Signal(name="offered")
        under_way = Signal(range(self.outstanding + 1))  # beats of reads, or bursts of writes
        able, free, room, offers, comes, answers = (
            Signal(name=name) for name in ("able", "free", "room", "offers", "comes", "answers"))
        ar, aw = self.reads.ar, self.writes.aw
        fewer, added = Signal.like(under_way), Signal(range(LIMIT + 1))
        m.d.comb += [
            fewer.eq(under_way - (comes | answers)),
            added.eq(Mux(self.decompress, burst.length + 1, 1)),
            free.eq(~offered & ~ar.valid & ~aw.valid),
            able.eq(room & free),
            offers.eq(steps & closes),
            ar.p.eq(burst), aw.p.eq(burst),
            self.writes.b.ready.eq(1),
            answers.eq(self.writes.b.valid),
        ]
        m.d.sync += [
            offered.eq(offers),
            room.eq(under_way <= self.outstanding - LIMIT),  # a cycle late: two never follow each other at once
            under_way.eq(Mux(offered, fewer + added, fewer)),
        ]
        for channel, mine in ((ar, self.decompress), (aw, ~self.decompress)):
            with m.If(offered & mine):
                m.d.sync += channel.valid.eq(1)
            with m.Elif(channel.ready):
                m.d.sync += channel.valid.eq(0)
        with m.If(free):
            m.d.sync += [burst.address.eq(Cat(Const(0, 5), first, index[3:])), burst.length.eq((index - first)[:3])]

        # ------------------------------------------------------------------------------------------ packets to memory
        packet, open_ = self.i.p, Signal(name="open_")  # some of a burst is stored, not all
        high, low = packet.count[5:], packet.count[:5]
        whole, ends, fits, stores = (Signal(name=name) for name in ("whole", "ends", "fits", "stores"))
        m.d.comb += [
            whole.eq(part < high),
            ends.eq((part == high) | ((low == 0) & (part + 1 == high))),
            fits.eq(w.i.ready & (~edge & ~packet.last & ~self.abort | able) & ~fresh),  # what closes is known late
            stores.eq(Mux(self.abort, open_, writing & self.i.valid & ~none) & fits),
            self.i.ready.eq(writing & ~self.abort & ~fresh & (none | (fits & ends))),
            w.i.valid.eq(stores),
            w.i.p.data.eq(packet.data.as_value().word_select(part, 8 * axi.BEAT)),
            w.i.p.strobe.eq(Cat((whole | (low > k)) & ~(limited & beyond[k]) & ~self.abort for k in range(axi.BEAT))),
            w.i.p.last.eq(closes),
            self.writes.w.valid.eq(w.o.valid), w.o.ready.eq(self.writes.w.ready), self.writes.w.p.eq(w.o.p),
        ]
        with m.If(stores):
            m.d.sync += [open_.eq(~closes), part.eq(Mux(ends, 0, part + 1))]
        with m.If(writing & ~fresh & self.i.valid & (whole | (low != 0))
                  & (none | (stores & limited & (whole | (low > tail))))):
            m.d.sync += self.overflow.eq(1)
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += part.eq(0)
            with m.If(packet.last):
                m.d.sync += writing.eq(0)

        # ------------------------------------------------------------------------------------------ memory to packets
        full, asks, void, loads, complete = Signal(), Signal(), Signal(), Signal(), Signal()
        known = Signal()  # whether there is a beat at all, a cycle after `fresh`: what is done then comes late
        finishes = Signal()  # with this beat: none is left to request, nor under way
        count, last = Signal(range(PACKET + 1), reset_less=True), Signal(reset_less=True)
        m.d.comb += [
            r.i.valid.eq(self.reads.r.valid), self.reads.r.ready.eq(1),  # there is room for all that was requested
            r.i.p.eq(Cat(self.reads.r.p.data, self.reads.r.p.resp != 0)),
            r.o.ready.eq(~full | self.o.ready | self.abort),
            comes.eq(r.o.valid & r.o.ready),
            asks.eq(reading & ~none & ~fresh & ~self.abort & (~edge | able)),
            void.eq(known & self.decompress & none),
            finishes.eq(none & ~offered & (under_way == 1)),
            loads.eq(comes | void),
            complete.eq(void | (comes & ((part == PARTS - 1) | finishes))),
            self.o.valid.eq(full),
            self.o.p.count.eq(count), self.o.p.last.eq(last),
        ]
        m.d.sync += known.eq(fresh)
        cut = void | (finishes & limited)
        beat = Signal(8 * axi.BEAT)
        m.d.comb += beat.eq(r.o.p.data & ~Cat((cut & beyond[k]).replicate(8) for k in range(axi.BEAT)))
        for k in range(PARTS):  # with the first beat, all lanes behind it become zero
            lane = Signal(8 * axi.BEAT, name=f"lane_{k}", reset_less=True)
            m.d.comb += self.o.p.data.as_value().word_select(k, 8 * axi.BEAT).eq(lane)
            with m.If(loads & ((part == k) | (part == 0))):
                m.d.sync += lane.eq(Mux(part == k, beat, 0))
        with m.If(comes & self.decompress):
            m.d.sync += part.eq(Mux(complete, 0, part + 1))
        with m.If(complete):
            m.d.sync += [full.eq(1), last.eq(finishes | void),
                         count.eq(Mux(cut, Cat(tail, part), Cat(Const(0, 5), part + 1)))]
        with m.Elif(self.o.ready):
            m.d.sync += full.eq(0)
        with m.If(full & self.o.ready & last):
            m.d.sync += reading.eq(0)

        # ---------------------------------------------------------------------------------------------------- control
        m.d.comb += [
            closes.eq(edge | Mux(self.decompress, 0, (ends & packet.last) | self.abort)),
            steps.eq(stores | asks),
            self.busy.eq(fresh | writing | reading | open_ | offered | (under_way != 0)),
        ]
        with m.If(self.start):
            m.d.sync += [writing.eq(~self.decompress), reading.eq(self.decompress), part.eq(0), self.error.eq(0),
                         self.overflow.eq(0)]
        with m.If((comes & r.o.p.failed) | (answers & (self.writes.b.p.resp != 0))):
            m.d.sync += self.error.eq(1)
        with m.If(self.abort):
            m.d.sync += [writing.eq(0), reading.eq(0), full.eq(0), part.eq(0), fresh.eq(0), known.eq(0)]
        return m
