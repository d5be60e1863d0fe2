"""Bench of the collector of streams: bytes of all lanes in golden's order, in full packets."""

from functools import partial

import cocotb
import pytest
from cocotb.triggers import ClockCycles, FallingEdge

from actcodec.codecs import lane_modes
from actcodec.golden.offload.wire import stream
from actcodec.rtl.comet.lane import LaneCodec
from actcodec.rtl.jpegact.cdu import Cdu
from actcodec.rtl.offload.control.codecs import Codecs
from actcodec.rtl.offload.wire.packets import PacketCollector, PacketSplitter
from actcodec.rtl.offload.wire.streams.stream_collector import StreamCollector
from tb.harness import PATTERNS, STALLS, after, chunks, pack, regress, rng, simulate
from tb.offload.wire import payloads
from tb.offload.wire.cleared import Cleared, reset
from tb.offload.wire.streams.streamed import Streamed, streams


@pytest.mark.parametrize("cdus", [4, *regress(1, 2, 3, 8)])
def test_stream_collector(cdus):
    simulate(StreamCollector(cdus), __file__, cdus=cdus)


def test_soft_reset():
    simulate(Cleared(StreamCollector(3)), __file__, [recovers_from_a_soft_reset], cdus=3)


@pytest.mark.parametrize("modes", [lane_modes("raw"), (), "raw"], ids=["blocks", "none", "text"])
@pytest.mark.parametrize("unit", [partial(PacketCollector, 2), partial(PacketSplitter, 2), partial(Codecs, codec=Cdu),
                                  LaneCodec])
def test_units_of_streams_need_a_mode_that_has_them(unit, modes):
    with pytest.raises(ValueError, match="modes must "):
        unit(modes)


@pytest.mark.parametrize("cdus", [0, 9, True, 2.0])
def test_refuses_wrong_parameters(cdus):
    with pytest.raises(ValueError, match="cdus must be"):
        StreamCollector(cdus)


class Lanes(Streamed):
    """Compares with golden."""

    async def collect(self, streams, random, **patterns):
        self.dut.used.value = pack([len(data) > 0 for data in streams], 1)
        await self.bench.pulse("start")
        expected = payloads.packets(stream.weave(streams))
        sources = {f"i__{c}": chunks(data, 8) for c, data in enumerate(streams) if data}
        run = await self.bench.run(sources, {"o": len(expected)}, random, **patterns)
        what = f"{[len(data) for data in streams]} bytes"
        self.bench.equal(run["o"], expected, what)
        await ClockCycles(self.dut.clk, 4)
        await FallingEdge(self.dut.clk)
        lengths = [int(getattr(self.dut, f"lengths__{c}").value) for c in range(self.cdus)]
        assert lengths == [len(data) for data in streams], f"{lengths}, expected {what}"
        return run


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def gives_goldens_packets_whatever_the_ports_do(dut, idle, stall):
    random = rng()
    lanes = await Lanes.started(dut)
    for most in (20, 300):
        await lanes.collect(streams(random, lanes.cdus, most), random, idle=idle, stall=stall)


@cocotb.test
async def gives_goldens_packets_of_streams_of_all_lengths(dut):
    random = rng()
    lanes = await Lanes.started(dut)
    for _ in range(60):
        await lanes.collect(streams(random, lanes.cdus, int(random.integers(1, 200))), random)
    for turns in range(1, 40):  # lanes of equal lengths fill packets now and then
        await lanes.collect([random.bytes(8 * turns)] * lanes.cdus, random)


@cocotb.test
async def counts_long_streams(dut):
    """Of more than 16 bits."""
    random = rng()
    lanes = await Lanes.started(dut)
    await lanes.collect([random.bytes((1 << 17 >> c) + c + 1) for c in range(lanes.cdus)], random)


@cocotb.test
async def takes_a_turn_a_cycle_of_each_lane(dut):
    """Except where a packet ends within a round of turns."""
    random = rng()
    lanes = await Lanes.started(dut)
    turns = 64
    run = await lanes.collect([random.bytes(8 * turns)] * lanes.cdus, random)
    first, last = min(run.cycles["i__0"]), max(run.cycles[f"i__{lanes.cdus - 1}"])
    split = sum(16 * k % lanes.cdus > 0 for k in range(1, turns * lanes.cdus // 16))
    assert last - first + 1 == turns + split


@cocotb.test
async def recovers_from_a_soft_reset(dut):
    random = rng()
    lanes = await Lanes.started(dut)
    for cycles in (1, 3, 10, 30):
        dut.used.value = (1 << lanes.cdus) - 1
        await lanes.bench.pulse("start")
        await lanes.bench.run({f"i__{c}": chunks(random.bytes(400), 8) for c in range(lanes.cdus)}, {"o": 9}, random,
                              until=after(cycles))
        await reset(lanes.bench)
        await lanes.collect(streams(random, lanes.cdus), random)
