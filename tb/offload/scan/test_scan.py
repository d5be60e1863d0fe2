"""Bench of a scan: tensors in memory, of which golden's table and statistics have to come, and nothing else."""

import cocotb
import numpy as np
import pytest
from cocotb.triggers import FallingEdge

from actcodec.golden.offload import scan
from actcodec.rtl.offload.scan.plan import ScanPlan
from actcodec.rtl.offload.scan.scan import Scan
from actcodec.rtl.offload.scan.table import Table
from actcodec.rtl.offload.scan.walk import ChannelWalk
from tb.harness import PATTERNS, SEED, Bench, parameters, regress, rng, simulate, unpack
from tb.memory import Memory
from tb.offload.scan.scanner import Scanner
from tb.offload.scan.test_statistics import KINDS, words

SIZE = 1 << 16  # bytes of memory, of which the last quarter is for tables
TABLES = 3 * SIZE // 4
OVERHEAD = 68  # cycles of a scan beside its sectors, with a memory that answers after 20


@pytest.mark.parametrize("lanes", [2, *regress(1, 3, 4)])
def test_scan(lanes):
    simulate(Scanner(lanes), __file__, lanes=lanes)


@pytest.mark.parametrize("unit", [Scan, ScanPlan, ChannelWalk, Table])
@pytest.mark.parametrize("width", [31, 65, 40.5])
def test_a_wrong_address_width_is_refused(unit, width):
    with pytest.raises(ValueError, match="address_width must be 32 to 64 bits, not"):
        unit(address_width=width)


@pytest.mark.parametrize("lanes", [0, 9, 1.5, "all"])
def test_a_wrong_number_of_lanes_is_refused(lanes):
    with pytest.raises(ValueError, match="lanes must be 1 to 8, not"):
        ScanPlan(lanes=lanes)


