"""Bench of the control of a CDU: tensors of any count of blocks, legal or not, and whatever is told of their stream."""

from itertools import product

import cocotb
import pytest
from amaranth.lib import data
from cocotb.triggers import FallingEdge, Timer

from actcodec.codecs import lane_modes
from actcodec.rtl.jpegact.control import Control
from actcodec.rtl.offload.control.config import Error, config_layout, of_blocks
from tb.harness import SEED, Bench, regress, rng, simulate, target

# So many that there are codes of none, and one of each kind: without tiles, with them, with segments.
MODES = lane_modes("raw", "sfpr-zvc", "jpeg-act", "brc", "division")
LAYOUT = data.Layout.cast(config_layout(MODES))
BLOCKS = of_blocks(lane_modes())
SHARE = {"sectors": 3, "tail": 8}  # of a legal tensor
MANY = 3  # blocks after which there have to be more, if there are


@pytest.mark.parametrize("target", ["cells", *regress("lut")])
def test_control(target):
    simulate(Control(MODES), __file__, without=[refuses_settings_beyond_each_limit], target=target)


def test_control_of_all_modes():
    simulate(Control(BLOCKS), __file__, [refuses_settings_beyond_each_limit])


def config(blocks, mode=0, decompress=0, layout=0, share=SHARE):
    return {"blocks": blocks, "mode": mode, "decompress": decompress, "layout": layout, "share": share}


def legal(config):
    """Whether there can be such a tensor."""
    if not config["blocks"] or config["mode"] >= len(MODES):
        return False
    mode, layout, share = MODES[config["mode"]], config["layout"], config["share"]
    if mode.tiled and (layout == 3 or (layout == 1 and config["blocks"] % 2)):
        return False
    return not mode.format.segmented or bool(share["sectors"] and 1 <= share["tail"] <= 8)


class ControlDriver:
    """Drives the control, a tensor after the other."""

    def __init__(self, dut, random):
        self.dut, self.random, self.bench = dut, random, Bench(dut)

    async def cycle(self, **inputs):
        """Sets inputs for a cycle."""
        for name, value in inputs.items():
            getattr(self.dut, name).value = int(value)
        await FallingEdge(self.dut.clk)

    def looks(self, what, **outputs):
        """Compares outputs."""
        actual = {name: int(getattr(self.dut, name).value) for name in outputs}
        assert actual == outputs, f"SEED={SEED}: {what}: expected {outputs}, got {actual}"

    def error(self, what, **flags):
        self.looks(what, error=Error.const(flags).as_bits())

    async def begin(self, config):
        """Offers a configuration, and looks what becomes of it; whether it has started."""
        extra = {"signs": int(self.random.integers(2)), "table": self.random.integers(0, 8, 64).tolist(),
                 "settings": int.from_bytes(self.random.bytes(64), "little") % (1 << LAYOUT["settings"].width)}
        bits = LAYOUT.const({**config, **extra}).as_bits()
        self.looks(config, config__ready=1, busy=0, start=0, feeding=0, dropping=0, closing=0)
        await self.cycle(config__payload=bits, config__valid=1)
        if target() == "lut":  # which takes a cycle to check it
            self.looks(config, config__ready=0, busy=1, start=0, tensor=bits, error=0)
            await self.cycle(config__payload=self.random.integers(1 << 32))
        self.looks(config, config__ready=0, busy=1, start=int(legal(config)), tensor=bits, error=0)
        # What comes behind it has to wait.
        await self.cycle(config__payload=self.random.integers(1 << 32), config__valid=legal(config))
        if not legal(config):
            self.looks(config, config__ready=1, busy=0, start=0)
            self.error(config, config=1)
        return legal(config)

    async def end(self, config, short, malformed, excess=False):
        """Ends a tensor, which was told what it was told of its stream; ``excess`` is said when it is asked for."""
        self.looks(config, busy=1, closing=0, start=0)
        await self.cycle(done=1, config__valid=0)
        self.looks(config, busy=1, closing=1, feeding=0, dropping=0)
        # Only now is there a look at this; and no more at those.
        await self.cycle(done=0, excess=excess, left=1, short=0, malformed=0)
        for left in [*[1] * int(self.random.integers(3)), 0]:
            self.looks(config, busy=1, closing=0, dropping=1)
            await self.cycle(excess=not excess, left=left)
        self.looks(config, busy=0, config__ready=1, dropping=0)
        self.error(config, short=int(short), malformed=int(malformed), excess=int(excess and not short))


async def started(dut, random):
    driver = ControlDriver(dut, random)
    await driver.bench.start()
    return driver


@cocotb.test
async def counts_sectors_and_tells_the_last(dut):
    """In any rhythm. ``short`` and ``malformed`` count only while a tensor is decompressed."""
    random = rng()
    driver = await started(dut, random)
    for count, decompress, how in product([1, 2, 3, 4, 5, 8, 33], (0, 1), (0.2, 0.7, 1)):
        one = config(count, decompress=decompress)
        assert await driver.begin(one)
        passed, faults = 0, {"short": False, "malformed": False}
        while passed < 8 * count or random.random() < 0.5:
            driver.looks(f"{one}, {passed} sectors", more=int(passed < 8 * count), last=int(passed == 8 * count - 1),
                        feeding=decompress, start=0, closing=0)
            counted = passed < 8 * count and random.random() < how
            flags = {name: random.random() < 0.02 for name in faults}
            faults = {name: so or (flags[name] and decompress == 1) for name, so in faults.items()}
            await driver.cycle(counted=counted, excess=random.random() < 0.5, **flags)
            passed += counted
        await driver.cycle(counted=0, short=0, malformed=0)
        await driver.end(one, excess=random.random() < 0.5, **faults)


