"""What the benches of both directions share: a driver for each, and most of their tests."""

import cocotb
import numpy as np
from cocotb.triggers import FallingEdge

from actcodec.golden.division import view as views
from tb.division.tensors import Share, beat, shapes, values
from tb.harness import PATTERNS, STALLS, Bench, after, beats, chunk, chunks, parameters, rng

WORD = 16  # bytes at a time that the decoder's unpacker takes
READY = 4  # cycles from start to the first row, of which a bench uses two


class Way(Bench):
    """The unit of a test, one direction with codes of the test's ``bits``."""

    def __init__(self, dut):
        super().__init__(dut)
        self.bits = tuple(parameters()["bits"])
        self.most = 1 + max(self.bits)  # bytes of a row
        self.seen = set()

    async def begin(self, config):
        self.dut.config.value = config
        await self.pulse("start")

    def share(self, random, shape, **settings):
        """Anybody's share of a tensor."""
        units = int(random.choice([1, 1, 2, 3, 4, 8]))
        return Share(views.view(shape), int(random.choice(self.bits)), units, int(random.integers(units)), **settings)

    async def shapes(self, random, tensor_shapes, **patterns):
        """A share of each shape."""
        for shape in tensor_shapes:
            share = self.share(random, shape)
            if len(share.blocks):
                await self.any(random, share, **patterns)


class Encoder(Way):
    """Encodes shares of int8 tensors and compares."""

    def share(self, random, shape):
        return super().share(
            random, shape, seed=int(random.integers(1 << 32)), lfc=bool(random.random() < 0.8),
            offset=str(random.choice(["mean", "mean", "min"])),
            rounding=str(random.choice(["stochastic", "stochastic", "nearest"])))

    def sent(self, random, share, y, delta):
        """What to send, with noise for ``last``."""
        lanes, deltas = share.rows(y, delta)
        return [beat(row, one, last) for row, one, last in zip(lanes, deltas, random.integers(0, 2, len(lanes)),
                                                               strict=True)]

    def expected(self, share, y, delta):
        """The chunks, and whether there is clipping."""
        pieces, clipped = share.encoded(y, delta)
        return [chunk(piece, k == len(pieces) - 1, self.most) for k, piece in enumerate(pieces)], clipped

    def content(self, payload):
        """The bytes of a chunk."""
        return (payload & (1 << 8 * self.most) - 1).to_bytes(5, "little")[: payload >> 8 * self.most & 7]

    async def tensor(self, random, share, y, delta, **patterns):
        expected, clipped = self.expected(share, y, delta)
        await self.begin(share.config())
        run = await self.run({"i": self.sent(random, share, y, delta)}, {"chunks": len(expected)}, random, **patterns)
        what = f"{share}, {patterns}"
        self.equal(run["chunks"], expected, what)
        await FallingEdge(self.clk)
        assert (self.dut.refused.value, self.dut.clipped.value) == (0, clipped), what
        assert self.dut.chunks__valid.value == 0, what
        self.seen |= {f"tiled {share.view.tiled}", f"lfc {share.lfc}", f"clipped {clipped}", share.bits, share.offset,
                      share.rounding}
        return run

    async def any(self, random, share, **patterns):
        """Any tensor."""
        await self.tensor(random, share, *values(random, share.view), **patterns)

    async def part(self, random, share, cycles):
        """As much of any tensor as passes in so many cycles."""
        await self.run({"i": self.sent(random, share, *values(random, share.view))}, {"chunks": None}, random,
                       until=after(cycles))

    async def nothing(self, random):
        """Something is offered, and not taken."""
        run = await self.run({"i": [1]}, {"chunks": None}, random, until=after(30))
        return not run.cycles["i"] and not run["chunks"]

    @property
    def all(self):
        """What is to be seen."""
        flags = {f"{name} {value}" for name in ("tiled", "lfc", "clipped") for value in (False, True)}
        return {*flags, *self.bits, "mean", "min", "stochastic", "nearest"}


class Decoder(Way):
    """Decodes payloads of shares, behind an unpacker, and compares."""

    def payload(self, random, share):
        """Any bytes, or those of an encoder."""
        if random.random() < 0.5:
            return b"".join(share.encoded(*values(random, share.view))[0])
        begins, _ = share.places()
        return random.integers(0, 256, begins.sum() + len(begins) * share.bits, np.uint8).tobytes()

    def expected(self, share, payload):
        """Rows in the order of sectors, and the bytes that they take."""
        rows, size = share.decoded(payload)
        if (rows == 127).any():
            self.seen.add("saturated")
        return beats(rows[share.order], 8), size

    async def tensor(self, random, share, payload, **patterns):
        expected, size = self.expected(share, payload)
        await self.begin(share.config())
        run = await self.run({"packed": chunks(payload, WORD)}, {"o": len(expected)}, random, **patterns)
        what = f"{share}, {len(payload)} bytes, {patterns}"
        self.equal(run["o"], expected, what)
        flags = self.dut.refused.value, self.dut.short.value, self.dut.excess.value
        assert flags == (0, len(payload) < size, 0), what
        assert self.dut.o__valid.value == 0, what
        await self.pulse("next")
        return run

    async def any(self, random, share, **patterns):
        await self.tensor(random, share, self.payload(random, share), **patterns)

    async def part(self, random, share, cycles):
        await self.run({"packed": chunks(self.payload(random, share), WORD)}, {"o": None}, random, until=after(cycles))

    async def nothing(self, random):
        run = await self.run({}, {"o": None}, random, until=after(30))
        return not run["o"]

    @property
    def all(self):
        return {"saturated"}


WAYS = {"encode": Encoder, "decode": Decoder}


async def started(dut):
    """The driver of the test's direction."""
    return await WAYS[parameters()["way"]].started(dut)


# ---------------------------------------------------------------------------------------------- what both benches test
@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def equals_golden_whatever_the_ports_do(dut, idle, stall):
    random = rng()
    way = await started(dut)
    await way.shapes(random, shapes(random, 4, 1000), idle=idle, stall=stall)


@cocotb.test
async def equals_golden_for_every_kind_of_tensor(dut):
    random = rng()
    way = await started(dut)
    await way.shapes(random, shapes(random, 120, 2000))
    assert way.seen >= way.all


@cocotb.test
async def refuses_what_cannot_be(dut):
    random = rng()
    way = await started(dut)
    share = Share(views.view((2, 3, 16, 24)), way.bits[-1])
    absent = next(q for q in (1, 2, 3, 4) if q not in way.bits)
    for changes in ({"blocks": 0}, {"sectors": 0}, {"tail": 0}, {"tail": 9}, {"tail": 15}, {"bits": absent - 1}):
        await way.begin(share.config(**changes))
        assert await way.nothing(random), changes
        assert dut.refused.value == 1, changes
        await way.any(random, share)


@cocotb.test
async def forgets_everything_at_reset(dut):
    random = rng()
    way = await started(dut)
    for fill in (0, 1, 3, 6, 7, 8, 9, 13, 16, 21, 27, 29, 32, 40, 63, 100):
        for view in (views.View(True, 32, 8, 2, 16), views.View(True, 32, 33, 2, 16), views.View(False, 60, 17, 1, 60)):
            share = Share(view, way.bits[0])
            await way.begin(share.config())
            await way.part(random, share, fill)
            await way.reset()
            await way.shapes(random, shapes(random, 2, 600))
