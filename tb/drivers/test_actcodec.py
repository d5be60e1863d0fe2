"""The driver in C against the simulated accelerator, in every mode, and against golden, bit for bit.

Its processor has a cache that is coherent with nothing. All of it is compiled with the checks of undefined behaviour,
and runs a second time with those of addresses.
"""

import ctypes
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from actcodec.codecs import division, lane_modes
from actcodec.codecs.models import division as planes
from actcodec.golden.comet import book, lorenzo, prequantise
from actcodec.golden.division import table
from actcodec.golden.division import view as views
from actcodec.golden.jpegact import sfpr
from actcodec.golden.offload.memory import formats
from actcodec.rtl.offload.control.register_map import COUNTERS, PAYLOADS, ErrorCode
from actcodec.sim.accelerator import library
from actcodec.sim.environment import MemoryBehaviour
from drivers import modes as c_modes
from tb.drivers.test_actcodec_ring import EVERY
from tb.drivers.world import (
    C_SOURCES,
    PAYLOAD,
    ROOM,
    ROOT,
    SHAPES,
    SIZE,
    TABLE,
    WARNINGS,
    Golden,
    Host,
    Mode,
    Outcome,
    configure,
    form_for,
    four,
    pointer,
    tensor,
    u8,
    u32,
    word,
)
from tb.harness import regress
from tb.offload.draws import SPECIAL
from tb.offload.lanes import selectable
from tb.soak import chance

DEVICE = replace(chance.LANE, payload="both")


@pytest.fixture(params=regress(DEVICE), ids=["device"])
def host(request, c, random):
    host = Host(c, request.param, int(random.integers(2**63)))
    chance_of = int(random.integers(3))  # of rests on all sides
    host.environment.begin(MemoryBehaviour(latency=int(random.integers(1, 40)), pauses=chance_of),
                           int(random.integers(99)), chance_of, chance_of, chance_of)
    return host


def there_and_back(host, random, name, shape, kind, gap=0, form="float32", resident=False):
    """A tensor by golden's settings and scales; whatever comes of it is golden's."""
    golden = Golden.draw(random, name, shape, kind, form)
    x, words, job = golden.x, golden.words, golden.job(host, gap, resident)
    host.write(job, x)
    assert host("compress", ctypes.byref(job)) == 0
    what = f"{name}, {shape}, {kind}, {form}, {'memory' if resident else 'stream'}"
    assert host.payload(job) == golden.payload, what
    assert tuple(job.lengths[: len(golden.lengths)]) == golden.lengths, what
    counters = dict(zip(COUNTERS, job.counters, strict=True))
    assert counters["bytes_out"] == len(golden.payload) and counters["bytes_in"] == x.nbytes
    if words is not None:  # k, and delta, are as they were
        assert np.array_equal(job.memory, words)
    host.write(job, np.full(x.shape, 7, x.dtype))
    before = host.cached[:TABLE].copy()
    host.store(job, golden.payload)
    assert host("decompress", ctypes.byref(job)) == 0
    host.rows(job, before)[:] = golden.back.reshape(job.rows, job.width).view(word(job))
    assert np.array_equal(host.cached[:TABLE], before), what
    assert np.array_equal(host.bytes[:TABLE], before), what
    return job


# -------------------------------------------------------------------------------------------- with the accelerator
def test_every_mode_there_and_back(host, random):
    for number, name in enumerate(selectable(chance.EVERY)):
        shape = SHAPES[(number + int(random.integers(len(SHAPES)))) % len(SHAPES)]
        for one in {shape, SHAPES[0]}:
            there_and_back(host, random, name, one, ("normal", "relu", "wild")[number % 3], 4 * (number % 2),
                           form_for(random, name), bool(random.integers(2)))


@pytest.mark.regress
def test_every_mode_in_every_shape(host, random):
    for name in selectable(chance.EVERY):
        for kind in ("normal", "relu", "wild"):
            for shape in SHAPES:
                there_and_back(host, random, name, shape, kind, 4 * int(random.integers(4)),
                               form_for(random, name), bool(random.integers(2)))


