"""Tensors as one of several units sees them: what it is told, what it is given, and what it has to answer."""

from dataclasses import dataclass

import numpy as np
from amaranth.lib import data

from actcodec.golden.division import average, codec, dither
from actcodec.golden.division import view as views
from actcodec.golden.offload.blocks import GROUP, LANES
from actcodec.rtl.division.config import Config
from tb.harness import pack

LAYOUT = data.Layout.cast(Config)
SIZES = (1, 2, 4)  # bits of the codes that a unit has by default


def shapes(random, count, most=3000):
    """Random shapes of every kind, of up to ``most`` values; and views that no shape has, but a descriptor may."""
    result = []
    while len(result) < count:
        kind = random.integers(7)
        if kind > 4:
            view = descriptor(random, tiled=random.random() < 0.2)
            if view.rows * view.width <= most:
                result.append(view)
            continue
        if kind == 0:  # tiles in 1, 2 or many columns
            shape = (1, *random.integers(1, 4, 1), 8 * random.integers(1, 4), random.choice(
                [8, 9, 15, 16, 17, 20, 24, 25, 32, 39, 40, 56, *random.integers(8, 80, 4)]))
        elif kind == 1:  # planes in rows, of a few sectors or many
            shape = (*random.integers(1, 4, 1), *random.integers(1, 12, 1), *random.choice([3, 4, 5, 6, 7, 9, 11], 2))
        elif kind == 2:
            shape = tuple(random.integers(1, (30, 90)))
        elif kind == 3:
            shape = (*random.integers(1, 30, 1), *random.integers(1, 6, 1), *random.integers(1, 4, 2))
        else:
            shape = (*random.integers(1, 12, 2), *random.integers(9, 40, 1))
        shape = tuple(map(int, shape))
        if np.prod(shape) <= most:
            result.append(shape)
    return result