@cocotb.test
async def tells_every_combination_of_faults(dut):
    random = rng()
    driver = await started(dut, random)
    for short, malformed, excess in product((0, 1), repeat=3):
        assert await driver.begin(config(1, decompress=1))
        for flags in ({"short": short}, {"malformed": malformed}):
            await driver.cycle(**flags)
        await driver.end("faults", short, malformed, excess)


@cocotb.test
async def refuses_what_there_cannot_be(dut):
    random = rng()
    driver = await started(dut, random)
    begun = 0
    sizes = [*product((0, 1), range(16)), *((1 << bit, 8) for bit in range(LAYOUT["share"].shape["sectors"].width))]
    shares = [SHARE, *({"sectors": sectors, "tail": tail} for sectors, tail in sizes)]
    configs = [config(*some) for some in product((0, 1, 2, 3, 7, 8), range(8), (0, 1), range(4))]
    configs += [config(4, mode, share=share) for mode in range(len(MODES)) for share in shares]
    for one in configs:
        if await driver.begin(one):
            begun += 1
            await driver.end(one, False, False)
    assert 0 < begun < len(configs)


@cocotb.test
async def recovers_from_a_reset_at_any_moment(dut):
    random = rng()
    driver = await started(dut, random)
    for sectors in range(17):
        assert await driver.begin(config(2, decompress=1))
        await driver.cycle(short=1, malformed=1)
        for _ in range(sectors):
            await driver.cycle(counted=1)
        await driver.cycle(counted=0, short=0, malformed=0, done=sectors % 2)
        await driver.cycle(done=0, left=sectors // 2 % 2)
        await driver.bench.reset()
        driver.looks(f"{sectors} sectors", error=0, more=0)
        assert await driver.begin(config(1))
        for sector in range(8):
            driver.looks(f"{sectors} sectors, then {sector}", more=1, last=int(sector == 7))
            await driver.cycle(counted=1, left=0)
        await driver.cycle(counted=0)
        await driver.end(f"{sectors} sectors", False, False)


@cocotb.test
async def every_bit_of_the_count_counts(dut):
    """No tensor of many blocks ends after a few, nor is refused."""
    random = rng()
    driver = await started(dut, random)
    counts = [(1 << bit) + more for bit in range(2, 32) for more in range(MANY)]
    for count in [*counts, *((1 << 32) - count for count in counts), *map(int, random.integers(MANY, 1 << 32, 50))]:
        one = config(count)
        assert await driver.begin(one)
        for sector in range(8 * MANY if count > MANY else 0):
            driver.looks(f"{one}, {sector} sectors", more=1, last=int(sector == 8 * count - 1))
            await driver.cycle(counted=1)
        await driver.cycle(counted=0)
        driver.looks(one, more=1)
        await driver.end(one, False, False)


@cocotb.test
async def many_blocks_are_counted(dut):
    """Through borrows of the lower half of the count, a sector behind the other."""
    driver = await started(dut, rng())
    for count in (1 << 8, (1 << 12) + 1, 1 << 13):
        assert await driver.begin(config(count))
        dut.counted.value = 1
        await Timer(2 * (8 * count - 1) - 1, "ns")  # cycles, without a look at each
        await FallingEdge(dut.clk)
        driver.looks(count, more=1, last=1)
        await driver.cycle()
        driver.looks(count, more=0, last=0)
        await driver.cycle(counted=0)
        await driver.end(count, False, False)


@cocotb.test
async def refuses_settings_beyond_each_limit(dut):
    """And no others: every limit of every mode from both sides, in both directions, and any bits at all."""
    random = rng()
    layout, bench = data.Layout.cast(config_layout(BLOCKS)), Bench(dut)
    await bench.start()
    seen = set()
    for place, mode in enumerate(BLOCKS):
        cases = [(setting, number) for setting in mode.settings for number in (
            *setting.around(setting.default), *(int.from_bytes(random.bytes(64), "little") >> int(random.integers(510))
                                                & (1 << setting.width) - 1 for _ in range(20)))]
        good = sum(setting.default << setting.low for setting in mode.settings)
        for decompress in (0, 1):
            for setting, number in [*cases, (None, 0)]:
                bits = good
                if setting:
                    bits ^= (setting.default ^ number) << setting.low
                noise = int.from_bytes(random.bytes(128), "little") & ~sum(
                    (1 << one.width) - 1 << one.low for one in mode.settings) & (1 << layout["settings"].width) - 1
                share = {"sectors": 1, "tail": 8}
                dut.config__payload.value = layout.const({
                    "blocks": 1, "mode": place, "decompress": decompress, "settings": bits | noise,
                    "share": share}).as_bits()
                dut.config__valid.value = 1
                await FallingEdge(dut.clk)
                dut.config__valid.value = 0
                legal = setting is None or not setting.broken(number, decompress)
                what = f"SEED={SEED}: {mode.name}, {setting} {number:#x}, decompress {decompress}"
                assert dut.start.value == legal, what
                await FallingEdge(dut.clk)
                assert dut.busy.value == legal and int(dut.error.value) == (not legal), what
                seen.add((mode.name, setting and setting.name, decompress, legal))
                await bench.reset(1)
    assert seen == {(mode.name, setting and setting.name, decompress, legal) for mode in BLOCKS
                    for setting in (None, *mode.settings) for decompress in (0, 1)
                    for legal in ((True, False) if setting and setting.limits else (True,))}