def test_defaults_fit_every_tensor(host, random):
    """Compressed and decompressed with nothing but the plan, and the driver's scales, each mode gives golden's payload
    for these settings."""
    for mode in lane_modes():
        x = tensor(random, SHAPES[0])
        outcome, job = host.plan(mode.name, SHAPES[0])
        assert outcome == 0
        host.write(job, x)
        if mode.scaled:
            assert host("division" if mode.name in division.LANE else "scales", ctypes.byref(job)) == 0
        assert host("compress", ctypes.byref(job)) == 0, mode.name
        values = {one.name: one.default for one in mode.settings}
        if mode.shifts:
            values["table"] = sum(number << 3 * k for k, number in enumerate(job.shifts))
        view = mode.model.view(SHAPES[0])
        payload, _ = mode.model.encode(x.reshape(view.rows, view.width), view, job.memory, values, 1)
        assert host.payload(job) == payload, mode.name


def test_capabilities(host):
    assert (host.device.cdus, host.device.address_width) == (1, 40)
    assert (host.device.formats, host.device.payloads) == (15, PAYLOADS.index("both"))
    assert host.device.modes == sum(1 << mode.code for mode in lane_modes())
    for mode in lane_modes():
        one = host.c.actcodec_mode_named(mode.name.encode())
        assert one.contents.code == mode.code
        assert ctypes.addressof(host.c.actcodec_mode_coded(mode.code).contents) == ctypes.addressof(one.contents)
        assert host("has", one) == 1
    host.device.modes ^= 1
    assert host("has", host.c.actcodec_mode_named(b"raw")) == 0
    assert host.plan("raw", (1, 8))[0] == Outcome.NO_MODE and host.plan("none", (1, 8))[0] == Outcome.NO_MODE
    assert not host.c.actcodec_mode_coded(255)


def test_the_histogram_is_golden_s(host, random):
    x = tensor(random, (2, 3, 16, 16))
    outcome, job = host.plan("comet", x.shape)
    assert outcome == 0 and host.c.actcodec_set(ctypes.byref(job), b"step", 0x3D00) == 0
    host.write(job, x)
    assert host("compress", ctypes.byref(job)) == 0
    bins = (u32 * 32)()
    host("histogram", bins)
    mode, = lane_modes("comet")
    e = mode.model.encoded({one.name: one.default for one in mode.settings} | {"step": 0x3D00})
    q, _ = prequantise.quantize(x, e.s)
    assert list(bins) == list(book.histogram(lorenzo.residuals(q, x.shape, e.config), sampled=True))


def broken(payload):
    return {ErrorCode.SHORT: payload[:-1], ErrorCode.EXCESS: payload + b"1"}


