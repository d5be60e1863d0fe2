"""Max pooling, backward: gradients of the maxima back to where the map says they were, a value a cycle."""

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common import fadd
from actcodec.rtl.common.pipeline import Pipeline
from actcodec.rtl.gist.pooling import Axis, Config, Error, Watch, check_width, positions, values

__all__ = ["LATENCY", "LOOP", "MaxPoolBackward"]

WINDOWS = 3  # that share a value along a row, at most
NEUTRAL = 0x8000_0000  # -0.0 leaves every number as it is, zeros of both signs among them
LOOP = WINDOWS * (fadd.LATENCY + 1) + 1  # cycles from reading sums to writing them back
LATENCY = LOOP + 1


class MaxPoolBackward(wiring.Component):
    """Gradients of a tensor's maps from those of the maxima and their row-major places in the windows.

    Gradients that meet at a value are added up in raster order of the windows, starting from +0.0, by the adder of
    :class:`~actcodec.rtl.common.fadd.Fadd`; where none arrives, the gradient is +0.0.

    The unit passes over the map row by row, and over rows of padding above it. In the row in which windows start it
    takes their gradients, and every column passes three adders, for at most three windows of a row have it in common,
    the oldest first. A gradient has one place only, so that one adder serves the rows of its window; what belongs to
    the two rows below goes to a line of partial sums. So there is no hazard to wait for, whatever the map says.

    Throughput: one value of dx a cycle, as long as dy and the map arrive in time, of which it takes one and a place in
    each cycle in which a window starts. In numbers, a plane takes (height + padding) x max(width + padding, LOOP)
    cycles; LOOP is 19, and only the last row of a tensor ends with its last value. Latency: 20 cycles from the gradient
    of a window to the value at its first place. Buffering: 3 gradients, ``width`` words of 64 bits, 20 values.
    Combinational paths: ``dx.ready`` to ``dy.ready`` and ``map.ready``, and between these: each needs the other's
    ``valid``.

    Source: Gist, section IV-A and Figure 4b; PyTorch's ``max_pool2d``.

    Parameters
    ----------
    width : int
        The widest map, 2 to 4096.

    Ports
    -----
    config : stream of :class:`Config`
        Taken between tensors. A config that makes no sense sets ``error.config``, and nothing else happens.
    dy : stream of ``values``
        In raster order over all planes; ``last`` on the last one.
    map : stream of ``positions``
        Two places a byte, the first in the low half, over all planes without a gap; ``last`` on the last one.
    dx : stream of ``values``
        All planes of the tensor in raster order.
    error : output, :class:`Error`

    Raises
    ------
    ValueError
        If ``width`` is out of range.
    """

    def __init__(self, width=256):
        check_width(width)
        self.width = width
        super().__init__({
            "config": In(stream.Signature(Config)), "dy": In(stream.Signature(values)),
            "map": In(stream.Signature(positions)), "dx": Out(stream.Signature(values)), "error": Out(Error),
        })

    def elaborate(self, platform):
        m = Module()

        config = Signal(Config, reset_less=True)
        error = Signal(Error)
        m.d.comb += self.error.eq(error)
        three, padded, stride = config.k[0], config.padding[0], config.stride
        gradients, places = Watch(m, self.dy, error), Watch(m, self.map, error)

        # Rows and columns start with those of the padding, and a row lasts until its first sums are back.
        columns = Axis(m, range(max(self.width + 1, LOOP)), stride)
        rows = Axis(m, 17, stride)
        planes, last_plane = Signal(32), Signal()
        x_end, x_last, y_last = Signal.like(columns.position), Signal.like(columns.position), Signal(17)
        first_row, outside = Signal(), Signal()
        bottom = rows.position == y_last
        m.d.comb += [
            first_row.eq(rows.position == 0),
            outside.eq((padded & (columns.position == 0)) | (columns.position > x_last)),
        ]
        final = bottom & (columns.position == x_last) & last_plane

        fed = stream.Signature(0).create()
        pipe = Pipeline(m, fed, self.dx)
        running, step, fresh, load, second = Signal(), Signal(), Signal(), Signal(), Signal()
        has_dy, has_place, final_load = Signal(), Signal(), Signal()
        m.d.comb += [
            load.eq(columns.hit & rows.hit),
            final_load.eq(columns.final & rows.final & last_plane),
            has_dy.eq(self.dy.valid | gradients.ended),
            has_place.eq(self.map.valid | places.ended),
            step.eq(running & pipe.advance & (~load | (has_dy & has_place))),
            self.dy.ready.eq(Mux(running, pipe.advance & load & has_place, 1) & ~gradients.ended),
            self.map.ready.eq(Mux(running, pipe.advance & load & has_dy & (second | final_load), 1) & ~places.ended),
        ]
        with m.If(pipe.advance):
            m.d.sync += fresh.eq(step)

        place, i, j, legal = Signal(4), Signal(2), Signal(2), Signal()
        m.d.comb += place.eq(self.map.p.data[second])
        with m.If(three):
            m.d.comb += [i.eq(Mux(place >= 6, 2, place >= 3)), j.eq(place - Mux(place >= 6, 6, Mux(place >= 3, 3, 0)))]
        with m.Else():
            m.d.comb += [i.eq(place[1]), j.eq(place[0])]
        in_padding = [(first & (index == 0)) | (axis.edge & (index == 1 + three))
                      for axis, first, index in ((rows, first_row, i), (columns, columns.position == 0, j))]
        m.d.comb += legal.eq((place < Mux(three, 9, 4)) & ~(padded & (in_padding[0] | in_padding[1])))
        present = load & ~gradients.ended & ~places.ended

        with m.FSM():
            with m.State("idle"):
                # A stream that has not ended is drained, and what is under way still looks at the config.
                m.d.comb += self.config.ready.eq(gradients.ended & places.ended & ~fresh)
                with m.If(self.config.valid & self.config.ready):
                    m.d.sync += [config.eq(self.config.p), error.eq(0)]
                    m.next = "check"
            with m.State("check"):
                none = [axis.load(size, config.k, padded)
                        for axis, size in ((columns, config.width), (rows, config.height))]
                bad = (none[0] | none[1] | (config.planes == 0) | (config.width > self.width) | ~config.k[1]
                       | (stride == 0) | config.padding[1])
                end = config.width - ~padded
                for axis in (columns, rows):
                    axis.move(1)
                m.d.sync += [
                    error.config.eq(bad), second.eq(0),
                    x_last.eq(end), x_end.eq(Mux(end < LOOP - 1, LOOP - 1, end)), y_last.eq(config.height - ~padded),
                    planes.eq(config.planes), last_plane.eq(config.planes == 1),
                ]
                with m.If(bad):
                    m.next = "idle"
                with m.Else():
                    m.next = "measure"
            with m.State("measure"):
                columns.measure(config.width)
                rows.measure(config.height)
                m.d.sync += [gradients.ended.eq(0), places.ended.eq(0)]
                m.next = "run"
            with m.State("run"):
                m.d.comb += running.eq(1)
                gradients.transfer(self.dy.valid & self.dy.ready, final_load)
                places.transfer(self.map.valid & self.map.ready, final_load)
                with m.If(step):
                    columns.move(columns.position == x_end)
                    with m.If(columns.position == x_end):
                        rows.move(bottom)
                        with m.If(bottom):
                            m.d.sync += [planes.eq(planes - 1), last_plane.eq(last_plane | (planes == 2))]
                    with m.If(load):
                        m.d.sync += second.eq(~second)
                    with m.If(present & ~legal):
                        m.d.sync += error.position.eq(1)
                    with m.If(final):
                        m.next = "idle"
        with m.If(~running):
            for watch, port in ((gradients, self.dy), (places, self.map)):
                with m.If(port.valid & port.ready):
                    m.d.sync += watch.ended.eq(port.p.last)

        # The windows that have a column in common, the newest first, and which of their columns it is.
        window = data.StructLayout({"dy": 32, "i": 2, "j": 2})
        windows = [Signal(window, reset_less=True, name=f"window_{n}") for n in range(WINDOWS)]
        there = [Signal(name=f"there_{n}") for n in range(WINDOWS)]
        phase, address = Signal(2), Signal(range(self.width))
        inside, emit, empty, last = Signal(), Signal(), Signal(), Signal()
        with m.If(step):
            with m.If(columns.phase == 0):
                m.d.sync += [windows[0].dy.eq(self.dy.p.data), windows[0].i.eq(i), windows[0].j.eq(j),
                             there[0].eq(present & legal)]
                for n in range(1, WINDOWS):
                    m.d.sync += [windows[n].eq(windows[n - 1]), there[n].eq(there[n - 1] & (columns.position != 0))]
            m.d.sync += [
                phase.eq(columns.phase), address.eq(columns.position - padded), inside.eq(~outside),
                emit.eq(~outside & ~(padded & first_row)), empty.eq(first_row), last.eq(final),
            ]
        hits = [Signal(name=f"hit_{n}") for n in range(WINDOWS)]
        m.d.comb += [hit.eq(there[n] & (windows[n].j == phase + n * stride)) for n, hit in enumerate(hits)]
        m.d.comb += fed.valid.eq(fresh & emit)

        m.submodules.line = line = Memory(shape=data.ArrayLayout(32, 2), depth=self.width, init=[])
        write = line.write_port()
        read = line.read_port(transparent_for=(write,))
        m.d.comb += [read.addr.eq(address), read.en.eq(pipe.advance)]

        # Sums of three rows; to each of them but the window's own, the adder adds nothing.
        pending = [part for n in reversed(range(WINDOWS))
                   for part in (Mux(hits[n], windows[n].dy, NEUTRAL), Mux(hits[n], windows[n].i, 0))]
        empty, *carry = pipe.stage(empty, address, inside & fresh, last, *pending)
        sums = [Mux(empty, 0, read.data[0]), Mux(empty, 0, read.data[1]), Const(0, 32)]
        for _ in range(WINDOWS):
            address, stored, last, dy, row, *pending = carry
            mine = Mux(row == 0, sums[0], Mux(row == 1, sums[1], sums[2]))
            others = [Mux(row == 0, sums[1], sums[0]), Mux(row == 2, sums[1], sums[2])]
            mine, dy, *rest = pipe.stage(mine, dy, row, *others, address, stored, last, *pending)
            mine, row, one, other, *carry = fadd.add(m, pipe, mine, dy, *rest)
            sums = [Mux(row == 0, mine, one), Mux(row == 0, one, Mux(row == 1, mine, other)),
                    Mux(row == 2, mine, other)]
        pipe.finish()
        address, stored, last = carry
        m.d.comb += [
            write.addr.eq(address), write.en.eq(stored & pipe.advance),
            write.data[0].eq(sums[1]), write.data[1].eq(sums[2]),
            self.dx.p.data.eq(sums[0]), self.dx.p.last.eq(last),
        ]
        return m
