"""Bench of the accelerator: whole tensors from memory to the stream and back, among cocotbext-axi's models."""

import json
import os
from dataclasses import replace

import cocotb
import numpy as np
import pytest
from cocotb.triggers import ClockCycles, FallingEdge, RisingEdge, Timer
from cocotbext.axi import AxiResp

from actcodec.codecs import JPEG_ACT, MODES, division, lane_modes
from actcodec.golden.offload import blocks
from actcodec.golden.offload.wire import stream
from actcodec.rtl.jpegact.cdu import Cdu
from actcodec.rtl.offload.accelerator import Accelerator
from actcodec.rtl.offload.control.register_map import COUNTERS, ErrorCode
from tb import reference
from tb.harness import SEED, parameters, regress, rng, simulate
from tb.jpegact.blocks import recovered
from tb.offload import draws
from tb.offload.lanes import stored
from tb.offload.world import World, tensor

ALL = reference.MODES
COUNTED = ("sfpr", *reference.CODERS, "brc", "jpeg-base")
# One of every kind of view: tiles in rows of one, two, three and more, ragged widths and heights, no tile at all.
SHAPES = [(1, 1, 8, 8), (1, 5, 8, 8), (1, 3, 16, 16), (3, 2, 9, 24), (2, 3, 7, 13), (1, 2, 30, 56), (1, 7, 14, 14),
          (2, 40, 1, 1), (3, 9), (1, 3, 11, 40), (2, 3, 5, 4), (1, 1, 28, 28), (1, 33, 2, 8)]


def accelerator(cdus, modes, **options):
    return Accelerator(cdus, lane_modes(*modes), Cdu, **options)


@pytest.mark.parametrize("cdus", [1, 4, *regress(2, 3, 8)])
def test_accelerator(cdus):
    tests = [there_and_back, random_tensors_in_changing_modes, *[a_null_beat_may_end_a_frame] * (cdus == 1)]
    simulate(accelerator(cdus, ALL), __file__, tests, cdus=cdus, modes=ALL)


def test_behaviour():
    simulate(accelerator(2, ALL), __file__, cdus=2, modes=ALL, without=[
        there_and_back, random_tensors_in_changing_modes, malformed_blocks_become_an_error])


@pytest.mark.regress
def test_counted_blocks():
    """Of the coders in place of ZVC, and of JPEG-BASE, on memory that the lanes share."""
    simulate(accelerator(3, COUNTED, coders=2), __file__, cdus=3, modes=COUNTED, tests=[
        random_tensors_in_changing_modes, takes_whatever_the_limits_allow_and_nothing_else,
        malformed_blocks_become_an_error])


@pytest.mark.regress
def test_division():
    """Blocks with segments, beside JPEG-ACT's."""
    modes = ("sfpr-zvc", "jpeg-act", *division.LANE)
    simulate(accelerator(3, modes), __file__, cdus=3, modes=modes, tests=[
        random_tensors_in_changing_modes, takes_whatever_the_limits_allow_and_nothing_else, *ENDS])


@pytest.mark.regress
def test_independent_memory():
    simulate(accelerator(2, JPEG_ACT, memory="independent"), __file__, cdus=2, modes=JPEG_ACT,
             tests=[random_tensors_in_changing_modes, *ENDS])


@pytest.mark.parametrize("wrong, name", [
    ({"cdus": 0}, "cdus"), ({"cdus": 9}, "cdus"), ({"modes": ()}, "modes"), ({"modes": ("jpeg",)}, "modes"),
    ({"address_width": 31}, "address_width"), ({"outstanding": 0}, "outstanding"), ({"memory": "common"}, "memory")])
def test_refuses_wrong_parameters(wrong, name):
    with pytest.raises(ValueError, match=f"{name} must be"):
        Accelerator(**{"cdus": 4, "modes": lane_modes(*JPEG_ACT), "codec": Cdu, **wrong})


@cocotb.test
@cocotb.parametrize(mode=ALL)
async def there_and_back(dut, mode):
    random = rng()
    world = World(dut, random)
    await world.start()
    for k, shape in enumerate(SHAPES):
        if parameters()["cdus"] > 1 and k % 3 != ALL.index(mode) % 3:
            continue  # it takes long to simulate: each shape in two of the modes
        world.pause(("never", "seldom", "half", "bursts")[k % 4])
        world.latency = (0, 0, 30)[k % 3]
        x = tensor(random, shape, ("normal", "relu", "wild")[k % 3])
        await world.round_trip(x, mode, ("optL", "jpeg60")[k % 2])