class Tensor:
    """A tensor somewhere in memory."""

    def __init__(self, random, images, channels, height, width, gap=None, aligned=False, high=False):
        gap = int(random.choice([0, 0, 4, 12, 36])) if gap is None else gap
        self.images, self.channels, self.height, self.width = images, channels, height, width
        self.stride, self.rows = 4 * width + gap, images * channels * height
        room = TABLES - (self.rows * self.stride)
        self.base = 0 if aligned else 4 * int(random.integers(0, room // 4 + 1))
        top = SIZE - 32 * -(-channels // 8)
        self.scales = top if high else int(random.integers(TABLES // 32, top // 32 + 1)) * 32
        self.row = np.arange(self.rows)
        self.place = (self.base + self.row[:, None] * self.stride) // 4 + np.arange(width)
        self.channel = self.row // height % channels

    def __str__(self):
        return str({name: value for name, value in vars(self).items() if np.isscalar(value)})

    def sectors(self, lane, lanes):
        return len(scan.places(self.base, self.rows, self.width, self.stride, self.height, self.channels, lane,
                               lanes).words)


def some(random, limit=300):
    """Shapes of all kinds with a limited number of sectors."""
    while True:
        shape = [int(random.choice([1, 2, 3, 5, 8, 9, 16, 17, 30])) for _ in range(3)]
        width = int(random.choice([1, 2, 7, 8, 9, 14, 16, 17, 49, 64]))
        if np.prod(shape) * -(-width // 8) <= limit and np.prod(shape) * (width + 9) * 4 <= TABLES:
            return *shape, width


class World:
    """The scanner with a memory at all of its ports."""

    def __init__(self, bench, random, **options):
        self.bench, self.dut, self.lanes = bench, bench.dut, parameters()["lanes"]
        self.ports = [Memory(self.dut, f"m_axi_{k}_", SIZE, random, **options) for k in range(self.lanes)]
        self.words = random.integers(0, 1 << 32, SIZE // 4).astype(np.uint32)
        for port in self.ports:
            port.words = self.words
            cocotb.start_soon(port.run())

    @classmethod
    async def started(cls, dut, random, **options):
        return cls(await Bench.started(dut), random, **options)

    async def start(self, tensor):
        dut, self.tensor = self.dut, tensor
        for name in ("base", "rows", "stride", "height", "channels"):
            getattr(dut, f"shape_{name}").value = getattr(tensor, name)
        dut.shape_tiles.value, dut.shape_tail.value = -(-tensor.width // 8), (tensor.width - 1) % 8 + 1
        dut.scales.value = tensor.scales
        await self.bench.pulse("start")

    async def ends(self, limit=5000):
        for cycle in range(limit):
            if self.dut.busy.value == 0:
                return cycle
            await FallingEdge(self.dut.clk)
        raise AssertionError(f"SEED={SEED}: {self.tensor}: busy for {limit} cycles")

    async def scans(self, tensor):
        """Starts a tensor and waits for its end; checks everything but faults. Returns cycles: of the plan, of all."""
        before = self.words.copy()
        await self.start(tensor)
        planned = 0
        while self.dut.planned.value == 0:
            await FallingEdge(self.dut.clk)
            planned += 1
        await FallingEdge(self.dut.clk)
        cycles = await self.ends()
        x = before[tensor.place].view(np.float32)
        table = before.copy()
        k = [scan.scale(scan.largest(x[tensor.channel == c])) for c in range(tensor.channels)]
        table[tensor.scales // 4 :][: tensor.channels] = np.array(k, np.float32).view(np.uint32)
        wrong = np.flatnonzero(self.words != table)
        assert not wrong.size, (
            f"SEED={SEED} {tensor}: word {wrong[0]}: expected {table[wrong[0]]:#x}, "
            f"got {self.words[wrong[0]]:#x}")
        expected, dut = scan.statistics(x), self.dut
        used = min(self.lanes, tensor.channels)
        lows, highs = (np.array(unpack(int(port.value), 32, used), np.uint32).view(np.float32)
                       for port in (dut.minimum, dut.maximum))
        # The least of the lanes' numbers, with -0.0 below +0.0.
        low, high = min(lows, key=lambda v: (v, not np.signbit(v))), max(highs, key=lambda v: (v, not np.signbit(v)))
        got = low.tobytes(), high.tobytes(), int(dut.zeros.value), int(dut.nans.value)
        wanted = expected.minimum.tobytes(), expected.maximum.tobytes(), expected.zeros, expected.nans
        assert got == wanted, f"SEED={SEED} {tensor}: expected {wanted}, got {got}"
        return planned, cycles

    def fill(self, random, tensor, kinds=KINDS):
        """Each channel gets values of a kind."""
        for c in range(tensor.channels):
            place = tensor.place[tensor.channel == c]
            self.words[place] = words(random, random.choice(kinds), place.size).reshape(place.shape)


@cocotb.test
async def equals_golden(dut):
    random = rng()
    world = await World.started(dut, random)
    for _ in range(20):
        tensor = Tensor(random, *some(random))
        world.fill(random, tensor)
        planned, _ = await world.scans(tensor)
        bits = tensor.height.bit_length() + 2 * tensor.channels.bit_length() + tensor.rows.bit_length()
        assert planned == 80 + 4 * world.lanes + 2 * bits
        assert not dut.error.value and not dut.fault.value


@cocotb.test
@cocotb.parametrize(pause=list(PATTERNS), order=["any", "address", "data"])
async def memory_may_rest(dut, pause, order):
    random = rng()
    world = await World.started(dut, random, latency=int(random.integers(0, 60)), pause=pause, order=order)
    for _ in range(2):
        tensor = Tensor(random, *some(random, 60))
        world.fill(random, tensor)
        await world.scans(tensor)


@cocotb.test
async def one_sector_per_cycle(dut):
    """Where rows begin at a beat, a sector is a beat. The last lane starts a cycle before the plan ends; from the cycle
    after that end, it takes as many cycles as it has sectors, those of its first burst, and OVERHEAD."""
    random = rng()
    world = await World.started(dut, random, latency=20)
    for images, height, width in ((1, 8, 64), (4, 8, 8), (2, 16, 16), (40, 1, 16), (3, 7, 56)):
        tensor = Tensor(random, images, world.lanes, height, width, 0, aligned=True)
        world.fill(random, tensor)
        before = len(world.ports[0].reads)
        _, cycles = await world.scans(tensor)
        (_, burst, _), sectors = world.ports[0].reads[before], tensor.sectors(0, world.lanes)
        expected = sectors + burst + OVERHEAD
        assert cycles == expected, f"SEED={SEED} {tensor}: expected {expected}, got {cycles}"


@cocotb.test
async def an_error_of_memory_ends_in_a_fault(dut):
    random = rng()
    world = await World.started(dut, random)
    for side in (0, 1):
        tensor = Tensor(random, 2, 3, 4, 9)
        world.fill(random, tensor)
        place = tensor.scales if side else 4 * int(random.choice(tensor.place.ravel()))
        for port in world.ports:
            port.errors = {place // 32}
        await world.scans(tensor)
        assert dut.fault.value == 1 << side
        for port in world.ports:
            port.errors = set()
        await world.scans(tensor)
        assert dut.fault.value == 0


@cocotb.test
async def rows_that_are_no_whole_images_are_refused(dut):
    random = rng()
    world = await World.started(dut, random)
    for change in (-1, 1, None):
        tensor = Tensor(random, 2, 3, 4, 9, gap=0)
        tensor.rows = tensor.rows + change if change else 11
        before = world.words.copy()
        await world.start(tensor)
        await world.ends()
        assert dut.error.value == 1
        assert (world.words == before).all() and not any(port.reads or port.writes for port in world.ports)
    tensor = Tensor(random, 2, 3, 4, 9)
    tensor.height, tensor.channels = (1 << 24) - 1, (1 << 24) - 1
    await world.start(tensor)
    await world.ends()
    assert dut.error.value == 1
    await world.scans(Tensor(random, 2, 3, 4, 9))
    assert dut.error.value == 0


@cocotb.test
async def a_soft_reset_at_any_moment_leaves_memory_whole(dut):
    random = rng()
    world = await World.started(dut, random, latency=12, pause="seldom")
    for case in range(24):
        tensor = Tensor(random, 2, 5, 2, 30)
        world.fill(random, tensor)
        before = world.words.copy()
        await world.start(tensor)
        for _ in range(int(random.integers(0, 60 if case % 3 == 0 else 300))):
            await FallingEdge(dut.clk)
        dut.abort.value = 1
        await FallingEdge(dut.clk)
        await FallingEdge(dut.clk)
        await world.ends()
        await world.bench.pulse("clear")
        dut.abort.value = 0
        outside = np.ones(len(before), bool)
        outside[tensor.scales // 4 :][: tensor.channels] = False
        assert (world.words == before)[outside].all()
        assert all(port.idle for port in world.ports)
        await world.scans(tensor)
