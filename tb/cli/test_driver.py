"""The driver against an accelerator of Python: registers made from the map, and golden behind them."""

import asyncio
import subprocess
import sys

import numpy as np
import pytest

from actcodec import codecs, driver
from actcodec.golden.comet import comet, lorenzo
from actcodec.golden.gist import binarize
from actcodec.golden.jpegact import dct, quantize, sfpr, zvc
from actcodec.golden.offload import blocks
from actcodec.golden.offload.wire import stream
from actcodec.rtl.offload.control.register_map import COUNTERS, MAP, ErrorCode
from tb import reference
from tb.harness import ROOT
from tb.offload.control.register_model import OKAY, RegisterModel

SHAPES = [(2, 3, 8, 16), (1, 5, 9, 13), (2, 4, 14, 7), (3, 40, 1, 1), (1, 1, 1, 1), (3, 20), (2, 3, 2, 4),
          (1, 2, 3, 40)]
OFFSETS = {register.name: register.offset for register in MAP}
TENSOR, BACK, SCALES = 0x1004, 0x9010, 0x20000  # rows may start at any multiple of 4
UNTOUCHED = 0xA5


class Accelerator(RegisterModel):
    """Sees no more of a tensor than its descriptor; ends it some looks at the registers after its start."""

    def __init__(self, looks=3, fail=0, **parameters):
        super().__init__(**parameters)
        self.memory = bytearray([UNTOUCHED]) * 0x30000
        self.looks, self.fail, self.left = looks, fail, 0
        self.payload, self.writes, self.reads = b"", [], []

    def access_memory(self, address, size):
        self.reads.append((address, size))
        return bytes(self.memory[address : address + size])

    def read(self, address):
        self.left -= 1
        if self.values["busy"] and self.left <= 0:
            self.end()
        data, response = super().read(address)
        assert response == OKAY
        return data

    def write(self, address, value):
        self.writes.append((address, value))
        count = len(self.pulses)
        assert super().write(address, value) == OKAY
        if self.pulses[count:]:
            self.values["busy"], self.values["error"], self.left = 1, 0, self.looks

    def end(self):
        if self.pulses[-1] == "reset":
            self.values["busy"] = 0
            return
        if not self.fail:
            self.decompress() if self.values["decompress"] else self.compress()
            self.values |= {name: 2**33 + k for k, name in enumerate(COUNTERS)}
            self.values["bytes_out"] = len(self.payload)
        self.finish(self.fail)

    def descriptor(self):
        v = self.values
        view = blocks.View(v["rows"], v["width"], v["channels"], v["height"], True)
        rows = np.ndarray((view.rows, view.width), "<f4", self.memory, v["base"], (v["stride"], 4))
        mode, scales = reference.MODES[v["mode"]], None
        if mode in reference.SCALED:
            scales = np.frombuffer(self.memory, "<f4", view.channels, v["scales"]).copy()[view.channel, None]
        table = np.array([v["table"] >> 3 * k & 7 for k in range(64)]).reshape(8, 8)
        return mode, view, mode == "jpeg-act", rows, scales, table

    def compress(self):
        mode, view, tiled, rows, k, table = self.descriptor()
        data = blocks.split(rows.copy().view(np.uint32) if k is None else sfpr.quantize(rows.copy(), k), view, tiled)
        if tiled:
            data = quantize.shift(dct.forward(data), table)
        data = data.reshape(-1, 64)
        sizes = np.full(len(data), reference.BLOCK_BYTES.get(mode, 0))
        if mode in reference.ITEM:
            data, sizes = zvc.encode(data)
        elif mode == "brc":
            data = binarize.forward(data.view(np.float32))
        data = np.ascontiguousarray(data).view(np.uint8).reshape(-1)
        self.payload = stream.interleave(data, sizes, self.values["cdus"])[0].tobytes()

    def decompress(self):
        mode, view, tiled, rows, r, table = self.descriptor()
        payload, n = np.frombuffer(self.payload, np.uint8), view.blocks(tiled)
        item = reference.ITEM.get(mode)
        sizes = zvc.sizes(payload, n, item.itemsize) if item else np.full(n, reference.BLOCK_BYTES[mode])
        payload, _ = stream.deinterleave(payload, sizes, self.values["cdus"])
        data = zvc.decode(payload, n, item) if item else payload
        if mode == "brc":
            data = binarize.backward(np.ones((n, 64), np.float32), payload)
        if r is not None:
            data = data.view(np.int8)
            if tiled:
                data = dct.inverse(quantize.unshift(data.reshape(-1, 8, 8), table))
            rows[:] = sfpr.dequantize(blocks.join(data, view, tiled), r)
        else:
            rows[:] = blocks.join(data.view(np.float32), view, tiled)


