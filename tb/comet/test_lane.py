"""Bench of COMET in the lanes of an accelerator: whole tensors from memory to the stream and back, byte for byte as
golden's of as many CDUs, among cocotbext-axi's models."""

from unittest.mock import patch

import cocotb
import numpy as np
import pytest
from cocotb.triggers import ClockCycles, RisingEdge

from actcodec.codecs import lane_modes
from actcodec.codecs.models import comet as model
from actcodec.golden.comet import comet, lorenzo
from actcodec.golden.comet.book import Book
from actcodec.golden.offload.blocks import View
from actcodec.golden.offload.wire import stream
from actcodec.rtl.jpegact.cdu import Cdu
from actcodec.rtl.offload.accelerator import Accelerator
from actcodec.rtl.offload.control import setting
from actcodec.rtl.offload.control.register_map import COUNTERS, ErrorCode
from tb.comet.streams import counts, restored
from tb.comet.test_book import some
from tb.comet.test_comet import tensor
from tb.comet.world import CONFIGS
from tb.harness import SEED, parameters, regress, rng, simulate
from tb.judges.test_comet_turns import cycles, demands
from tb.offload import world

ALONE = ("comet", "comet-flat")
BESIDE = ("sfpr", *ALONE)
FLAT = [(1, 1), (3, 5), (2, 300), (1, 3, 5, 8), (2, 3, 11, 13), (700, 1)]
# Tiles in rows of one, two, three and more, ragged widths and heights, channels that end inside of tiles.
TILED = [(1, 1, 8, 8), (1, 5, 8, 8), (3, 2, 9, 24), (2, 3, 7, 13), (1, 2, 30, 56), (1, 7, 14, 14), (1, 3, 11, 40)]


@pytest.mark.parametrize("cdus", [1, *regress(3)])
def test_lane(cdus):
    modes = ALONE if cdus == 1 else BESIDE
    simulate(Accelerator(cdus, lane_modes(*modes), Cdu), __file__, cdus=cdus, modes=modes)


def job(one):
    """The mode of a lane, and its settings, for golden's ``Encoded``."""
    return ALONE[not one.config.tiled], model.settings(one.s, one.config, one.book)