def test_errors_and_what_comes_after(host, random):
    """Each error has its code; memory around the tensor stays as it is, and the next tensor is right."""
    good = lambda: there_and_back(host, random, "sfpr", SHAPES[0], "normal")  # noqa: E731
    job = good()
    payload = host.payload(job)
    for code, bad in broken(payload).items():
        host.store(job, bad)
        assert host("decompress", ctypes.byref(job)) == code
        good()
    text = host.c.actcodec_text(int(ErrorCode.EXCESS)).decode()
    assert text == "the stream continued after the last block"
    job.room = len(payload) - 1  # the DMA engine has no room
    assert host("compress", ctypes.byref(job)) == Outcome.DMA_FAILED
    good()
    outcome, job = host.plan("jpeg-base", SHAPES[0])
    assert outcome == 0 and host.c.actcodec_set_bytes(ctypes.byref(job), b"divisors", (u8 * 64)()) == 0
    assert host("compress", ctypes.byref(job)) == ErrorCode.DESCRIPTOR
    good()
    for mode, address, code in (("raw", SIZE, ErrorCode.READ), ("sfpr", SIZE, ErrorCode.READ)):
        outcome, job = host.plan(mode, SHAPES[0], address=address)
        assert outcome == 0 and host("compress", ctypes.byref(job)) == code
        host.store(job, host.payload(job))
        assert host("decompress", ctypes.byref(job)) == ErrorCode.WRITE
        good()
    outcome, job = host.plan("zvc", SHAPES[0])
    host.device.modes ^= 1 << job.mode.contents.code
    assert host("compress", ctypes.byref(job)) == Outcome.NO_MODE
    other = Mode.from_buffer_copy(job.mode.contents)  # one that only the accelerator knows to be missing
    other.code = 63
    job.mode, host.device.modes = ctypes.pointer(other), (1 << 64) - 1
    assert host("compress", ctypes.byref(job)) == ErrorCode.MODE
    good()
    outcome, job = host.plan("sfpr", SHAPES[0])
    assert host("set_format", ctypes.byref(job), 4) == Outcome.NO_FORMAT
    assert host("set_format", ctypes.byref(job), 3) == 0 and job.stride == job.width
    assert host("scales", ctypes.byref(job)) == Outcome.NO_FORMAT
    assert host("set_format", ctypes.byref(host.plan("raw", SHAPES[0])[1]), 3) == Outcome.NO_FORMAT
    host.device.formats = 5
    assert host("set_format", ctypes.byref(job), 1) == Outcome.NO_FORMAT
    assert host("set_format", ctypes.byref(job), 2) == 0
    job.format = 1
    assert host("compress", ctypes.byref(job)) == Outcome.NO_FORMAT
    host.device.formats = 15
    outcome, job = host.plan("sfpr", SHAPES[0])
    job.words = None
    assert host("compress", ctypes.byref(job)) == host("scales", ctypes.byref(job)) == Outcome.NO_MEMORY


def test_payloads_in_memory(host, random):
    """Errors of their own, what comes after, and devices that have them in one place only."""
    good = lambda: there_and_back(host, random, "sfpr-zvc", SHAPES[0], "relu", resident=True)  # noqa: E731
    job = good()
    payload = host.payload(job)
    for code, bad in broken(payload).items():
        host.store(job, bad)
        assert host("decompress", ctypes.byref(job)) == code
        good()
    for room in (0, 1, len(payload) - 1):
        host.write(job, tensor(random, SHAPES[0]))
        assert host("scales", ctypes.byref(job)) == 0
        job.room = ROOM
        assert host("compress", ctypes.byref(job)) == 0
        whole, size = host.payload(job), job.size
        room = min(room, size - 1)
        host.cached[PAYLOAD:] = 0xA5
        job.room = room
        assert host("compress", ctypes.byref(job)) == ErrorCode.OVERFLOW and job.size == size
        assert host.bytes[PAYLOAD : PAYLOAD + room].tobytes() == whole[:room] == host.cached[
            PAYLOAD : PAYLOAD + room].tobytes()
        assert (host.cached[PAYLOAD + room :] == 0xA5).all()
        good()
    job.room, job.payload = ROOM, PAYLOAD + 16
    assert host("compress", ctypes.byref(job)) == ErrorCode.DESCRIPTOR
    job.payload = PAYLOAD
    for place, resident in (("stream", True), ("memory", False)):
        host.device.payloads = PAYLOADS.index(place)
        assert host.plan("sfpr", SHAPES[0])[1].resident == (not resident)
        job.resident = resident
        for way in ("compress", "decompress"):
            assert host(way, ctypes.byref(job)) == Outcome.NO_PAYLOAD
    host.device.payloads = PAYLOADS.index("both")
    good()