@cocotb.test
async def random_tensors_in_changing_modes(dut):
    random = rng()
    world = World(dut, random)
    await world.start()
    for _ in range(40 if parameters()["cdus"] == 1 else max(15, 3 * len(world.modes))):
        world.pause(str(random.choice(["never", "seldom", "half", "bursts"])))
        world.latency = int(random.choice([0, 10, 50]))
        shape = tuple(int(size) for size in random.integers(1, (3, 6, 20, 40)))
        if random.random() < 0.5:
            shape = tuple(int(size) for size in random.integers(1, (3, 12, 12, 12)))
        x = tensor(random, shape, str(random.choice(["normal", "relu", "wild"])))
        mode = str(random.choice(world.modes))
        await world.round_trip(x, mode, str(random.choice(["optL", "optH", "jpeg80"])))


@cocotb.test
async def takes_whatever_the_limits_allow_and_nothing_else(dut):
    """Rows, scales and settings that need not be those of a shape; and the same beyond one limit, which moves nothing,
    neither in memory nor of a frame that waits."""
    random = rng()
    world = World(dut, random)
    await world.start()
    for mode in lane_modes(*parameters()["modes"]):
        for turn in range(2):
            world.pause(str(random.choice(["never", "half"])))
            job = await world.exchange(draws.descriptor(random, mode, world.cdus, most=600))
            good = job.registers(turn, job.lengths)
            name, values = draws.illegal(random, good, mode, world.driver.address_width)
            world.fill()
            before = world.content.copy()
            world.send(job.payload)
            error = await world.begin(mode, values)
            assert error == ErrorCode.DESCRIPTOR, f"SEED={SEED}: {name} of {values}: {error!r}"
            await world.quiet()
            assert np.array_equal(world.content, before) and not world.source.idle(), f"SEED={SEED}: {name} of {values}"
            assert await world.begin(mode, job.registers(True, job.lengths)) == ErrorCode.NONE and world.source.idle()


@cocotb.test
async def strides_leave_gaps(dut):
    random = rng()
    world = World(dut, random)
    await world.start()
    for mode in ALL:
        for shape, stride in (((1, 3, 11, 40), 256), ((2, 3, 7, 13), 60), ((1, 5, 8, 8), 36), ((3, 9), 400)):
            await world.round_trip(tensor(random, shape), mode, stride=stride)


@cocotb.test
async def counts_what_passes(dut):
    """Cycles, and saturated values and NaNs of all CDUs together; also after a tensor that not all CDUs worked on."""
    random = rng()
    world = World(dut, random)
    await world.start()
    for shape in ((1, 2, 64, 64), (1, 1, 8, 8), (1, 3, 16, 24)):
        x = tensor(random, shape, "wild")
        view = blocks.view(shape)
        compressed, counters = await world.compress(x, "sfpr")
        product = x.reshape(view.rows, -1) * stored(compressed).scales[view.channel, None]
        rounded = np.rint(product.astype(np.float64))
        assert counters["nans"] == np.isnan(x).sum()
        assert counters["saturated"] == ((rounded > 127) | (rounded < -128)).sum()
        assert counters["cycles"] > 8 * view.blocks(False) // world.cdus
    there, back = counters, await world.decompress(compressed)
    await world.driver.put(decompress=0)
    assert await world.driver.get("bytes_in", "bytes_out") == [back["bytes_in"], back["bytes_out"]]
    for side, stalls in (("memory", ("stall_read", "stall_write")), ("stream", ("stall_stream", "stall_stream"))):
        world.pause("mostly", only=side)
        _, slow = await world.compress(x, "sfpr")
        assert slow["cycles"] >= there["cycles"] and slow[stalls[0]] > there[stalls[0]] and slow["stall_write"] == 0
        slow = await world.decompress(compressed)
        assert slow["cycles"] >= back["cycles"] and slow[stalls[1]] > back[stalls[1]]