class World(world.World):
    """An accelerator with COMET among its neighbours."""

    def encoded(self, x, name, book=None):
        """A tensor with a bound and a book by chance, or a given one."""
        eb = float(self.random.choice([0.02, 0.3, 2]))
        book = book or (Book(some(self.random)) if self.random.random() < 0.3 else None)
        return comet.compress(x, eb, CONFIGS[name], book, self.cdus)

    async def rows(self, x, one, view, stride):
        """Rows of a view, as the registers can describe them, there and back; compares."""
        mode, settings = job(one)
        mode, = lane_modes(mode)
        payload, lengths = stream.weave(one.streams), tuple(map(len, one.streams))
        address = 4 * int(self.random.integers(64))
        index = (address + stride * np.arange(view.rows)[:, None] + np.arange(4 * view.width)).reshape(-1)
        what = f"{mode.name} {view}, stride {stride}, on {self.cdus} CDUs, {one.config}, {one.book}, SEED={SEED}"
        descriptor = {"mode": mode.code, "rows": view.rows, "width": view.width, "stride": stride, "base": address,
                      "height": view.height, "channels": view.channels,
                      "settings": sum(settings[one.name] << one.low for one in mode.settings)}
        for back in (0, 1):
            self.fill()
            before = self.content.copy()
            result, error = comet.decompress(one, view) if back else (x, 0)
            before[index] = np.ascontiguousarray(result).view(np.uint8).reshape(-1)
            if back:
                self.send(payload)
                descriptor |= {"lengths_in": sum(length << 32 * k for k, length in enumerate(lengths))}
            else:
                self.content[index] = before[index]
            sizes = {"settings": setting.width([mode]), "lengths_in": 32 * self.cdus, "lengths_out": 32 * self.cdus}
            await self.driver.put(sizes, **descriptor, decompress=back)
            await self.driver.put(done_pending=1, error_pending=1)
            await self.driver.put(start=1)
            await self.interrupt()
            done, code, found = await self.driver.get("done", "error", "lengths_out", sizes=sizes)
            assert (done, code) == (1, ErrorCode.NONE) and not error, what
            if not back:
                frame = await self.sink.recv(compact=False)
                self.bench.equal(list(frame.tdata[: sum(frame.tkeep)]), list(payload), what)
                assert found == sum(length << 32 * k for k, length in enumerate(lengths)), what
                assert await self.driver.histogram() == counts(one, x, view), what
            wrong = np.flatnonzero(self.content != before)[:1]
            assert not wrong.size, f"{what}: memory at {wrong[0]:#x}, back: {back}"

    async def there(self, x, one):
        """Has ``x`` compressed, and compares; the driver's result."""
        mode, settings = job(one)
        address, _, index = self.place(mode, x.shape)
        self.fill()
        self.content[index] = np.ascontiguousarray(x).view(np.uint8).reshape(-1)
        before = self.content.copy()
        result = await self.driver.compress(address, x.shape, mode, settings=settings)
        frame = await self.sink.recv(compact=False)
        payload, size = stream.weave(one.streams), result.counters["bytes_out"]
        what = f"{mode} {x.shape} on {self.cdus} CDUs, {one.config}, SEED={SEED}"
        assert size == sum(frame.tkeep) == len(payload), f"{what}: {size} bytes, expected {len(payload)}"
        assert all(frame.tkeep[:size]) and not any(frame.tdata[size:]), f"{what}: the last packet is wrong"
        self.bench.equal(list(frame.tdata[:size]), list(payload), what)
        assert result.lengths == tuple(map(len, one.streams)), what
        assert result.mode == mode and result.counters["bytes_in"] == x.nbytes
        assert np.array_equal(self.content, before), f"{what}: memory has changed"
        return result

    async def back(self, one, shape, payload=None, lengths=None, send=True):
        """Has it decompressed, or another payload in its place, and compares values and error."""
        payload = stream.weave(one.streams) if payload is None else payload
        lengths = tuple(map(len, one.streams)) if lengths is None else tuple(lengths)
        expected, code = restored(one, shape, payload, lengths)
        mode, settings = job(one)
        address, _, index = self.place(mode, shape)
        self.fill()
        before = self.content.copy()
        before[index] = expected.view(np.uint8).reshape(-1)
        if send:
            self.send(payload)
        found = []

        async def work():
            found.append(await self.driver.decompress(address, shape, mode, settings=settings, lengths=lengths))

        await self.fails(work(), code)
        what = f"{mode} {shape} from {self.cdus} CDUs, {one.config}, {len(payload)} bytes for {lengths}, SEED={SEED}"
        wrong = np.flatnonzero(self.content != before)[:1]
        assert not wrong.size, (f"{what}: memory at {wrong[0]:#x}, {np.searchsorted(index, wrong[0])} bytes into the "
                                f"tensor: expected {before[wrong[0]]}, got {self.content[wrong[0]]}")
        await self.source.wait()
        return found[0] if found else None

    async def both(self, x, one):
        return await self.there(x, one), await self.back(one, x.shape)


async def begin(dut):
    random = rng()
    found = World(dut, random)
    await found.start()
    return random, found


@cocotb.test
@cocotb.parametrize(name=list(CONFIGS))
async def goes_there_and_back(dut, name):
    random, it = await begin(dut)
    for k, shape in enumerate(TILED if CONFIGS[name].tiled else FLAT):
        it.pause(("never", "seldom", "half", "bursts")[k % 4])
        it.latency = (0, 0, 30)[k % 3]
        x = tensor(random, shape, (0, 0.02, 0.5)[k % 3])
        await it.both(x, it.encoded(x, name))