@pytest.mark.parametrize("resident", [False, True])
def test_a_wait_that_is_given_up_and_a_reset(host, random, resident):
    for cycles in (0, 40, 90):
        _, job = host.plan("sfpr-zvc", SHAPES[0], resident=resident)
        host.write(job, tensor(random, SHAPES[0]))
        assert host("scales", ctypes.byref(job)) == 0
        host.world.cycles = cycles
        assert host("compress", ctypes.byref(job)) == Outcome.GAVE_UP
        assert host.device.moving == (not resident) and not host.world.cancelled  # its engine is at work until the end
        host.environment.give_up()
        host("reset")
        assert not host.device.moving and host.world.cancelled == (not resident)
        host.world.cancelled = 0
        while host.environment.take() is not None:  # a frame that was under way ends without bytes
            pass
        host.world.cycles = 1 << 40
        there_and_back(host, random, "sfpr-zvc", SHAPES[0], "relu", resident=resident)


@pytest.mark.parametrize("resident", [False, True])
def test_addresses_beyond_the_accelerators_are_refused(host, random, resident):
    """Its registers would drop their upper bits, and it would work at another place."""
    width = host.device.address_width
    for name in ("address", "scales", *(("payload", "room") if resident else ())):
        for wrong in (1 << width, (1 << 64) - 4, (1 << width) - 32 if name == "address" else 1 << 63):
            _, job = host.plan("sfpr-zvc", SHAPES[0], resident=resident)
            host.write(job, tensor(random, SHAPES[0]))
            before = host.bytes.copy()
            setattr(job, name, wrong)
            assert host("compress", ctypes.byref(job)) == Outcome.BAD_ADDRESS, (name, wrong)
            job.room, job.size = 64, wrong if name == "room" else 64
            assert host("decompress", ctypes.byref(job)) == Outcome.BAD_ADDRESS, (name, wrong)
            assert (host.bytes == before).all()
    there_and_back(host, random, "sfpr-zvc", SHAPES[0], "relu", resident=resident)


def test_an_engine_that_is_not_there_is_not_called(host, random):
    hooks = (pointer * 9).in_dll(host.c, "hooks")
    whole = list(hooks)
    _, job = host.plan("sfpr", SHAPES[0])
    host.write(job, tensor(random, SHAPES[0]))
    assert host("scales", ctypes.byref(job)) == 0
    own = (pointer * 9)(*whole)
    host.device.hooks = ctypes.addressof(own)
    for missing in (5, 7), (6, 7), (5, 6, 7):  # receive, send, finish
        for k in range(9):
            own[k] = None if k in missing else whole[k]
        for way in ("compress", "decompress"):
            assert host(way, ctypes.byref(job)) == Outcome.NO_ENGINE
    job.resident = 1
    assert host("compress", ctypes.byref(job)) == 0


def test_a_histogram_is_of_a_mode_that_has_one_and_of_a_tensor_that_has_ended(host, random):
    bins, modes = (u32 * 32)(), host.device.modes
    host.device.modes &= ~sum(1 << mode.code for mode in lane_modes() if mode.format.endless)
    assert host("histogram", bins) == Outcome.NO_MODE
    host.device.modes = modes
    _, job = host.plan("sfpr-zvc", SHAPES[0], resident=True)
    host.write(job, tensor(random, SHAPES[0]))
    assert host("scales", ctypes.byref(job)) == 0
    host.world.cycles = 0
    assert host("compress", ctypes.byref(job)) == Outcome.GAVE_UP
    assert host("histogram", bins) == Outcome.BUSY
    host("reset")
    host.world.cycles = 1 << 40


@pytest.mark.regress
def test_addresses_of_32_bits(c, random):
    """No word of a register is written that such an accelerator could refuse."""
    accelerator = replace(chance.EQUIPPED, cdus=1, modes=("sfpr-zvc", "brc"), address_width=32, payload="memory")
    host = Host(c, accelerator, int(random.integers(2**63)))
    host.environment.begin(MemoryBehaviour(), 1, 0, 0, 0)
    for name in accelerator.modes:
        there_and_back(host, random, name, SHAPES[0], "relu", resident=True)