@cocotb.test
async def cuts_all_paths_but_one(dut):
    """No port answers another before the next edge, but ``tready`` the rest of its stream."""
    random = rng()
    world = World(dut, random)
    await world.start()
    world.pause("half")
    inputs = {name: getattr(dut, name) for name in json.loads(os.environ["TB_INPUTS"])}
    outputs = {name: getattr(dut, name) for name, member in accelerator(world.cdus, ALL).signature.members.items()
               if name not in inputs}
    stream = [name for name in inputs if name.startswith("s_axis")]
    shaken = [[name for name in inputs if name not in stream], *([name] for name in stream)]
    task = cocotb.start_soon(world.round_trip(tensor(random, (1, 2, 32, 40)), "sfpr-zvc"))
    answers = set()
    while not task.done():
        await FallingEdge(dut.clk)
        before = {name: int(port.value) for name, port in (inputs | outputs).items()}
        for names in shaken:
            for name in names:
                inputs[name].value = int.from_bytes(random.bytes(128), "little") & (1 << len(inputs[name])) - 1
            await Timer(50, "ps")
            answers |= {(names[0] if names[0] in stream else "others", name) for name, port in outputs.items()
                        if int(port.value) != before[name]}
            for name in names:
                inputs[name].value = before[name]
            await Timer(50, "ps")
        await ClockCycles(dut.clk, 1 if before["s_axis_tvalid"] else int(random.integers(5, 20)))
    await task
    assert {(f"s_axis_{name}", "s_axis_tready") for name in ("tvalid", "tlast")} <= answers, answers
    assert {output for _, output in answers} == {"s_axis_tready"} and "others" not in dict(answers), answers