@cocotb.test
async def takes_any_rows_of_a_descriptor(dut):
    """With every remainder of a width, and all predictors, signed or not; not only what the driver sees in shapes."""
    random, it = await begin(dut)
    ones = np.ones((2, 9), np.float32)
    view = View(2, 9, 1, 1, False)
    one = comet.compress(ones, 0.5, CONFIGS["line"], Book([1, 1, 2, 0, 0, 0, 0, 0]), it.cdus, view)
    await it.rows(ones, one, view, 36)
    for turn in range(48):
        tiled = turn % 3 == 0
        width = turn % 8 + int(random.choice([8, 16, 40] if tiled else [0, 8, 64, 300]))
        rows = int(random.integers(8, 30) if tiled else random.integers(1, 1 + max(9, 900 // max(width, 1))))
        view = View(rows, max(width, 1), *map(int, random.integers(1, 20, 2)), tiled)
        config = lorenzo.Config(tiled, bool(turn & 8), tiled and bool(random.integers(2)), bool(random.integers(2)))
        it.pause(("never", "seldom", "half", "bursts")[turn % 4])
        it.latency = (0, 0, 30)[turn % 5 % 3]
        x = tensor(random, view[:2], (0, 0.02, 0.5)[turn % 7 % 3])
        book = Book(some(random))
        one = comet.compress(x, float(random.choice([0.02, 0.3, 2])), config, book, it.cdus, view)
        gap = int(random.choice([0, 1, 8, 100 if rows < 300 else 8]))  # all of it fits into memory
        await it.rows(x, one, view, 4 * (view.width + gap))


@cocotb.test
async def changes_modes_and_settings_from_tensor_to_tensor(dut):
    """With those that have blocks, where they are built in."""
    random, it = await begin(dut)
    for _ in range(12):
        it.pause(str(random.choice(["never", "seldom", "half", "bursts"])))
        it.latency = int(random.choice([0, 10, 50]))
        shape = tuple(int(size) for size in random.integers((1, 1, 8, 8), (3, 5, 20, 40)))
        x = tensor(random, shape, random.choice([0, 0.05]))
        await it.both(x, it.encoded(x, str(random.choice(list(CONFIGS)))))
        if "sfpr" in parameters()["modes"]:
            await it.round_trip(world.tensor(random, (1, 3, 11, 40), "wild"), "sfpr")


@cocotb.test
async def ends_payloads_that_are_cut_lengthened_or_garbage(dut):
    random, it = await begin(dut)
    for name in ("none+", "plane"):
        x = tensor(random, (2, 3, 16, 24), 0.02)
        one = it.encoded(x, name)
        payload, lengths = stream.weave(one.streams), [len(data) for data in one.streams]
        size = len(payload)
        for k, wrong in enumerate((
                payload[:1], payload[:8], payload[:128], payload[: size // 2], payload[: size - 8], payload[: size - 1],
                payload + b"\0", payload + bytes(300), random.bytes(size), b"\xff" * size, random.bytes(size // 3))):
            it.pause(("never", "half")[k % 2])
            await it.back(one, x.shape, wrong)
        it.pause("never")
        for wrong in ([0] * it.cdus, [9999] * it.cdus, [length + 9 for length in lengths], lengths[::-1],
                      [length // 2 for length in lengths], [lengths[0] - 1, *lengths[1:]]):
            await it.back(one, x.shape, payload, wrong)
            await it.back(one, x.shape, random.bytes(2 * size), wrong)
        await it.both(x, one)


@cocotb.test
async def ignores_the_lengths_of_lanes_without_a_group(dut):
    random, it = await begin(dut)
    x = tensor(random, (1, 1, 8, 8), 0)
    one = it.encoded(x, "plane")
    assert [len(data) > 0 for data in one.streams] == [True] + [False] * (it.cdus - 1)
    await it.both(x, one)
    await it.back(one, x.shape, None, [len(one.streams[0]), *[77] * (it.cdus - 1)])


@cocotb.test
async def refuses_settings_before_anything_moves(dut):
    """As a host writes them whose driver does not look at their limits."""
    random, it = await begin(dut)
    x = tensor(random, (1, 2, 16, 24), 0)
    one = it.encoded(x, "row")
    await it.both(x, one)
    _, good = job(one)
    it.fill()
    before = it.content.copy()
    for change in ({"step": 0}, {"step": 0x8000}, {"step": 0x0080}, {"step": 0x7701 + (1 << 7)}, {"step": 0x7F80},
                   {"step": 0xFFFF}, {"counts": 3}, {"counts": 0x0102}, {"counts": (1 << 56) - 1}, {"vertical": 1}):
        mode = "comet-flat" if "vertical" in change else "comet"
        for back in range(2):
            work = (it.driver.decompress(0x1000, x.shape, mode, settings=good | change, lengths=[64] * it.cdus) if back
                    else it.driver.compress(0x1000, x.shape, mode, settings=good | change))
            with patch("actcodec.driver.check"):
                await it.fails(work, ErrorCode.DESCRIPTOR)
            cycles_, *others = await it.driver.get(*COUNTERS)
            assert cycles_ and not any(others), f"{change}: {others}"
            await it.quiet()
    assert np.array_equal(it.content, before)
    await it.both(x, one)


@cocotb.test
async def counts_symbols(dut):
    random, it = await begin(dut)
    for shape, name in (((1, 3, 19, 40), "plane"), ((2, 333), "none"), ((1, 1, 8, 8), "row")):
        x = tensor(random, shape, 0.01)
        one = it.encoded(x, name)
        await it.there(x, one)
        assert await it.driver.histogram() == counts(one, x), f"SEED={SEED}"


@cocotb.test
async def takes_the_cycles_that_turns_take(dut):
    """Those of the longest lane, and what it waits for the others' turns, by the model of the wire; besides, the plan
    and the latency of everything."""
    random, it = await begin(dut)
    x = tensor(random, (2, 4, 32, 40), 0)
    eb, config, book = model.chosen(x, None, None, 0.0635, "auto")
    one = comet.compress(x, eb, config, book, it.cdus)
    lanes = demands(x, 0.0635, it.cdus)
    for k, result in enumerate(await it.both(x, one)):
        least = cycles(lanes, 8, 128, bool(k))
        found = result.counters["cycles"]
        dut._log.info(f"{found} cycles, at least {least}")
        assert least < found < least + 200 + 35 * it.cdus


@cocotb.test
@cocotb.parametrize(side=["read", "write"])
async def ends_memory_errors_with_an_error(dut, side):
    random, it = await begin(dut)
    x = tensor(random, (1, 3, 24, 40), 0)
    one = it.encoded(x, "plane")
    mode, settings = job(one)
    for lane in range(it.cdus):
        it.failing = (side, lane)
        if side == "read":
            await it.fails(it.driver.compress(0x1000, x.shape, mode, settings=settings), ErrorCode.READ)
            await it.sink.recv()
        else:
            it.send(stream.weave(one.streams))
            lengths = [len(data) for data in one.streams]
            await it.fails(it.driver.decompress(0x1000, x.shape, mode, settings=settings, lengths=lengths),
                           ErrorCode.WRITE)
        it.failing = None
        await it.both(x, one)


@cocotb.test
async def recovers_from_a_soft_reset_at_any_moment(dut):
    random, it = await begin(dut)
    x = tensor(random, (1, 3, 24, 40), 0.02)
    cut = {"compress": 0, "decompress": 0, "unbegun": 0}
    for attempt in range(24):
        back, one = attempt % 2, it.encoded(x, ("plane", "line", "none")[attempt % 3])
        it.pause(str(random.choice(["never", "half", "bursts"])))
        it.latency = int(random.choice([0, 30]))
        mode, settings = job(one)
        address, _, index = it.place(mode, x.shape)
        it.fill()
        before = it.content.copy()
        if back:
            it.send(stream.weave(one.streams))
            work = it.driver.decompress(address, x.shape, mode, settings=settings,
                                        lengths=[len(data) for data in one.streams])
        else:
            work = it.driver.compress(address, x.shape, mode, settings=settings)
        task = cocotb.start_soon(work)
        while dut.s_axil_awvalid.value == 0:
            await RisingEdge(dut.clk)
        late = 60 if attempt % 8 == 1 else 1500 if it.cdus == 1 else 1000  # some before a frame has begun
        await ClockCycles(dut.clk, int(random.integers(1, late)))
        cut["decompress" if back else "compress"] += not task.done()
        task.cancel()
        await it.driver.reset()
        await it.quiet()
        outside = np.ones(it.content.size, bool)
        outside[index] = False
        assert np.array_equal(it.content[outside], before[outside]), f"SEED={SEED}: wrote outside of the tensor"
        it.pause("never")
        it.latency = 0
        await ClockCycles(dut.clk, len(stream.weave(one.streams)) // 128 + 10)
        if back and not it.source.idle():
            cut["unbegun"] += 1
            await it.back(one, x.shape, send=False)
        assert it.source.idle()
        while not it.sink.empty():
            it.sink.recv_nowait()
        await it.both(x, one)
    assert all(cut.values()), f"SEED={SEED}: {cut}"
