"""The alignment buffer between sectors of rows and 8x8 tiles."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.target import target
from actcodec.rtl.common.vectors import vectors_layout

__all__ = ["Align"]


def _order(layout, tile, row):
    """Place of a word in the order of a layout: its index in the group."""
    return Mux(layout[1], Cat(tile, row), Mux(layout[0], Cat(tile[0], row, tile[1]), Cat(row, tile)))


class _Position:
    """Tile and row of the next word at one of the ports, and where the buffer keeps it.

    The order of tiles is the order of layout 0, so both ports count in the same way. ``lap`` changes with each group:
    the writing port is in the group of the reading port or in the next one, so one bit tells the groups apart.
    """

    def __init__(self, m, name, layout, limit, rotates, backwards, start, step):
        def register(width, part):
            # Cleared by `start` and not by a reset, and by gates in front of it, so that it can have a clock gate.
            return Signal(width, name=f"{name}_{part}", reset_less=True)

        self.tile = register(2, "tile")
        self.row = register(3, "row")
        self.lap = register(1, "lap")
        self.address = register(5, "address")
        self.index = Signal(5, name=f"{name}_index")
        self.ends = Signal(name=f"{name}_ends")  # at the last word of the group

        rotation = register(5, "rotation")  # one-hot: place k rotates by 2 k bits
        tile, row = Signal(2, name=f"{name}_next_tile"), Signal(3, name=f"{name}_next_row")
        final_tile, wraps = self.tile == limit, self.row == 7
        across = ~final_tile & (layout[1] | (layout[0] & ~self.tile[0]))  # another tile has this row
        m.d.comb += [
            self.index.eq(_order(layout, self.tile, self.row)),
            self.ends.eq(final_tile & wraps),
            row.eq(self.row + ~across),
        ]
        with m.If(self.ends):
            m.d.comb += tile.eq(0)
        with m.Elif(across | wraps):
            m.d.comb += tile.eq(self.tile + 1)
        with m.Else():
            m.d.comb += tile.eq(self.tile & Cat(~(layout[0] | layout[1]), ~layout[1]))

        self.next_tile, self.next_row = tile, row
        self.next_index = Signal(5, name=f"{name}_next_index")
        self.next_lap = Signal(name=f"{name}_next_lap")
        m.d.comb += [self.next_index.eq(_order(layout, tile, row)), self.next_lap.eq(self.lap ^ self.ends)]

        # The rotation of the group that ends will do for the first word of the next, whose address is zero anyway.
        word, keep = Cat(row, tile), ~start
        with m.If(start | step):
            m.d.sync += [Cat(self.row, self.tile).eq(word & keep.replicate(5)), self.lap.eq(self.next_lap & keep)]
            for bit in range(5):
                turned = Cat(rotation[k] & word[(bit - 2 * k) % 5] for k in range(5)).any()
                m.d.sync += self.address[bit].eq(turned & keep)
        with m.If(start | (step & self.ends & rotates)):
            turned = Mux(backwards, rotation.rotate_right(1), rotation.rotate_left(1))
            m.d.sync += rotation.eq((turned & keep.replicate(5)) | start)


class Align(wiring.Component):
    """Turns sectors, in the order in which memory has them, into tiles, and back.

    A group is four tiles of 8x8 values, 32 words of 8 values. At the sector side its words pass in an order that
    depends on how many tiles a row of the tensor has (``layout``): row by row over all tiles of the group; row by row
    over two tiles, then the other two; or tile by tile. At the tile side they always pass tile by tile. Tiles that the
    last group does not have are left out.

    One copy of 256 bytes is enough for a word in and a word out in every cycle, since each word takes the place of
    the one that was read at the same index of the group before. With rows over four tiles, the sector order is the
    tile order with its five index bits rotated by two, so the addresses of a group are those of the group before
    rotated by two bits more. Two tiles take half of the buffer, so there the halves take turns and nothing rotates. A
    second copy would add 2,048 flip-flops and save two rotations of five bits: 27,090 um2 and not 14,452 in Nangate45.

    Both ports are 8 bytes wide: the DCT takes a row of 8 values in a cycle, which is what the crossbar can bring. The
    64-byte port of the paper would serve a DCT that waits seven cycles out of eight, and eight banks would have to
    give one word each, wherever the rotation has put them.

    A word may be written once the word in its place was read. A word may be read once the word that completes its
    tile (compress) or its row over the tiles of the group (decompress) was written.

    Throughput: one word a cycle; reading does not pause once it has begun. Writing may pause only in a last group of
    fewer than four tiles, where it runs into words that are yet to be read. Latency, first word in to first word out:
    when compressing 30 cycles for four tiles or more (layout 2), 16 (layout 1), 9 (layout 0); when decompressing 26,
    10, 2; for LUTs one more. ``i.ready`` rises three cycles after ``start``. Buffering: 32 words and one at the output.
    Combinational paths: none from ``i`` to ``o`` or ``o.ready`` to ``i.ready``.

    Source: JPEG-ACT, section III-C, Figure 12.

    Ports
    -----
    i : stream of :func:`vectors_layout` of signed 8
        Words; ``last`` is ignored.
    o : stream of :func:`vectors_layout` of signed 8
        ``last`` marks the last word of the tensor.
    decompress : input
        Tiles in and sectors out, not sectors in and tiles out.
    layout : input, 2 bits
        Tiles in a row of the tensor: 0 one, 1 two, 2 three or more.
    blocks : input, 32 bits
        Tiles of the tensor, at least 1; even in layout 1.
    start : input
        Begins a tensor. The buffer has to be empty; the other inputs stay constant until the tensor is through.
    """

    i: In(stream.Signature(vectors_layout(signed(8))))
    o: Out(stream.Signature(vectors_layout(signed(8))))
    decompress: In(1)
    layout: In(2)
    blocks: In(32)
    start: In(1)

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = memory = Memory(shape=64, depth=32, init=[])
        write_port, read_port = memory.write_port(), memory.read_port()
        write, read = Signal(), Signal()  # a word moves

        # Groups: their number is counted down well before it is needed, so that the wide counter is on no path.
        whole = self.blocks[:2] == 0
        groups = Signal(30)  # whole groups from the next one on
        next_final, final = Signal(), Signal()  # the group after the one being written, and this one, is the last
        begin = Signal(2)
        writing, reading = Signal(), Signal()  # words of the tensor are yet to be written, to be read
        m.d.sync += [
            begin.eq(Cat(self.start, begin[0])),
            next_final.eq((groups[1:] == 0) & (groups[0] == whole)),
        ]

        ahead = Signal()  # the writing port is in the group after that of the reading port, or ended there
        reading_final = Signal()
        lut = target(platform) == "lut"
        final_tile = (self.blocks[:2] - 1)[:2]
        if lut:  # constant before it matters
            register = Signal(2, reset_less=True)
            m.d.sync += register.eq(final_tile)
            final_tile = register
        write_layout = self.layout & (~self.decompress).replicate(2)
        read_layout = self.layout & self.decompress.replicate(2)
        common = (self.layout[1], self.decompress)
        w = _Position(m, "write", write_layout, final_tile | (~final).replicate(2), *common, self.start, write)
        r = _Position(m, "read", read_layout, final_tile | (~reading_final).replicate(2), *common, self.start, read)
        m.d.comb += ahead.eq(w.lap ^ r.lap ^ ~writing)
        if lut:  # the same from a register: by what all that it follows from becomes
            passes = begin[1] | (write & w.ends)
            others = Mux(passes, begin[1] | ~final, writing)
            laps = (Mux(write, w.next_lap, w.lap) ^ Mux(read, r.next_lap, r.lap)) & ~self.start
            m.d.sync += reading_final.eq(Mux(passes & others, next_final, final) & ~(laps ^ ~others))
        else:
            m.d.comb += reading_final.eq(final & ~ahead)

        with m.If(self.start):
            m.d.sync += groups.eq(self.blocks[2:])
        with m.Elif(begin[1] | (write & w.ends)):
            m.d.sync += groups.eq(groups - 1)
            m.d.sync += writing.eq(begin[1] | ~final)
            with m.If(begin[1] | ~final):
                m.d.sync += final.eq(next_final)
        with m.If(begin[1]):
            m.d.sync += reading.eq(1)
        with m.Elif(read & r.ends & reading_final):
            m.d.sync += reading.eq(0)

        # Whether the place of the next word is free, by where the reading port was a cycle ago: it may be further by
        # now, but with words in every cycle it never is too near. With two tiles a row, writing waits for half of the
        # buffer.
        free = Signal()
        half = self.layout[0].replicate(4)

        # For LUTs, by where it will be: there it is a cycle later, as it reads what was written two cycles ago.
        reading_lap = Mux(read, r.next_lap, r.lap) if lut else r.lap
        reading_index = Mux(read, r.next_index, r.index) if lut else r.index

        def place_free(lap, index):
            return (lap == reading_lap) | ((index | half) < reading_index)

        m.d.sync += free.eq(Mux(write, place_free(w.next_lap, w.next_index), place_free(w.lap, w.index)))
        m.d.comb += [
            self.i.ready.eq(writing & free),
            write.eq(self.i.valid & self.i.ready),
            write_port.en.eq(write),
            write_port.addr.eq(w.address),
            write_port.data.eq(self.i.p.data.as_value()),
        ]

        # The last word that has to be there before this one leaves. A last group may not have the tile that is named
        # here; its words leave once everything was written.
        def complete(tile, row):
            return w.index > Mux(self.decompress, Cat(row, tile | Cat(self.layout.any(), self.layout[1])),
                                 _order(self.layout, tile, Const(7, 3)))

        readable, advance, valid = Signal(), Signal(), Signal()
        last = Signal(reset_less=True)
        if lut:  # from a register, by where the writing port was a cycle ago
            leaves = r.ends & reading_final
            m.d.sync += readable.eq(reading & Mux(
                read, ~leaves & (~writing | (w.lap ^ r.next_lap) | complete(r.next_tile, r.next_row)),
                ~writing | ahead | complete(r.tile, r.row)))
        else:
            m.d.comb += readable.eq(reading & (~writing | ahead | complete(r.tile, r.row)))
        m.d.comb += [
            advance.eq(~self.o.valid | self.o.ready),
            read.eq(readable & advance),
            read_port.en.eq(read),
            read_port.addr.eq(r.address),
            self.o.p.data.as_value().eq(read_port.data),
            self.o.p.last.eq(last),
        ]
        with m.If(advance):
            m.d.sync += [valid.eq(readable), last.eq(reading_final & r.ends)]
        m.d.comb += self.o.valid.eq(valid)
        return m