@cocotb.test
async def recovers_from_a_soft_reset_at_any_moment(dut):
    random = rng()
    world = World(dut, random)
    await world.start()
    x = tensor(random, (1, 3, 24, 40))
    payload = {mode: world.golden(x, mode) for mode in world.modes}
    cut = {"compress": 0, "decompress": 0, "frame": 0, "unbegun": 0}
    for attempt in range(40):
        mode, back = str(random.choice(list(payload))), attempt % 2
        c = stored(payload[mode])
        world.pause(str(random.choice(["never", "half", "bursts"])))
        world.latency = int(random.choice([0, 30]))
        address, table, index = world.place(mode, x.shape)
        world.fill()
        before = world.content.copy()
        if back:
            work = world.driver.decompress(address, x.shape, mode, scales=c.scales, settings=c.settings,
                                           scale_table=table)
            world.send(c.payload)
        else:
            work = world.driver.compress(address, x.shape, mode, scale_table=table, scales=np.ones(3, np.float32),
                                         settings=c.settings)
        task = cocotb.start_soon(work)
        while dut.m_axi_0_arvalid.value == 0 and not task.done():
            await RisingEdge(dut.clk)
            if back and random.random() < 0.01:
                break
        await ClockCycles(dut.clk, int(random.integers(1, 300)))
        cut["decompress" if back else "compress"] += not task.done()
        task.cancel()
        await world.driver.reset()
        await world.quiet()
        outside = np.ones(world.content.size, bool)
        outside[index] = False
        outside[table : table + 64] = False
        assert np.array_equal(world.content[outside], before[outside]), f"SEED={SEED}: wrote outside of the tensor"

        # A frame that had begun has ended on both sides. One that had not begun is for the next tensor.
        world.pause("never")
        world.latency = 0
        await ClockCycles(dut.clk, c.payload_bytes // 128 + 10)
        if back and not world.source.idle():
            cut["unbegun"] += 1
            await world.decompress(payload[mode], send=False)
        assert world.source.idle()
        while not world.sink.empty():
            cut["frame"] += sum(world.sink.recv_nowait(compact=False).tkeep) < c.payload_bytes
        await world.round_trip(x, str(random.choice(list(payload))))
    assert all(cut.values()), f"SEED={SEED}: {cut}"


@cocotb.test
async def soft_reset_forgets_a_tensor_that_ends_just_then(dut):
    """Of one that ended before, what is pending stays."""
    random = rng()
    world = World(dut, random)
    await world.start()
    driver, seen = world.driver, []
    await driver.put(rows=0)  # it ends after a few cycles
    for delay in range(24):
        await driver.put(done_pending=1, error_pending=1)
        await driver.put(start=1)
        await ClockCycles(dut.clk, delay)
        await driver.put(reset=1)
        while (await driver.get("busy"))[0]:
            pass
        done, error, *pending = await driver.get("done", "error", "done_pending", "error_pending")
        assert done == error == 0 and pending in ([0, 0], [1, 1]), f"SEED={SEED}: {delay} cycles: {done}, {pending}"
        seen.append(pending[0])
    assert seen == sorted(seen) and {0, 1} == set(seen), seen


@cocotb.test
async def a_frame_that_waits_is_the_next_tensors(dut):
    """Neither a soft reset nor a tensor that is refused takes it; a tensor of one value disposes of it."""
    random = rng()
    world = World(dut, random)
    await world.start()
    driver = world.driver
    c = world.golden(tensor(random, (1, 3, 24, 40)), "sfpr-zvc")
    for size, code in ((c.payload_bytes, ErrorCode.EXCESS), (128, ErrorCode.EXCESS), (9, ErrorCode.EXCESS),
                       (8, ErrorCode.NONE), (1, ErrorCode.SHORT)):
        world.send(c.payload[:size])
        await driver.reset()
        await driver.put(rows=0, decompress=1)
        await driver.put(start=1)
        await world.interrupt()
        await ClockCycles(dut.clk, 20)
        assert not world.source.idle() and dut.s_axis_tvalid.value == 1, f"SEED={SEED}: it was taken"
        await driver.put(done_pending=1, error_pending=1)
        world.fill()
        before = world.content.copy()
        await world.fails(driver.decompress(0x1004, (1, 1), "brc"), code)
        assert world.source.idle() and dut.s_axis_tvalid.value == 0, f"SEED={SEED}: it is still there"
        before[0x1004:0x1008] = world.content[0x1004:0x1008]
        assert np.array_equal(world.content, before), f"SEED={SEED}: wrote outside of one value"
        await world.decompress(c)


@cocotb.test
async def a_null_beat_may_end_a_frame(dut):
    random = rng()
    world = World(dut, random)
    await world.start()
    for mode in ALL:
        x = np.abs(tensor(random, (1, 16, 8, 8))) + 1  # without a zero, its payload fills packets
        if mode == "jpeg-act":
            x[:] = 0
        compressed = world.golden(x, mode)
        assert compressed.payload_bytes % 128 == 0
        for pause in ("never", "half"):
            world.pause(pause)
            await world.decompress(compressed, null=True)
            await world.decompress(compressed)


@cocotb.test
async def refuses_descriptors_that_make_no_sense(dut):
    random = rng()
    world = World(dut, random)
    await world.start()
    driver = world.driver
    x = tensor(random, (1, 2, 8, 16))
    good = {"mode": MODES["jpeg-act"].code, "decompress": 0, "base": 0x1000, "rows": 16, "width": 16, "stride": 64,
            "height": 8, "channels": 2, "scales": 0x8000}
    bad = [{"rows": 0}, {"width": 0}, {"stride": 0}, {"stride": 60}, {"stride": 66}, {"base": 0x1002}, {"height": 0},
           {"channels": 0}, {"width": 7}, {"rows": 7}, {"base": (1 << 40) - 1020}, {"scales": 0x8004},
           {"scales": (1 << 40) - 32, "channels": 9}, {"width": 1 << 24, "stride": 1 << 26}, {"rows": 1 << 31}]
    _, counters = await world.compress(tensor(random, (1, 3, 24, 40), "wild"), "sfpr")
    assert counters["nans"] and counters["saturated"]
    world.fill()
    before = world.content.copy()
    for change in bad:
        for decompress in (0, 1):
            await driver.put(**{**good, "decompress": decompress, **change})
            await driver.put(done_pending=1, error_pending=1)
            await driver.put(start=1)
            await world.interrupt()
            done, error, pending = await driver.get("done", "error", "error_pending")
            assert (done, error, pending) == (1, ErrorCode.DESCRIPTOR, 1), f"{change}: error {error}"
            cycles, *others = await driver.get(*COUNTERS)
            assert cycles and not any(others), f"{change}: {others}"
            await world.quiet()
    assert np.array_equal(world.content, before)
    await driver.put(**{**good, "mode": 6})
    await driver.put(done_pending=1, error_pending=1)
    await driver.put(start=1)
    await world.interrupt()
    assert await driver.get("error") == [ErrorCode.MODE]
    await world.round_trip(x, "jpeg-act")
    await driver.put(scales=(1 << 40) - 32)  # of no account
    await world.round_trip(tensor(random, (1, 9, 8, 8)), "brc")
    assert (await world.lite.write(0x3C, b"\0\1\0\0")).resp == AxiResp.SLVERR
    assert await driver.get("base") != [1 << 40]


@cocotb.test
@cocotb.parametrize(mode=ALL)
async def ends_bad_streams_with_their_error(dut, mode):
    random = rng()
    world = World(dut, random)
    await world.start()
    driver = world.driver
    x = tensor(random, (1, 3, 24, 40), "relu")
    compressed = world.golden(x, mode)
    good = reference.of(stored(compressed))
    payload = np.frombuffer(good.payload, np.uint8)
    size = payload.size
    full = -(-size // 128) * 128
    hole = np.ones(size, int)
    hole[130] = 0
    cases = [(payload[: size - 1], None, ErrorCode.SHORT), (payload[:1], None, ErrorCode.SHORT),
             (payload[: size // 2], None, ErrorCode.SHORT), (payload[:128], None, ErrorCode.SHORT),
             (np.append(payload, payload[:1]), None, ErrorCode.EXCESS),
             (np.append(payload, np.zeros(700, np.uint8)), None, ErrorCode.EXCESS),
             (payload, hole.tolist(), ErrorCode.BEAT)]
    if size != full:
        cases.append((np.append(payload, np.zeros(full - size, np.uint8)), None, ErrorCode.EXCESS))
    if mode in reference.ITEM:  # a mask that promises too much, or too little
        more, less = payload.copy(), payload.copy()
        more[:8], less[:8] = 255, 0
        for wrong in (more, less, random.integers(0, 256, 3 * size).astype(np.uint8)):
            try:  # wrong masks may add up after all
                reference.decompress(replace(good, payload=wrong.tobytes()))
            except ValueError:
                cases.append((wrong, None, ErrorCode.EXCESS, ErrorCode.SHORT))
    for k, (content, keep, *codes) in enumerate(cases):
        world.pause(("never", "half")[k % 2])
        address, table, index = world.place(mode, x.shape)
        world.fill()
        before = world.content.copy()
        world.send(content, keep)
        dut._log.info("case %d", k)
        await world.fails(driver.decompress(address, x.shape, mode, scales=good.scales,
                                            settings=good.settings, scale_table=table), *codes)
        outside = np.ones(world.content.size, bool)
        outside[index] = False
        if good.scales is not None:
            outside[table : table + 4 * good.scales.size] = False
        assert np.array_equal(world.content[outside], before[outside]), f"SEED={SEED} case {k}: wrote outside"
        await world.source.wait()
        await world.decompress(compressed)


@cocotb.test
async def malformed_blocks_become_an_error(dut):
    """Bits of codes and planes: the tensor is golden's, and so is whether there is an error."""
    random = rng()
    world = World(dut, random)
    await world.start()
    ends = set()
    coded = [mode for mode in parameters()["modes"] if mode in reference.TABLES]
    for mode in coded:
        x = tensor(random, (1, 3, 24, 40), "relu")
        compressed = world.golden(x, mode)
        c = reference.of(stored(compressed))
        sizes = reference.sizes_of(c)
        for turn in range(8):
            world.pause(("never", "half")[turn % 2])
            payload = np.frombuffer(c.payload, np.uint8).copy()
            which = int(random.choice(np.flatnonzero(sizes > 5)))
            start = sizes[:which].sum() + 1
            if turn == 1:  # of all ones, which is no code
                payload[start : start + 4] = 255
            elif turn:
                payload[start + random.integers(4)] ^= 1 << random.integers(8)
            again, faults = recovered(mode, stream.deinterleave(payload, sizes, world.cdus)[0], c.blocks, c.code)
            plain = reference.sizes_of(replace(c, payload=again.tobytes()))
            like = stream.interleave(again, plain, world.cdus)[0].tobytes()
            address, table, index = world.place(mode, x.shape)
            world.fill()
            world.send(payload)
            code = ErrorCode.BLOCK if np.any(faults) else ErrorCode.NONE
            await world.fails(world.driver.decompress(address, x.shape, mode, scales=c.scales,
                                                      settings=c.settings, scale_table=table), code)
            expected = reference.decompress(replace(c, payload=like)).view(np.uint8).reshape(-1)
            assert np.array_equal(world.content[index], expected), f"SEED={SEED} {mode}, turn {turn}"
            ends.add((mode, code))
        await world.decompress(compressed)
    assert ends == {(mode, code) for mode in coded for code in (ErrorCode.NONE, ErrorCode.BLOCK)}


@cocotb.test
@cocotb.parametrize(side=["read", "write"])
async def ends_memory_errors_with_an_error(dut, side):
    random = rng()
    world = World(dut, random)
    await world.start()
    x = tensor(random, (1, 3, 24, 40))
    code = ErrorCode.READ if side == "read" else ErrorCode.WRITE
    for mode in world.modes:
        for lane in range(world.cdus):
            compressed, _ = await world.compress(x, mode)
            world.failing = (side, lane)
            if side == "read":
                await world.fails(world.compress(x, mode), code)
                await world.sink.recv()
            else:
                await world.fails(world.decompress(compressed), code)
            world.failing = None
            await world.round_trip(x, mode)


# How a tensor may end too early.
ENDS = [recovers_from_a_soft_reset_at_any_moment, soft_reset_forgets_a_tensor_that_ends_just_then,
        ends_memory_errors_with_an_error]
