"""Max pooling ends, in both directions, while its neighbours are willing, whatever a map and its windows are.

It goes over a raster of values, some of padding, with a step for each. One harness shows that steps follow each other;
another one goes over the raster as well, and shows that both are done with the same step; and in the backward
direction, where that step gives the last value, a third one follows this through the adders.
"""

from amaranth.hdl import Cat, Const, Mux, Signal
from amaranth.lib.wiring import In

from actcodec.rtl.gist.maxpool import MaxPool
from actcodec.rtl.gist.maxpool_backward import LATENCY, LOOP, MaxPoolBackward
from actcodec.rtl.gist.pooling import Config
from formal.catalogue import Proof
from formal.inside import Inside

__all__ = ["LEAVES", "MOVES", "STEPS", "Pooling", "Raster", "backward", "forward", "leaves", "moves", "proofs"]

MOVES = "until the next map may come, it goes a step on, or a beat comes or goes"
STEPS = "its last step is that of the last place of a map"
LEAVES = "the last value is valid when all before it have left"
WIDTH = 2  # of the widest map
PATIENCE = {"maxpool": 3, "maxpool_backward": 2}  # willing cycles
RUN = 3  # state in which there are steps; the one before measures the map

# What has no name of its own has the number that Amaranth gives it. Of another signal nothing here would hold.
STEP = {"maxpool": "step", "maxpool_backward": "$signal$45"}
FORWARD = {"column": "$signal$17", "columns": "$signal$18", "row": "$signal$20", "rows": "y_end", "planes": "planes",
           "first_column": "$signal$25", "first_row": "$signal$26", "flushing": "$signal$23", "extra": "extra"}
BACKWARD = {"column": "position", "columns": "$like", "row": "position$26", "rows": "y_last", "planes": "$signal$220",
            "reach": "$like$218"}


class Pooling(Inside):
    """The harness of a unit, with names of our own for its signals; and whether a configuration begins."""

    def __init__(self, component, folder, **names):
        super().__init__(component, folder, *names.values())
        self.inner = {what: self.inner[name] for what, name in names.items()}
        config = self.ports.config
        self.begins = self.past(self.past(config.valid & config.ready)) & ~self.ports.error.config


def moves(name, component, folder):
    """The harness for steps that follow each other."""
    h = Pooling(component, folder, step=STEP[name])
    unit, moved, willing = h.ports, [h.inner["step"], h.ports.config.ready], []
    for k, (port, member) in enumerate(component.signature.members.items()):
        if member.is_signature and port != "config":
            one, ended = getattr(unit, port), Signal(init=1, name=f"ended_{k}")
            moves_ = one.valid & one.ready
            h.m.d.sync += ended.eq(~h.begins & (ended | (moves_ & one.p.last)))
            moved.append(moves_)
            willing.append(one.valid | ended if member.flow is In else one.ready)
    h.check(MOVES, h.stuck(Cat(moved).any(), Cat(willing).all(), PATIENCE[name]) <= PATIENCE[name])
    return h