class PlainMemory:
    """The accelerator's memory as a host sees it."""

    def __init__(self, device):
        self.read = device.access_memory
        self.device = device

    def write(self, address, data):
        self.device.memory[address : address + len(data)] = data


class Slow:
    """A bus or memory of which every access takes a turn of the event loop."""

    def __init__(self, inner):
        self.inner = inner

    async def read(self, *arguments):
        await asyncio.sleep(0)
        return self.inner.read(*arguments)

    async def write(self, *arguments):
        await asyncio.sleep(0)
        self.inner.write(*arguments)


def opened(device, wait=None):
    return driver.run(driver.Driver.open(driver.Plain(device), driver.Plain(PlainMemory(device)), wait))


def tensor(shape, seed=1):
    random = np.random.default_rng(seed)
    return np.where(random.random(shape) < 0.5, 0, random.normal(size=shape)).astype(np.float32)


def lay(device, x, stride=None, address=TENSOR):
    """Puts a tensor into memory, row by row of its view."""
    view = blocks.view(x.shape)
    stride = stride or 4 * view.width
    for row, values in enumerate(x.reshape(view.rows, view.width)):
        device.memory[address + row * stride : address + row * stride + 4 * view.width] = values.tobytes()


def options(mode, dqt):
    """A table for the modes that have one."""
    return {"dqt": dqt} if codecs.find(mode).option("dqt") else {}


def equal(result, expected):
    assert result.mode == expected.mode
    assert (result.scales is None) == (expected.scales is None)
    assert result.scales is None or np.array_equal(result.scales, expected.scales)
    assert result.settings == expected.settings


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("mode", reference.MODES)
def test_tensors_go_there_and_back(mode, shape):
    device, x = Accelerator(cdus=3), tensor(shape)
    host, expected = opened(device), reference.compress(x, mode, "optH", 3)
    lay(device, x)
    result = driver.run(host.compress(TENSOR, shape, mode, options=options(mode, "optH"), scale_table=SCALES))
    equal(result, expected)
    assert device.payload == expected.payload
    assert result.counters == {name: 2**33 + k for k, name in enumerate(COUNTERS)} | {"bytes_out": len(device.payload)}

    # As asked for, or as it came out.
    for again in (mode, result.mode):
        device.memory[BACK - 64 : BACK + 0x8000] = bytes([UNTOUCHED]) * 0x8040
        back = driver.run(host.decompress(BACK, shape, again, scales=result.scales, settings=result.settings,
                                          scale_table=SCALES))
        equal(back, expected)
        assert device.memory[BACK : BACK + x.nbytes] == reference.decompress(expected).tobytes()
        assert set(device.memory[BACK - 64 : BACK]) | set(device.memory[BACK + x.nbytes : BACK + 0x8000]) == {UNTOUCHED}
    assert device.pulses == ["start"] * 3