# ------------------------------------------------------------------------------------------------ without one
def test_what_is_no_accelerator_is_told(c):
    host, answers = Host(c), {}
    kind = ctypes.CFUNCTYPE(ctypes.c_int, pointer, ctypes.c_int, u32, u32, ctypes.POINTER(u32))

    @kind
    def access(environment, write, address, strobes, word):
        if not write:
            word[0] = answers.get(address, 0)
        return 0

    host.world.access = ctypes.cast(access, pointer)
    hooks = ctypes.addressof(pointer.in_dll(c, "hooks"))
    assert host("probe", hooks, ctypes.byref(host.world)) == Outcome.NO_DEVICE
    answers |= {0: int.from_bytes(b"JACT", "little"), 4: 1 << 16}
    assert host("probe", hooks, ctypes.byref(host.world)) == Outcome.WRONG_VERSION
    for outcome in (*Outcome, 0, 10, 11, -22, 2**31 - 1, -2**31):
        assert c.actcodec_text(outcome)


def test_plans_are_golden_s(c, random):
    """Views of any shape, the fallbacks, and what no descriptor can have."""
    host = Host(c)
    for _ in range(300):
        shape = tuple(int(one) for one in random.integers(1, 20, random.integers(2, 6)))
        for mode in lane_modes():
            outcome, job = host.plan(mode.name, shape)
            merged = four(shape)
            lane = mode
            if mode.tiled:
                own = mode.model.view(merged)
                lane = mode if own.tileable else lane_modes(mode.fallback)[0]
            view = lane.model.view(merged)
            assert outcome == 0 and job.mode.contents.name.decode() == lane.name, f"{mode.name} {shape}"
            assert (job.rows, job.width, job.height, job.channels, job.stride) == (
                view.rows, view.width, view.height, view.channels, 4 * view.width), f"{mode.name} {shape}"
    for shape in ((), (4,), (1, 0, 8, 8), (1,) * 6, (2**31, 2**31, 2**31), (1, 1, 1, 2**31), (2**17, 2**16, 8, 8)):
        assert host.plan("sfpr", shape)[0] == Outcome.BAD_SHAPE, shape


def test_settings_reach_their_bits_and_no_others(c, random):
    host = Host(c)
    for mode in lane_modes():
        _, job = host.plan(mode.name, SHAPES[0])
        whole = sum(one.default << one.low for one in mode.settings)
        words = lambda: sum(int(word) << 32 * k for k, word in enumerate(job.settings))  # noqa: E731, B023
        assert words() == whole
        for one in mode.settings:
            number = int.from_bytes(random.bytes(64), "little") >> 512 - one.width
            configure(job, c, {one.name: number})
            whole += (number - one.default) << one.low
            assert words() == whole
            if one.width < 64:
                assert c.actcodec_set(ctypes.byref(job), one.name.encode(), 1 << one.width) == Outcome.NO_SETTING
        assert c.actcodec_set(ctypes.byref(job), b"nothing", 0) == Outcome.NO_SETTING
        assert words() == whole


def floats(random, count):
    """Any bits, the special ones, and what lies at the limits of scales."""
    bits = np.concatenate([random.integers(0, 1 << 32, count, np.uint32), SPECIAL.astype(np.float32).view(np.uint32),
                           np.float32(144) .view(np.uint32) + np.arange(-9, 9, dtype=np.int64),
                           np.float32(144 / 2.0**126).view(np.uint32) + np.arange(-9, 9, dtype=np.int64)])
    return bits.astype(np.uint32)


