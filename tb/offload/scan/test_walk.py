"""Bench of a scan's walk: the places of all sectors of a lane's channels, equal to plain loops; counts of any size."""

from itertools import islice

import cocotb
import pytest

from actcodec.rtl.offload.memory.geometry import ROW_BITS, SIZE, TILES
from actcodec.rtl.offload.scan.walk import ChannelWalk, route_layout, start_layout
from tb.harness import STALLS, parameters, regress, rng, simulate, synthesised
from tb.offload.scan.places import Walker

LATENCY = 3
COUNTS = {"tiles": TILES, "height": SIZE, "images": ROW_BITS, "channels": SIZE}  # their bits
ONCE = dict.fromkeys(COUNTS, 1)


@pytest.mark.parametrize("width, halves", [(synthesised("scan", "address_width", 40), False), *regress(
    (33, True), (64, False))])
def test_walk(width, halves):
    simulate(ChannelWalk(width, halves), __file__, width=width, halves=halves)


def places(route, origin):
    """All of them, in their order: (address, values, slot, last). Distances are any."""
    address, space = origin["address"], 1 << parameters()["width"]
    channels = range(0, origin["channels"], route["lanes"])
    for channel in channels:
        for image in range(route["images"]):
            for row in range(route["height"]):
                for tile in range(route["tiles"]):
                    way = ("tile" if tile + 1 < route["tiles"] else "row" if row + 1 < route["height"] else
                           "plane" if image + 1 < route["images"] else "channel")
                    yield (address % space, 8 if way == "tile" else route["tail"], int(way == "channel"),
                           int(way == "channel" and channel == channels[-1]))
                    address += (16 if route.get("half") else 32) if way == "tile" else route[way]


def drawn(random, **counts):
    """A route and where it begins, with distances of any bits and few of everything but ``counts``."""
    def address():
        return int.from_bytes(random.bytes(8), "little") >> 64 - parameters()["width"]

    some = {name: int(random.integers(1, 5)) for name in COUNTS} | {"lanes": int(random.integers(1, 9))} | counts
    route = {"tail": int(random.integers(1, 9)),
             **{name: some[name] for name in ("tiles", "height", "images", "lanes")},
             **{name: address() for name in ("row", "plane", "channel")}}
    if parameters()["halves"]:
        route["half"] = int(random.integers(2))
    return route, {"address": address(), "channels": some["channels"]}


async def check(walker, random, route, origin, most=1000, stall="never"):
    """The whole walk, or its first places if it has more than ``most``; the cycles in which they come."""
    width, halves = parameters()["width"], parameters()["halves"]
    walker.dut.route.value = route_layout(width, halves).const(route).as_bits()
    walker.dut.origin.value = start_layout(width).const(origin).as_bits()
    expected = list(islice(places(route, origin), most + 1))
    return await walker.walks(random, expected[:most], f"{route}, {origin}", len(expected) <= most, stall)


@cocotb.test
@cocotb.parametrize(stall=STALLS)
async def equals_plain_loops(dut, stall):
    random, walker = rng(), Walker(dut)
    await walker.start()
    for _ in range(20):
        await check(walker, random, *drawn(random), stall=stall)


@cocotb.test
async def gives_a_place_per_cycle(dut):
    random, walker = rng(), Walker(dut)
    await walker.start()
    for _ in range(20):
        cycles = await check(walker, random, *drawn(random))
        assert cycles == list(range(LATENCY, LATENCY + len(cycles)))


@cocotb.test
async def counts_with_every_bit(dut):
    """Of what is far too much to be walked, the beginning."""
    random, walker = rng(), Walker(dut)
    await walker.start()
    for name, bits in COUNTS.items():
        for bit in range(bits):
            for more in {0, *range(1, min(4, 1 << bit)), int(random.integers(1 << bit))}:
                await check(walker, random, *drawn(random, **ONCE | {name: 1 << bit | more, "lanes": 1}), most=20)


@cocotb.test
async def borrows_from_every_bit(dut):
    """Down through a power of two, as far as that can be walked."""
    random, walker = rng(), Walker(dut)
    await walker.start()
    for name in COUNTS:
        for bit in range(12):
            for more in (2, 3):
                await check(walker, random, *drawn(random, **ONCE | {name: (1 << bit) + more}), most=5000)
