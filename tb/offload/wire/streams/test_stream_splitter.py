"""Bench of the splitter of streams: each lane gets its own, and an end, whatever the packets are."""

import cocotb
import pytest
from cocotb.triggers import ClockCycles, FallingEdge, RisingEdge

from actcodec.golden.offload.wire import stream
from actcodec.rtl.offload.wire.streams.stream_splitter import StreamSplitter
from tb.harness import PATTERNS, SEED, STALLS, after, pack, regress, rng, simulate, unpack
from tb.offload.wire import payloads
from tb.offload.wire.cleared import Cleared, reset
from tb.offload.wire.streams.streamed import Streamed, streams


@pytest.mark.parametrize("cdus", [4, *regress(1, 2, 3, 8)])
def test_stream_splitter(cdus):
    simulate(StreamSplitter(cdus), __file__, cdus=cdus)


def test_soft_reset():
    simulate(Cleared(StreamSplitter(3)), __file__, [recovers_from_a_soft_reset], cdus=3)


@pytest.mark.parametrize("cdus", [0, 9, True, 2.0])
def test_refuses_wrong_parameters(cdus):
    with pytest.raises(ValueError, match="cdus must be"):
        StreamSplitter(cdus)


class Lanes(Streamed):
    """Compares with golden."""

    async def begin(self, lengths, used=None):
        for c, length in enumerate(lengths):
            getattr(self.dut, f"lengths__{c}").value = length
        self.dut.used.value = pack(used or [length > 0 for length in lengths], 1)
        await self.bench.pulse("start")

    async def _busy(self):
        """Watches that it says so while a beat waits."""
        offers = [getattr(self.dut, f"o__{c}__valid") for c in range(self.cdus)]
        while True:
            await RisingEdge(self.dut.clk)
            assert self.dut.busy.value == 1 or not any(offer.value for offer in offers), f"SEED={SEED}: a beat waits"

    async def split(self, payload, lengths, random, used=None, null=False, **patterns):
        """Compares with golden: the streams, which end once, and what is wrong with the payload."""
        used = used or [length > 0 for length in lengths]
        await self.begin(lengths, used)
        # No lane can get more than all of it.
        expected = stream.unweave(payload, [min(length, len(payload) + 8) for length in lengths])
        size = sum(-(-length // 8) * 8 for length in lengths)
        beats = {  # without bytes where it has to end behind full ones
            f"o__{c}": -(-len(data) // 8) + (used[c] and len(data) % 8 == 0 and (not length or len(data) < length))
            for c, (data, length) in enumerate(zip(expected, lengths, strict=True))}
        watch = cocotb.start_soon(self._busy())
        run = await self.bench.run({"i": payloads.packets(payload, null)}, beats, random, **patterns)
        watch.cancel()
        await ClockCycles(self.dut.clk, 4)
        await FallingEdge(self.dut.clk)
        assert self.dut.busy.value == 0
        assert not any(getattr(self.dut, f"{port}__valid").value for port in beats)
        what = f"SEED={SEED} {len(payload)} bytes for {lengths}"
        lacks = False
        for c, data in enumerate(expected):
            beats = [(bytes(unpack(beat, 8, 8)), beat >> 64 & 15, beat >> 68) for beat in run[f"o__{c}"]]
            assert [last for _, _, last in beats] == [0] * (len(beats) - 1) + [1] * used[c], f"{what}: lane {c}"
            assert all(count == 8 for _, count, _ in beats[:-1]), f"{what}: lane {c}"
            assert all(not any(content[count:]) for content, count, _ in beats), f"{what}: lane {c}"
            got = b"".join(content[:count] for content, count, _ in beats)
            self.bench.equal(list(got), list(data), f"{what}: lane {c}")
            lacks |= len(data) < lengths[c]
        assert self.dut.short.value == lacks, what
        assert self.dut.excess.value == (len(payload) > size), what
        return run


def some(random, lanes, most=200):
    parts = streams(random, lanes.cdus, most)
    return stream.weave(parts), [len(data) for data in parts]


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def gives_every_lane_its_own_whatever_the_ports_do(dut, idle, stall):
    random = rng()
    lanes = await Lanes.started(dut)
    for most in (20, 300):
        await lanes.split(*some(random, lanes, most), random, idle=idle, stall=stall)


@cocotb.test
async def gives_every_lane_its_own_of_all_lengths(dut):
    """With a null packet behind those that fill packets, too."""
    random = rng()
    lanes = await Lanes.started(dut)
    for _ in range(60):
        await lanes.split(*some(random, lanes, int(random.integers(1, 200))), random)
    for turns in range(1, 40):
        data = random.bytes(8 * turns * lanes.cdus)
        for null in range(1 + (len(data) % 128 == 0)):
            await lanes.split(data, [8 * turns] * lanes.cdus, random, null=null)


@cocotb.test
async def ends_packets_that_are_too_few_or_too_many(dut):
    """Anything may be in what fills up a turn, and behind the end."""
    random = rng()
    lanes = await Lanes.started(dut)
    for turn in range(60):
        payload, lengths = some(random, lanes, int(random.integers(1, 300)))
        payload = random.bytes(len(payload))
        cut = int(random.choice([0, 1, 8, len(payload) - 1, len(payload) - 8, random.integers(len(payload))]))
        more = int(random.choice([1, 8, 127, 128, 129, 500]))
        stall = ("never", "half")[turn % 2]
        await lanes.split(payload[:max(cut, 0)], lengths, random, stall=stall)
        await lanes.split(payload + random.bytes(more), lengths, random, stall=stall)
        await lanes.split(payload, lengths, random, stall=stall)


@cocotb.test
async def keeps_lengths_of_all_bits(dut):
    random = rng()
    lanes = await Lanes.started(dut)
    for bit in range(32):
        for few in (5, 8, 24):
            lengths = [(1 << (bit + c) % 32) + few for c in range(lanes.cdus)]
            await lanes.split(random.bytes(300), lengths, random)


@cocotb.test
async def ends_a_lane_that_is_used_but_gets_nothing(dut):
    random = rng()
    lanes = await Lanes.started(dut)
    for _ in range(10):
        payload, lengths = some(random, lanes)
        await lanes.split(payload, lengths, random, used=[True] * lanes.cdus)
    await lanes.split(b"", [0] * lanes.cdus, random, used=[True] * lanes.cdus)
    await lanes.split(b"x", [0] * lanes.cdus, random, used=[True] * lanes.cdus)


@cocotb.test
async def gives_a_turn_a_cycle_to_each_lane(dut):
    """Except where a packet ends within a round of turns."""
    random = rng()
    lanes = await Lanes.started(dut)
    turns = 64
    for used in [[c != left_out for c in range(lanes.cdus)] for left_out in range(-1, lanes.cdus)]:
        count = sum(used)
        run = await lanes.split(random.bytes(8 * turns * count), [8 * turns * one for one in used], random)
        cycles = [cycle for c, one in enumerate(used) if one for cycle in run.cycles[f"o__{c}"]]
        split = sum(16 * k % count > 0 for k in range(1, -(-turns * count // 16)))
        assert not count or max(cycles) - min(cycles) + 1 == turns + split, f"SEED={SEED}: {used}"


@cocotb.test
async def recovers_from_a_soft_reset(dut):
    random = rng()
    lanes = await Lanes.started(dut)
    for cycles in (1, 3, 10, 30):
        await lanes.begin([400] * lanes.cdus)
        await lanes.bench.run({"i": payloads.packets(random.bytes(400 * lanes.cdus))},
                              {f"o__{c}": None for c in range(lanes.cdus)}, random, until=after(cycles))
        await reset(lanes.bench)
        await lanes.split(*some(random, lanes), random)