@pytest.mark.parametrize("count", [2000, *regress(200_000)])
def test_scales_and_reciprocals(c, random, count):
    bits = floats(random, count)
    with np.errstate(all="ignore"):
        golden = sfpr.scales(bits.view(np.float32).reshape(1, -1, 1, 1).repeat(8, axis=3))
    finite = (bits & 0x7FFFFFFF) < 0x7F800000
    assert [c.actcodec_scale(int(one)) for one in bits[finite]] == golden.k.view(np.uint32)[finite].tolist()
    k = np.unique(golden.k)
    assert [c.actcodec_reciprocal(int(one)) for one in k.view(np.uint32)] == sfpr.reciprocal(k).view(np.uint32).tolist()
    every = (np.arange(1 << 15, dtype=np.uint32) << 16)  # all k, with anything in the lower half
    with np.errstate(all="ignore"):
        r = sfpr.reciprocal(np.where(every < 0x00800000, 0, every).astype(np.uint32).view(np.float32))
        r = sfpr.decompressing(r.view(np.uint32))
    normal = every <= 253 << 23
    assert [c.actcodec_reciprocal(int(one) | 0xFF) for one in every[normal]] == r.view(np.uint32)[normal].tolist()


@pytest.mark.parametrize("kind", ["normal", "relu", "wild"])
def test_tables_of_scales(c, random, kind):
    """Of every view, also with gaps between rows: golden's words."""
    host = Host(c)
    for shape in SHAPES:
        for name in ("sfpr", *division.LANE):
            form = str(random.choice(["float32", *formats.HALVES]))
            x, (outcome, job) = tensor(random, shape, kind), host.plan(name, shape, gap=8, form=form)
            words = x
            if form != "float32":
                with np.errstate(all="ignore"):
                    words = formats.narrow(x, form)
                x = formats.widen(words, form)
            mode, = lane_modes(job.mode.contents.name.decode())
            assert outcome == 0
            host.write(job, words)
            if name == "sfpr":
                assert host("scales", ctypes.byref(job)) == 0
                assert np.array_equal(job.memory, mode.model.fit(x.reshape(four(shape)))[0]), (shape, kind)
                assert host("division", ctypes.byref(job)) == Outcome.NO_MODE
                continue
            for lfc, minimum in ((0, 0), (1, 0), (1, 1)):
                configure(job, c, {"lfc": lfc, "minimum": minimum})
                assert host("division", ctypes.byref(job)) == 0
                view = views.View(mode.tiled, job.rows, job.width, job.channels, job.height)
                golden = table.table(x, mode.format.row, bool(lfc), "min" if minimum else "mean", view)
                words = golden.k.view(np.uint32) | golden.delta.view(np.uint8)
                assert np.array_equal(job.memory, words), (name, shape, kind, lfc, minimum)