def descriptor(random, tiled):
    """A view as a host may describe it: flat rows of a sector or less, mostly; planes of several rows that come back
    after the last one, the last of them in part, or more planes than rows."""
    rows, width, planes, height = map(int, random.integers(1, (75, 9 if random.random() < 0.7 else 40, 9, 12)))
    if tiled:
        return views.View(True, 8 * -(-rows // 24), width + 7, planes, 8 * -(-height // 4))
    return views.View(False, rows, width, planes, height)


def values(random, view):
    """int8 [rows, width] with a mean that wanders, and now and then nothing but extremes; and a delta for each plane
    that fits most of them."""
    spread = random.choice([0, 1, 4, 12, 25, 60])
    mean = random.integers(-60, 61, (view.rows, 1)) + np.cumsum(random.integers(-1, 2, (1, view.width)), axis=1)
    y = np.clip(np.rint(mean + spread * random.standard_normal((view.rows, view.width))), -128, 127)
    if random.random() < 0.15:
        y = random.choice([-128, 127, 0, -1], y.shape)
    low = -random.integers(0, 2 * spread + 2, view.planes)
    if random.random() < 0.3:
        low = random.integers(-90, 4, view.planes)
    return y.astype(np.int8), np.clip(low, -128, 127).astype(np.int8)


def tensor_of(random, view):
    """Values of every kind that float32 has."""
    x = random.normal(random.normal(0, 2), 1, (view.rows, view.width)).astype(np.float32)
    if random.random() < 0.3:
        x = np.maximum(x, 0)
    if random.random() < 0.4:
        special = np.array([np.nan, np.inf, -np.inf, 1e-42, -0.0, 0.0, 3e38, 1e-37], np.float32)
        where = random.random(x.shape) < 0.05
        x[where] = random.choice(special, int(where.sum()))
    return x


def layout_of(view):
    """Tiles in a row, as the alignment buffer counts them."""
    return min(view.sectors, 3) - 1 if view.tiled else 0


def sector_order(layout, count):
    """Rows of ``count`` blocks, numbered block by block, in the order of sectors."""
    order = []
    for group in range(0, count, GROUP):
        tiles = range(group, min(group + GROUP, count))
        parts = {0: [[tile] for tile in tiles], 1: [tiles[:2], tiles[2:]], 2: [tiles]}[layout]
        order += [LANES * tile + row for part in parts for row in range(LANES) for tile in part]
    return np.array(order, int)


@dataclass(frozen=True)
class Share:
    """Unit ``unit`` of ``units`` and a tensor."""

    view: views.View
    bits: int = 2
    units: int = 1
    unit: int = 0
    seed: int = 0
    lfc: bool = True
    offset: str = "mean"
    rounding: str = "stochastic"

    @property
    def blocks(self):
        """Numbers of its blocks."""
        number = np.arange(self.view.blocks)
        return number[number // GROUP % self.units == self.unit]

    @property
    def order(self):
        return sector_order(layout_of(self.view), len(self.blocks))

    def fields(self):
        """Those of its configuration."""
        view, blocks = self.view, self.blocks
        group = GROUP if view.tiled else GROUP * LANES  # sectors in front of which a group stands
        last = len(blocks) and blocks[-1] == view.blocks - 1
        return {
            "bits": self.bits - 1, "tiled": view.tiled, "layout": min(view.sectors, 3) - 1, "sectors": view.sectors,
            "tail": view.tail, "blocks": len(blocks), "phase": self.unit * group % view.sectors,
            "void": -view.rows * view.sectors % LANES if last and not view.tiled else 0,
            "stride": self.units * group % view.sectors, "lfc": self.lfc, "minimum": self.offset == "min",
            "nearest": self.rounding == "nearest", "seed": self.seed, "group": self.unit, "step": self.units,
        }

    def config(self, **changes):
        """Its configuration, as the port's integer."""
        return LAYOUT.const({name: int(value) for name, value in (self.fields() | changes).items()}).as_bits()

    def rows(self, y, delta):
        """What Encode is given of y, int8 [rows, width], in the order of sectors: data and delta of each row."""
        split = views.split(y, self.view)[self.blocks].reshape(-1, LANES)
        row = views.segments(self.view).row[self.blocks].reshape(-1)
        deltas = np.where(row < 0, 0, delta[self.view.plane[row]])
        return split[self.order], deltas[self.order]

    def places(self):
        """Of each row, block by block: whether a segment begins, its index in the segment, and whether it is void."""
        segments = views.segments(self.view)
        begins = np.zeros(segments.segment.size, bool)
        begins[segments.start] = True
        void = segments.row < 0
        return begins.reshape(void.shape)[self.blocks].reshape(-1), void[self.blocks].reshape(-1)

    def encoded(self, y, delta):
        """The bytes of each row, block by block, and whether a value was clipped."""
        view, segments = self.view, views.segments(self.view)
        y = views.split(y, view)
        base = average.bases(y, view, delta, self.lfc, self.offset)[segments.segment]
        noise = dither.noise(view, self.bits, self.seed, self.rounding)
        codes, t = codec.quantize(y, base[..., None], noise, self.bits)
        codes[~segments.exists] = 0
        clipped = (segments.exists & ((t < 0) | (t > 63)))[self.blocks].any()
        packed = codec.pack(codes, self.bits)[self.blocks].reshape(-1, self.bits)
        bases = base.view(np.uint8)[self.blocks].reshape(-1)
        return [bytes([offset] * int(begins)) + row.tobytes()
                for row, offset, begins in zip(packed, bases, self.places()[0], strict=True)], bool(clipped)

    def decoded(self, payload):
        """int8 [rows, 8], block by block, of a payload of this unit's blocks; what is missing counts as zeros."""
        result, at, base = [], 0, 0
        for begins, void in zip(*(flags.astype(int).tolist() for flags in self.places()), strict=True):
            piece = payload[at : at + begins + self.bits].ljust(begins + self.bits, b"\0")
            at += len(piece)
            if begins:
                base = int(np.uint8(piece[0]).view(np.int8))
            codes = codec.unpack(np.frombuffer(piece[begins:], np.uint8), self.bits)
            result.append(codec.dequantize(codes, np.int8(base), self.bits) * (1 - void))
        return np.array(result, np.int8), at


def beat(lanes, delta, last):
    """A row for Encode as its payload."""
    return pack(lanes, 8) | (int(delta) & 0xFF) << 64 | int(last) << 72