@pytest.mark.parametrize("mode", ["jpeg-act", "zvc"])
def test_rows_may_lie_apart(mode):
    device, x = Accelerator(cdus=1), tensor((2, 3, 8, 13))
    host, stride = opened(device), 4 * 13 + 20
    lay(device, x, stride)
    result = driver.run(host.compress(TENSOR, x.shape, mode, options=options(mode, "jpeg80"), scale_table=SCALES,
                                      stride=stride))
    expected = reference.compress(x, mode, "jpeg80")
    equal(result, expected)
    assert device.payload == expected.payload
    driver.run(host.decompress(BACK, x.shape, mode, scales=result.scales, settings=result.settings, scale_table=SCALES,
                               stride=stride))
    rows = np.ndarray((48, stride // 4), "<f4", device.memory, BACK)
    assert np.array_equal(rows[:, :13], reference.decompress(expected).reshape(48, 13))
    assert set(rows[:, 13:].tobytes()) == {UNTOUCHED}


def test_scales_that_are_known_save_reading_the_tensor():
    device, x = Accelerator(), tensor((2, 3, 8, 16))
    lay(device, x)
    k = np.float32([2.0, 4.0, 8.0])
    result = driver.run(opened(device).compress(TENSOR, x.shape, "sfpr", scales=k, scale_table=SCALES))
    assert not device.reads and np.array_equal(result.scales, k)
    assert device.payload == sfpr.quantize(x, k).tobytes()


def test_a_table_of_numbers_is_taken():
    device, x, dqt = Accelerator(), tensor((1, 1, 8, 8)), np.arange(1, 65)
    lay(device, x)
    result = driver.run(opened(device).compress(TENSOR, x.shape, "jpeg-act", options={"dqt": dqt},
                                                 scale_table=SCALES))
    assert device.payload == reference.compress(x, "jpeg-act", dqt).payload
    assert result.settings == {"table": quantize.word(quantize.shifts(dqt))}


def test_the_same_code_runs_in_an_event_loop():
    device, x, waits = Accelerator(looks=20), tensor((2, 3, 8, 16)), []
    lay(device, x)

    async def interrupt():
        waits.append(device.interrupt)
        for _ in range(100):
            if device.interrupt:
                return
            await asyncio.sleep(0)
            device.read(OFFSETS["CYCLES"])  # time goes by
        raise TimeoutError

    async def session():
        host = await driver.Driver.open(Slow(device), Slow(PlainMemory(device)), interrupt)
        return await host.compress(TENSOR, x.shape, "jpeg-act", scale_table=SCALES)

    equal(asyncio.run(session()), reference.compress(x, "jpeg-act"))
    assert waits == [0], "one wait for each tensor"
    assert device.interrupt == 0, "cleared"
    looks = [address for address, _ in device.writes].count(OFFSETS["CONTROL"])
    assert looks == 1


def test_what_is_pending_from_before_does_not_end_the_wait():
    device, x = Accelerator(), tensor((1, 1, 8, 8))
    host = opened(device)
    lay(device, x)
    device.finish(ErrorCode.READ)
    assert device.interrupt
    seen = []

    async def wait():
        seen.append(device.interrupt)

    host.wait = wait
    driver.run(host.compress(TENSOR, x.shape, "raw"))
    assert seen[0] == 0


def test_patience_can_end():
    async def wait():
        raise TimeoutError

    device = Accelerator(looks=10**9)
    host = opened(device, wait)
    with pytest.raises(TimeoutError):
        driver.run(host.compress(TENSOR, (1, 1, 8, 8), "raw"))
    host.wait, device.looks = None, 5
    with pytest.raises(RuntimeError, match="busy"):  # not what becomes of the first one
        driver.run(host.compress(TENSOR, (1, 2, 8, 8), "raw"))
    assert device.pulses == ["start"]
    driver.run(host.reset())
    assert device.pulses == ["start", "reset"] and device.values["busy"] == 0
    driver.run(host.compress(TENSOR, (1, 1, 8, 8), "raw"))
    assert len(device.payload) == 256


@pytest.mark.parametrize("code", [*(code for code in ErrorCode if code), 15], ids=str)
@pytest.mark.parametrize("decompress", [False, True])
def test_an_error_has_its_name(code, decompress):
    device = Accelerator(fail=int(code))
    host = opened(device)
    job = (host.decompress if decompress else host.compress)(TENSOR, (1, 1, 8, 8), "zvc")
    name = getattr(code, "name", "unknown")
    with pytest.raises(driver.AcceleratorError, match=f"error {int(code)}, {name}") as caught:
        driver.run(job)
    assert caught.value.code == code and not device.interrupt
    device.fail = 0  # and the next tensor runs
    driver.run(host.compress(TENSOR, (1, 1, 8, 8), "raw"))
    assert len(device.payload) == 256


def test_another_device_is_refused():
    for name, value, message in (("magic", 0xDEADBEEF, "0xdeadbeef"), ("major", 3, "version 3")):
        device = Accelerator()
        device.values[name] = value
        with pytest.raises(RuntimeError, match=message):
            opened(device)
        assert not device.writes
    device = Accelerator()
    device.values["minor"] = 7
    assert opened(device).cdus == 1


def test_capabilities_are_read():
    host = opened(Accelerator(cdus=5, modes=0b101000, address_width=40))
    assert (host.cdus, host.modes, host.address_width) == (5, ("jpeg-act", "zvc"), 40)


def place(device):
    return [device.values[name] for name in ("payload_memory", "payload", "payload_size")]


@pytest.mark.parametrize("payloads", [1, 2])
def test_payloads_in_memory(payloads):
    """Where they are is written for each tensor; of one that does not fit its space the length is known."""
    device = Accelerator(payloads=payloads)
    host = opened(device)
    assert host.payloads == payloads
    driver.run(host.compress(TENSOR, (1, 1, 8, 8), "raw", payload=(0x10020, 1000)))
    assert place(device) == [payloads - 1, 0x10020, 1000]
    driver.run(host.decompress(TENSOR, (1, 1, 8, 8), "raw", payload=(0x10040, 256)))
    assert place(device) == [payloads - 1, 0x10040, 256]
    if payloads == 2:
        driver.run(host.compress(TENSOR, (1, 1, 8, 8), "raw"))
        assert place(device)[0] == 0
    device.fail, device.values["bytes_out"] = int(ErrorCode.OVERFLOW), 256
    with pytest.raises(driver.AcceleratorError, match="OVERFLOW") as caught:
        driver.run(host.compress(TENSOR, (1, 1, 8, 8), "raw", payload=(0x10020, 100)))
    assert caught.value.length == 256


@pytest.mark.parametrize("payloads, payload, message", [
    (0, (0, 100), "in the streams only"), (1, None, "in memory only"),
    (1, (16, 100), "PAYLOAD is 16, must be a multiple of 32"),
    (2, (1 << 40, 100), "PAYLOAD is 1099511627776, .* less than 2."),
    (2, (0, 1 << 40), "PAYLOAD_SIZE is 1099511627776, must"),
    (2, (0, -1), "PAYLOAD_SIZE is -1, must")])
def test_where_payloads_cannot_be(payloads, payload, message):
    device = Accelerator(payloads=payloads, address_width=40)
    host = opened(device)
    writes = len(device.writes)
    for job in (host.compress, host.decompress):
        with pytest.raises(ValueError, match=message):
            driver.run(job(TENSOR, (1, 1, 8, 8), "raw", payload=payload))
    assert len(device.writes) == writes


GOOD = {"address": TENSOR, "shape": (2, 3, 8, 16), "mode": "jpeg-act", "scale_table": SCALES}
WRONG = {
    "tensor between words": ({"address": TENSOR + 2}, "multiple of 4"),
    "negative address": ({"address": -4}, "BASE is -4, must be"),
    "tensor beyond the end": ({"address": 2**40 - 4 * 767}, "BASE .* at most 2"),
    "scale table between words of memory": ({"scale_table": SCALES + 4}, "multiple of 32"),
    "scale table beyond the end": ({"scale_table": 2**40}, "SCALES .* at most 2"),
    "no scale table": ({"scale_table": None}, "needs a scale_table"),
    "too few scales": ({"scales": np.float32([1, 2])}, "needs 3 scales"),
    "short stride": ({"stride": 60}, "STRIDE is 60, must be .* at least 4 [*] WIDTH"),
    "odd stride": ({"stride": 66}, "multiple of 4"),
    "stride beyond its register": ({"stride": 2**32, "scales": np.float32([1, 1, 1]), "settings": {"table": 0}},
                                   "stride .* 32 bits"),
    "unknown mode": ({"mode": "png"}, "must be one or more of raw"),
    "mode that is not there": ({"mode": "raw"}, "mode raw was not built in"),
    "three dimensions": ({"shape": (2, 3, 4)}, "3 dimensions"),
    "empty tensor": ({"shape": (0, 3, 8, 8)}, "empty"),
    "unknown table": ({"options": {"dqt": "optX"}}, "unknown DQT"),
    "option of another mode": ({"options": {"coder": "rice"}}, "coder of mode jpeg-act is zvc here, not 'rice'"),
    "option of the accelerator": ({"options": {"cdus": 3}}, "cdus of mode jpeg-act is 1 here, not 3"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_is_refused_before_it_starts(case):
    device = Accelerator(modes=0b001100, address_width=40)
    host, (change, message) = opened(device), WRONG[case]
    writes = len(device.writes)
    with pytest.raises(ValueError, match=message):
        driver.run(host.compress(**GOOD | change))
    assert len(device.writes) == writes
    driver.run(host.compress(**GOOD))


@pytest.mark.parametrize("change", [{"settings": None}, {"settings": {"table": 1 << 192}}, {"settings": {"steps": 0}},
                                    {"scales": None}], ids=str)
def test_decompression_needs_scales_and_table(change):
    device = Accelerator()
    arguments = {"scales": np.float32([1, 1, 1]), "settings": {"table": 0}} | GOOD | change
    with pytest.raises(ValueError, match="needs"):
        driver.run(opened(device).decompress(**arguments))
    assert not device.pulses


@pytest.mark.parametrize("k, flags, e, compresses, decompresses", [
    ((7,) + 14 * (3,), 0, (1, 2, 3, 5), True, True), (15 * (3,), 16, (1, 2, 3, 6), False, True),
    (14 * (0,) + (4,), 16, (1, 2, 3, 5), False, True), (15 * (0,), 17, (1, 2, 3, 5), False, False),
    (15 * (0,), 0, (3, 2, 3, 5), False, False)])
def test_a_rice_table_that_no_lane_can_use_is_refused(k, flags, e, compresses, decompresses):
    word = sum(one << 3 * d for d, one in enumerate(k)) | sum(one << 3 * j for j, one in enumerate(e)) << 50
    word |= flags << 45
    device = Accelerator(modes=1 << 25, settings=64, fail=ErrorCode.BLOCK)  # ends every tensor that it starts
    arguments = GOOD | {"mode": "jpeg-act-rice", "scales": np.float32([1, 1, 1]),
                        "settings": {"rice_table": word, "table": 0}}
    for legal, job in ((compresses, "compress"), (decompresses, "decompress")):
        started = len(device.pulses)
        with pytest.raises(driver.AcceleratorError if legal else ValueError, match=None if legal else
                           "setting rice_table .* must keep: (.* at most 8|flags at most 16|e ascending)"):
            driver.run(getattr(opened(device), job)(**arguments))
        assert len(device.pulses) - started == legal


def streaming(**parameters):
    """A device of two lanes that make streams, which ends every tensor that it starts with an error."""
    return Accelerator(cdus=2, lanes=2, modes=1 << 21 | 1 << 23, settings=75, fail=ErrorCode.SHORT, **parameters)


@pytest.mark.parametrize("mode, tiled, shape, seen", [
    ("comet", True, (2, 3, 8, 16), (48, 16)), ("comet-flat", False, (2, 3, 8, 16), (96, 8)),
    ("comet", False, (3, 21), (1, 63)), ("comet-flat", False, (1, 1), (1, 1))])
def test_settings_of_streams_fit_the_tensor(mode, tiled, shape, seen):
    """Golden's choice of what the mode of the lane can have."""
    device, x = streaming(), tensor(shape)
    device.memory[TENSOR : TENSOR + x.nbytes] = x.tobytes()
    with pytest.raises(driver.AcceleratorError, match="SHORT"):
        driver.run(opened(device).compress(TENSOR, shape, mode, options={"error_bound": 0.125}))
    configs = [config for config in lorenzo.CONFIGS.values() if config.tiled == tiled]
    config, book = comet.choose(x, 0.25, configs)
    v = device.values
    flags = v["settings"] >> 16 & 7
    assert (v["mode"], v["rows"], v["width"]) == (21 if tiled else 23, *seen)
    assert (v["settings"] & 0xFFFF, flags) == (0x3E80, config.horizontal | config.vertical << 1 | config.signed << 2)
    assert (v["settings"] >> 19).to_bytes(7, "little") == book.to_bytes()


def test_streams_need_their_lengths():
    device = streaming()
    arguments = {"address": TENSOR, "shape": (2, 3, 8, 16), "mode": "comet",
                 "settings": {"step": 0x3E80, "horizontal": 0, "vertical": 0, "signed": 1, "counts": 2}}
    for wrong in ((), (5,), (1, 2, 3), (1, -1), (1, 1 << 32)):
        with pytest.raises(ValueError, match="needs a length of 32 bits for each of 2 lanes"):
            driver.run(opened(device).decompress(**arguments, lengths=wrong))
    assert not device.pulses
    with pytest.raises(driver.AcceleratorError, match="SHORT"):
        driver.run(opened(device).decompress(**arguments, lengths=(77, (1 << 32) - 1)))
    assert device.values["lengths_in"] == 77 | (1 << 32) - 1 << 32


def test_streams_that_could_be_too_long_for_their_registers_are_refused():
    host = opened(streaming(address_width=40))
    for shape, wrong in (((1, 1, 1 << 15, 1 << 15), True), ((1, 1, 1 << 15, (1 << 15) - 8), False)):
        with pytest.raises(ValueError, match="too large for mode comet" if wrong else "needs setting step"):
            driver.run(host.compress(0, shape, "comet", settings={}))


def test_a_tensor_of_one_row_has_an_end():
    with pytest.raises(ValueError, match="in a lane legal are multiples of 8, and up to 16777208"):
        driver.run(opened(streaming(address_width=40)).compress(0, (1, (1 << 24) + 1), "comet"))


def test_a_histogram_is_read_bin_by_bin():
    device = streaming()
    device.values |= {"count": 7, "counted": 1}
    assert driver.run(opened(device).histogram()) == 32 * [7]
    assert [value for address, value in device.writes if address == OFFSETS["BIN"]] == list(range(32))


def test_run_refuses_to_wait():
    async def waits():
        await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="event loop"):
        driver.run(waits())


def test_a_host_needs_no_amaranth():
    code = ("import sys; sys.modules['amaranth'] = None\n"
            "import numpy, actcodec.driver, golden.jpegact.cdu, rtl.offload.control.register_map\n"
            "assert not [name for name in sys.modules if name.startswith('amaranth.')]\n")
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