def test_division_of_views_of_no_shape(c, random):
    """Planes that come back, or of which some have no row."""
    host = Host(c)
    for tiled in (True, False):
        for rows, width, channels, height in ((48, 13, 2, 8), (24, 40, 4, 16), (16, 8, 5, 8)):
            _, job = host.plan("division" if tiled else "division-flat", (1, 1, 8, 8) if tiled else (1, 9))
            job.rows, job.width, job.channels, job.height, job.stride = rows, width, channels, height, 4 * width
            job.memory = np.zeros(channels, np.uint32)
            job.words = job.memory.ctypes.data
            x = tensor(random, (rows, width))
            host.write(job, x)
            configure(job, c, {"lfc": 1})
            assert host("division", ctypes.byref(job)) == 0
            golden = table.table(x, 2, True, "mean", views.View(tiled, rows, width, channels, height))
            there = np.arange(channels) < -(-rows // height)
            words = golden.k.view(np.uint32) | golden.delta.view(np.uint8)
            assert np.array_equal(job.memory[there], words[there])


@pytest.mark.parametrize("count", [300, *regress(20_000)])
def test_steps(c, random, count):
    bits = floats(random, count)
    for bound in bits.view(np.float32)[:count]:
        try:
            golden = int(np.float32(prequantise.step(float(bound))).view(np.uint32) >> 16)
        except ValueError:
            golden = 0
        assert c.actcodec_step(float(bound)) == golden, bound
    assert c.actcodec_step(float(np.float32(2.0**-126))) == 256 and c.actcodec_step(3e38) == 30592


@pytest.mark.parametrize("count", [12, *regress(400)])
def test_books(c, random, count):
    """Golden's from any histogram: empty, one bin, falling, rising, any."""
    scratch = ctypes.create_string_buffer(ctypes.c_size_t.in_dll(c, "scratch_size").value)
    falling = np.exp2(24 - np.arange(32) * 0.9)
    histograms = [np.zeros(32), np.full(32, 1 << 27), *(np.eye(32)[k] * 1000 for k in (0, 1, 15, 16, 31)), falling]
    for _ in range(count):
        some = random.random(32) < random.random()
        histograms.append(random.integers(0, 1 + int(2.0 ** random.integers(1, 25)), 32) * some)
    for bins in histograms:
        bins, counts = np.asarray(bins, np.int64), (u8 * 7)()
        c.actcodec_book((u32 * 32)(*map(int, bins)), counts, scratch)
        assert bytes(counts) == book.build(book.spread(bins)).to_bytes(), bins.tolist()


# ------------------------------------------------------------------------------------------------------ the compilers
@pytest.mark.parametrize("compiler", ["gcc", *(["clang"] if os.system("command -v clang > /dev/null") == 0 else [])])
def test_compiles_without_a_warning(folder, tmp_path, compiler):
    for source in [*C_SOURCES, *sorted((ROOT / "drivers/c/examples").glob("*.c"))]:
        files = ["-c", source] if source in C_SOURCES else [source, *C_SOURCES]
        subprocess.run([compiler, *WARNINGS, "-O2", f"-I{folder}", f"-I{ROOT}/drivers/c", *files, "-o",
                        tmp_path / "out"], check=True)
        if compiler == "clang":  # its analyzer
            subprocess.run([compiler, "--analyze", "-Xclang", "-analyzer-werror", "-std=c99", f"-I{folder}",
                            f"-I{ROOT}/drivers/c", source, "-o", tmp_path / "plist"], check=True)


def test_headers_are_for_cpp_too(folder, tmp_path):
    (tmp_path / "one.cpp").write_text('#include "actcodec_ring.h"\nint main() { return actcodec_scale(0) != 0; }\n')
    subprocess.run(["g++", "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{folder}", f"-I{ROOT}/drivers/c",
                    "-fsyntax-only", tmp_path / "one.cpp"], check=True)


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "drivers/c").glob("*.h")))
def test_every_function_is_documented(name):
    header = (ROOT / "drivers/c" / name).read_text().splitlines()
    for number, line in enumerate(header):
        if "actcodec_" in line and line.endswith(";") and "(" in line and not line.startswith((" ", "/")):
            before = [text for text in header[:number] if text][-3:]
            assert any(text.rstrip().endswith("*/") for text in before), line


def test_a_view_that_c_does_not_know_is_refused():
    class Odd:
        name, model = "odd", type("Model", (), {"view": staticmethod(lambda shape: shape)})

    with pytest.raises(ValueError, match="mode odd sees"):
        c_modes._view(Odd)
    assert {c_modes._view(mode) for mode in lane_modes()} == set(c_modes.VIEWS)
    assert all(c_modes._view(mode) == "planes" for mode in lane_modes() if isinstance(mode.model, planes.Division))


@pytest.mark.regress
def test_addresses_are_checked(folder):
    """All of this, and the ring, once more, with the sanitizer of addresses in the process."""
    if "LD_PRELOAD" in os.environ:
        return
    for accelerator in DEVICE, chance.EQUIPPED, EVERY:  # compilers take several times as long with it
        library(accelerator)
    asan = subprocess.run(["gcc", "-print-file-name=libasan.so"], check=True, capture_output=True, text=True)
    long = "200000 or 20000 or 400 or every_shape or addresses"
    files = [__file__, Path(__file__).with_name("test_actcodec_ring.py")]
    subprocess.run([sys.executable, "-m", "pytest", "-n", "0", "-k", f"not ({long})", *files], check=True, cwd=ROOT,
                   env={**os.environ, "LD_PRELOAD": asan.stdout.strip(), "ASAN_OPTIONS": "detect_leaks=0"})
