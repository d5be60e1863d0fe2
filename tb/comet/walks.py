"""What the benches of COMET share: places in the walk, as the golden model's order has them, and payloads."""

import cocotb
import numpy as np
from cocotb.triggers import FallingEdge, RisingEdge

from actcodec.golden.comet import lorenzo
from actcodec.golden.comet import walk as golden
from actcodec.golden.offload.blocks import View
from tb.harness import Bench, pack

LANES = 8


class Queues(Bench):
    """The bench of a unit that takes bytes of outliers from a queue in front of each lane. The input ``shown`` has the
    next byte of each, and ``popped()`` says which of them the unit takes, a bit for each lane."""

    def __init__(self, dut):
        super().__init__(dut)
        self.queues = [[] for _ in range(LANES)]

    async def start(self):
        await super().start()
        cocotb.start_soon(self.feed())

    async def feed(self):
        """Shows the next bytes, and moves on where they are taken."""
        while True:
            await FallingEdge(self.clk)
            getattr(self.dut, self.shown).value = pack([queue[0] if queue else 0xAA for queue in self.queues], 8)
            await RisingEdge(self.clk)
            popped = self.popped()
            for lane, queue in enumerate(self.queues):
                if popped >> lane & 1:
                    queue.pop(0)


class PortWalk(golden.Walk):
    """A walk as the ports have it."""

    def payloads(self):
        """The ``edges`` of each sector, as integers."""
        words = self.count | self.left << 4 | self.above << 5 | self.tile << 6 | self.last << 8
        return [int(word) for word in words]

    def back(self, lanes):
        """The reverse of `lanes`, one-dimensional."""
        lanes = np.asarray(lanes)
        values = np.zeros(int(self.index.max()) + 1, lanes.dtype)
        values[self.index[self.index >= 0]] = lanes[self.index >= 0]
        return values


def walk(shape, tiled):
    """The walk of a single CDU, of a shape or a view."""
    return PortWalk(*golden.walk(shape, tiled))


def lanes(values, width, flags=None):
    """[n, 8] integers and flags as payloads of eight values of ``width`` bits and eight bits."""
    flags = np.zeros(np.shape(values), bool) if flags is None else flags
    bits = np.packbits(np.asarray(flags, bool), axis=1, bitorder="little")[:, 0]
    return [pack(map(int, row), width) | int(flag) << LANES * width
            for row, flag in zip(np.asarray(values), bits, strict=True)]


def place(payloads, edges, width):
    """Payloads with ``edges`` on top, from bit ``width`` on."""
    return [payload | edge << width for payload, edge in zip(payloads, edges, strict=True)]


def unpack(payloads, width):
    """The reverse of `lanes`, whatever is above: arrays [n, 8] of values and flags."""
    mask = (1 << width) - 1
    values = np.array([[payload >> width * k & mask for k in range(LANES)] for payload in payloads])
    flags = np.array([[payload >> LANES * width + k & 1 for k in range(LANES)] for payload in payloads], bool)
    return values, flags


def shapes(random, tiled):
    """Some shapes of tensors with all sorts of widths, heights, and numbers of tiles."""
    if not tiled:
        return [(1, 1, 1, 1), (1, 7), (2, 3, 5, 7), (3, 100), (1, 9, 9, 9)]
    some = [(1, 1, 8, 8), (1, 3, 3, 9), (2, 3, 7, 13), (1, 3, 9, 16), (1, 2, 11, 17), (2, 2, 9, 25), (1, 1, 13, 33),
            (1, 3, 5, 40)]
    return [*some, tuple(int(n) for n in (*random.integers(1, 4, 2), random.integers(8, 20), random.integers(8, 45)))]


def views(random, tiled):
    """Some rows of descriptors: ragged by every remainder, with channels of any height."""
    for width in range(8 if tiled else 1, 24 if tiled else 17):
        width += 8 * int(random.integers(4))
        rows = int(random.integers(8, 20) if tiled else random.integers(2, 8))
        yield View(rows, width, 1, int(random.integers(1, 12)), tiled)


CONFIGS = lorenzo.CONFIGS