class Raster(Pooling):
    """The same, with a raster of columns, rows and planes, and the place of its next step."""

    def __init__(self, component, folder, **names):
        super().__init__(component, folder, state="fsm_state", config="config", last="last_plane", **names)
        self.c = c = Config(self.inner["config"])
        self.running = self.inner["state"] == RUN
        least = Mux(c.padding[0], 1, 2 + c.k[0])
        self.legal = Cat(c.k[1], c.stride.any(), ~c.padding[1], c.planes.any(), c.height >= least, c.width >= least,
                         c.width <= WIDTH).all() | (self.inner["state"] < RUN - 1)
        self.x, self.y, self.z = Signal(8, name="x"), Signal(17, name="y"), Signal(32, name="z")

    def extends(self, width, height):
        """How far it does; returns whether the unit knows."""
        self.last = (self.x == width - 1) & (self.y == height - 1) & (self.z == self.c.planes - 1)
        return ~self.running | ((self.inner["columns"] == width - 1) & (self.inner["rows"] == height - 1))

    def walks(self, last_column, last_row, final, flushing):
        """Goes on, until it is done with the step ``final``. Rows may follow the last plane, ``flushing``."""
        m, inner, c, under_way = self.m, self.inner, self.c, Signal(name="under_way")
        with m.If(self.begins):
            m.d.sync += [self.x.eq(0), self.y.eq(0), self.z.eq(0), under_way.eq(1)]
        with m.Elif(inner["step"]):
            m.d.sync += [under_way.eq(under_way & ~final), self.x.eq(Mux(last_column, 0, self.x + 1))]
            with m.If(last_column):
                m.d.sync += [self.y.eq(Mux(last_row & ~flushing, 0, self.y + 1)),
                             self.z.eq(self.z + (last_row & ~flushing))]
        self.check(STEPS, (under_way == self.running) & self.legal)
        self.holds((inner["column"] == self.x) & (inner["row"] == self.y), self.z < c.planes + flushing,
                   flushing | ((inner["planes"] == c.planes - self.z) & (inner["last"] == (self.z == c.planes - 1))))

    def holds(self, *conditions):
        """Between the first and the last step."""
        self.check(STEPS, ~self.running | Cat(conditions).all())


def forward(folder):
    h = Raster(MaxPool(WIDTH), folder, step=STEP["maxpool"], **FORWARD)
    c, inner, x, y = h.c, h.inner, h.x, h.y
    padded, flushing = c.padding[0], Signal(name="flushing")
    extra = (c.k == 2) & padded
    width, height = c.width + extra, c.height + extra
    h.check(STEPS, h.extends(width, height))
    # Windows that reach into padding end one row and one value after the last ones.
    h.m.d.sync += flushing.eq(~h.begins & (flushing | (inner["step"] & h.last)))
    h.walks(x == width - 1, y == height - 1, Mux(flushing, y == 1, h.last & ~padded), flushing)
    h.holds(inner["first_column"] == (x == 0), inner["first_row"] == (y == 0), inner["flushing"] == flushing,
            inner["extra"] == extra, x < width, Mux(flushing, (y == 0) | ((y == 1) & (x == 0)), y < height))
    return h


def back(folder):
    """The raster of the backward direction, and what its unit knows of it."""
    h = Raster(MaxPoolBackward(WIDTH), folder, step=STEP["maxpool_backward"], **BACKWARD)
    return h, h.extends(h.c.width + h.c.padding[0], h.c.height + h.c.padding[0]) & h.legal


def backward(folder):
    h, known = back(folder)
    x, y, height = h.x, h.y, h.c.height + h.c.padding[0]
    h.check(STEPS, known)
    # A row takes LOOP steps, but the last one ends with its last value.
    h.walks(x == LOOP - 1, y == height - 1, h.last, Const(0, 1))
    final_row = (y == height - 1) & (h.z == h.c.planes - 1)
    h.holds(h.inner["reach"] == LOOP - 1, x < Mux(final_row, h.c.width + h.c.padding[0], LOOP), y < height)
    return h


def leaves(folder):
    """The harness for the last value of the backward direction."""
    h, known = back(folder)
    h.assume(known)
    inner, dx, values = h.inner, h.ports.dx, Signal(LATENCY, name="values")
    final = inner["last"] & (inner["column"] == inner["columns"]) & (inner["row"] == inner["rows"])
    with h.m.If(~dx.valid | dx.ready):
        h.m.d.sync += values.eq(Cat(h.running & inner["step"] & final, values))
    h.check(LEAVES, ~values[-1] | (dx.valid & dx.p.last))
    return h


def proofs():
    note = f"width {WIDTH}"
    return [
        *(Proof(name, "ends", lambda folder, name=name, unit=unit: moves(name, unit(WIDTH), folder),
                f"{note}, {PATIENCE[name]} willing cycles")
          for name, unit in (("maxpool", MaxPool), ("maxpool_backward", MaxPoolBackward))),
        Proof("maxpool", "ends", forward, f"{note}, steps"),
        Proof("maxpool_backward", "ends", backward, f"{note}, steps"),
        Proof("maxpool_backward", "ends", leaves, f"{note}, given such steps", {"depth": 50}),
    ]
