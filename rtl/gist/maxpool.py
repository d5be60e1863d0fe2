"""Max pooling with Gist's map from Y to X: the maxima of a map's windows and where they were, a value a cycle."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.pipeline import Pipeline
from actcodec.rtl.gist.pooling import Axis, Config, Error, Watch, check_width, positions, values

__all__ = ["LATENCY", "MaxPool"]

LATENCY = 4


def _key(word):
    """A float32 word as an unsigned number in the same order: what negative numbers have below the sign is inverted,
    and so is the sign."""
    return Cat(word[:31] ^ word[31].replicate(31), ~word[31])


def _word(key):
    """The float32 word of a :func:`_key`."""
    return Cat(key[:31] ^ (~key[31]).replicate(31), ~key[31])


def _nan(key):
    """Whether a key is that of a NaN."""
    return Mux(key[31], key[23:31].all() & key[:23].any(), ~key[23:31].any() & ~key[:23].all())


def _beats(m, new, old):
    """Whether a value that comes later in the window takes the place of the maximum so far: a greater number does, and
    any NaN. Both are keys."""
    zeros = new[31] & ~new[:31].any() & ~old[31] & old[:31].all()  # +0.0 after -0.0
    result = Signal(name="beats")
    m.d.comb += result.eq(_nan(new) | ~_nan(old) & ~zeros & (new > old))
    return result


class MaxPool(wiring.Component):
    """Maxima of all windows of a tensor's maps and, for each, its row-major place in the window.

    The first of equal values counts (+0.0 and -0.0 are equal), of NaNs, which are greater than all, the last, as in
    PyTorch. Padding is never a maximum. Maxima are bit-exact copies. There are floor((size + 2 padding - k) / stride)
    + 1 windows along each dimension.

    First the maximum in each row of a window, then that of the rows: of each column those of the last two rows wait in
    a line buffer, so that what is written there needs no comparison, and windows that overlap share their rows' maxima.
    Values come in a raster without gaps: in the cycle in which a row's first value arrives, the window that reaches
    beyond the end of the row before is done, and in the same way at the end of a map. Only windows of 2 in a padded map
    are too many for that; for them the raster has a row and a column more.

    Throughput: one value a cycle, but with k = 2 and padding: there, planes take (height + 1) x (width + 1) cycles.
    With padding the last windows of a tensor take a row and a value more than its values. Latency: 4 cycles from the
    value that completes a window. Buffering: four values, ``width`` + 1 words of 68 bits, two outputs. Combinational
    paths: ``y.ready`` and ``map.ready`` to ``i.ready``.

    Source: Gist, section IV-A and Figure 4b, the mapping from Y to X in 4 bits; PyTorch's ``max_pool2d``.

    Parameters
    ----------
    width : int
        The widest map, 2 to 4096.

    Ports
    -----
    config : stream of :class:`Config`
        Taken between tensors. A config that makes no sense sets ``error.config``, and nothing else happens.
    i : stream of ``values``
        All planes of the tensor in raster order; ``last`` on the last one.
    y : stream of ``values``
        The maxima in raster order.
    map : stream of ``positions``
        Two places a byte, the first in the low half, over all planes without a gap; an odd number ends with a zero.
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
            "config": In(stream.Signature(Config)), "i": In(stream.Signature(values)),
            "y": Out(stream.Signature(values)), "map": Out(stream.Signature(positions)), "error": Out(Error),
        })

    def elaborate(self, platform):
        m = Module()
        column = range(self.width + 2)

        config = Signal(Config, reset_less=True)
        error = Signal(Error)
        m.d.comb += self.error.eq(error)
        three, padded = config.k[0], config.padding[0]
        extra = Signal()  # a row and a column of padding lead each map
        watch = Watch(m, self.i, error)

        # What comes: a raster of width + extra columns and height + extra rows.
        x, y, planes = Signal(column), Signal(17), Signal(32)
        x_end, y_end = Signal(column), Signal(17)
        first_x, first_y, last_plane = Signal(), Signal(), Signal()
        running, flushing, step = Signal(), Signal(), Signal()
        last_column, last_row = Signal(), Signal()
        m.d.comb += [last_column.eq(x == x_end), last_row.eq(y == y_end)]
        final = last_column & last_row & last_plane
        virtual = Signal()
        m.d.comb += virtual.eq(flushing | (extra & (first_x | first_y)))

        # What is done: the centres of windows of 3, or the first values of windows of 2, a row and a value behind.
        columns, rows = Axis(m, len(x), config.stride), Axis(m, len(y), config.stride)
        # For the newest value, and for the row of values beside that centre: is it the first, is it one at all, is its
        # map the last one?
        first_column, first_row, known, plane_final = (Signal() for _ in range(4))
        top, row_known, row_final, centre_known, centre_final = (Signal() for _ in range(5))

        fed, merged = stream.Signature(0).create(), stream.Signature(0).create()
        pipe = Pipeline(m, fed, merged)
        fresh, busy = Signal(), Signal()
        m.d.comb += [
            step.eq(running & pipe.advance & (virtual | watch.ended | self.i.valid)),
            self.i.ready.eq(Mux(running, pipe.advance & ~virtual, 1) & ~watch.ended),
        ]
        with m.If(pipe.advance):
            m.d.sync += fresh.eq(step)

        with m.FSM():
            with m.State("idle"):
                # A stream that has not ended is drained, and what is under way still looks at the config.
                m.d.comb += self.config.ready.eq(watch.ended & ~fresh & ~busy)
                with m.If(self.config.valid & self.config.ready):
                    m.d.sync += [config.eq(self.config.p), error.eq(0)]
                    m.next = "check"
            with m.State("check"):
                pads = (config.k == 2) & padded
                first = three & ~padded
                none = [axis.load(size, config.k, padded, first)
                        for axis, size in ((columns, config.width), (rows, config.height))]
                bad = (none[0] | none[1] | (config.planes == 0)
                       | (config.width > self.width) | ~config.k[1] | (config.stride == 0) | config.padding[1])
                m.d.sync += [
                    error.config.eq(bad), extra.eq(pads),
                    x.eq(0), y.eq(0), first_x.eq(1), first_y.eq(1),
                    x_end.eq(config.width - ~pads), y_end.eq(config.height - ~pads),
                    planes.eq(config.planes), last_plane.eq(config.planes == 1), flushing.eq(0),
                    known.eq(0), row_known.eq(0), centre_known.eq(0),
                ]
                with m.If(bad):
                    m.next = "idle"
                with m.Else():
                    m.next = "measure"
            with m.State("measure"):
                columns.measure(config.width)
                rows.measure(config.height)
                m.d.sync += watch.ended.eq(0)
                m.next = "run"
            with m.State("run"):
                m.d.comb += running.eq(1)
                watch.transfer(self.i.valid & self.i.ready, final)
                with m.If(step):
                    m.d.sync += [x.eq(Mux(last_column, 0, x + 1)), first_x.eq(last_column)]
                    with m.If(last_column):
                        m.d.sync += [y.eq(Mux(last_row & ~flushing, 0, y + 1)), first_y.eq(last_row & ~flushing)]
                        with m.If(last_row & ~flushing):
                            m.d.sync += [planes.eq(planes - 1), last_plane.eq(last_plane | (planes == 2))]
                    with m.If(final):
                        m.d.sync += flushing.eq(1)
                    with m.If(Mux(flushing, first_x & ~first_y, final & ~padded)):
                        m.next = "idle"
        with m.If(~running & self.i.valid & self.i.ready):
            m.d.sync += watch.ended.eq(self.i.p.last)

        # A window's row: the maximum of its first two values is there when the third one comes.
        newest, older, best = (Signal(32, reset_less=True, name=name) for name in ("newest", "older", "best"))
        later = Signal()
        with m.If(step):
            columns.move(first_column)
            takes = ~three | first_column | _beats(m, newest, older)
            m.d.sync += [
                newest.eq(_key(Mux(watch.ended, 0, self.i.p.data))), older.eq(newest),
                best.eq(Mux(takes, newest, older)), later.eq(takes & three),
                first_column.eq(first_x), first_row.eq(first_y), known.eq(1), plane_final.eq(last_plane),
                top.eq(first_row), row_known.eq(known), row_final.eq(plane_final),
            ]
            with m.If(first_column):
                rows.move(top)
                m.d.sync += [centre_known.eq(row_known), centre_final.eq(row_final)]
        takes = Signal()
        m.d.comb += [
            takes.eq(~first_column & ((extra & (columns.position == 0)) | _beats(m, newest, best))),
            fed.valid.eq(fresh & centre_known & columns.hit & rows.hit),
        ]
        address, h, j, stored, alone, second_row, only, last = pipe.stage(
            columns.position, Mux(takes, newest, best), Cat(Mux(takes, ~three, later), takes & three), fresh,
            top, rows.position == 0, extra & (rows.position == 0), columns.final & rows.final & centre_final)

        # The maximum of the rows. Those before this one are in the line, the last two of them.
        row = data.StructLayout({"h": 32, "j": 2})
        m.submodules.line = line = Memory(shape=data.ArrayLayout(row, 2), depth=self.width + 1, init=[])
        write = line.write_port()
        read = line.read_port(transparent_for=(write,))
        last_row, row_before = read.data
        m.d.comb += [
            read.addr.eq(columns.position), read.en.eq(pipe.advance),
            write.addr.eq(address), write.en.eq(pipe.advance & stored),
            write.data[0].h.eq(h), write.data[0].j.eq(j), write.data[1].eq(last_row),
        ]
        takes = Signal()
        m.d.comb += takes.eq(~three | second_row | _beats(m, last_row.h, row_before.h))
        best, place, comes, h, j, alone, only, last = pipe.stage(
            Mux(takes, last_row.h, row_before.h), Mux(takes, Mux(three, 3, 0) + last_row.j, row_before.j)[:3],
            stored, h, j, alone, only, last)
        takes = Signal()
        m.d.comb += busy.eq(stored | comes)
        m.d.comb += takes.eq(~alone & (only | _beats(m, h, best)))
        best, place, last = pipe.stage(Mux(takes, h, best), Mux(takes, Mux(three, 6, 2) + j, place)[:4], last)
        pipe.finish()

        # Either output can be taken before the other.
        low, second = Signal(4, reset_less=True), Signal()
        y_done, map_done = Signal(), Signal()
        whole = second | last
        m.d.comb += [
            self.y.p.data.eq(_word(best)), self.y.p.last.eq(last), self.y.valid.eq(merged.valid & ~y_done),
            self.map.p.data[0].eq(Mux(second, low, place)), self.map.p.data[1].eq(Mux(second, place, 0)),
            self.map.p.last.eq(last), self.map.valid.eq(merged.valid & whole & ~map_done),
            merged.ready.eq((self.y.ready | y_done) & (self.map.ready | map_done | ~whole)),
        ]
        with m.If(merged.valid):
            m.d.sync += [y_done.eq(~merged.ready & (self.y.ready | y_done)),
                         map_done.eq(~merged.ready & (whole & self.map.ready | map_done))]
            with m.If(merged.ready):
                m.d.sync += [low.eq(place), second.eq(~whole)]
        return m
