"""Bench of the accelerator: whole tensors from memory to the stream and back, in the environment of engine and soak,
which checks every rule of its ports in every cycle; each test compares every byte of memory and stream.

``test_accelerator_axi`` has it among models that nobody here wrote.
"""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from actcodec.codecs import JPEG_ACT, host_mode, lane_modes
from actcodec.driver import run
from actcodec.golden.jpegact import sfpr
from actcodec.golden.offload import blocks
from actcodec.golden.offload.memory import formats
from actcodec.golden.offload.wire import stream
from actcodec.rtl.jpegact.cdu import Cdu
from actcodec.rtl.offload.accelerator import Accelerator as Hardware
from actcodec.rtl.offload.control.register_map import COUNTERS, ErrorCode
from actcodec.sim.accelerator import Accelerator
from actcodec.sim.environment import KINDS, PATTERNS, SLVERR, MemoryBehaviour
from tb import reference
from tb.harness import regress, selection
from tb.jpegact.blocks import recovered
from tb.offload import draws
from tb.offload.jobs import Job
from tb.offload.lanes import drawn, selectable, stored
from tb.soak import chance
from tb.soak import run as soak
from tb.soak.frames import Frame, framed
from tb.soak.session import Session, same

COUNTED = ("sfpr", *reference.CODERS, "brc", "jpeg-base")
WHOLE = [chance.LANE, chance.LANES]
OTHERS = [chance.INDEPENDENT, Accelerator(8, JPEG_ACT), Accelerator(3, COUNTED, coders=2), chance.LUTS]
# One of every kind of view: tiles in rows of one, two, three and more, ragged widths and heights, no tile at all.
SHAPES = [(1, 1, 8, 8), (1, 5, 8, 8), (1, 3, 16, 16), (3, 2, 9, 24), (2, 3, 7, 13), (1, 2, 30, 56), (1, 7, 14, 14),
          (2, 40, 1, 1), (3, 9), (1, 3, 11, 40), (2, 3, 5, 4), (1, 1, 28, 28), (1, 33, 2, 8)]
POLITE = MemoryBehaviour()  # never rests
SIZE = 1 << 17  # bytes of memory


def label(it):
    return f"{it.cdus}-{len(it.modes)}-{it.memory}-{len(it.formats)}-{it.target}"


@pytest.fixture(params=[WHOLE[0], *regress(WHOLE[1])], ids=label)
def session(request, random):
    one = Session(request.param, random, size=SIZE)
    one.brief = selection.brief(request.config)
    return one


def lanes_modes(session):
    return lane_modes(*session.driver.modes)


def some(session, modes):
    """Some of ``modes`` by chance: a third in ``make sim``, an eighth for several lanes; or all of them."""
    return selection.part(session.random, modes, few(session, 8, 3 if session.brief else 1))


def few(session, several, one):
    """A number for accelerators with ``several`` lanes, or for those with ``one``, which are simulated faster."""
    return several if session.driver.cdus > 1 else one


def tensor(random, shape, kind="normal"):
    """A tensor with what a network has, and what it should not have."""
    x = random.normal(0, 1, shape).astype(np.float32)
    if kind == "relu":
        x = np.maximum(x - np.float32(0.5), 0)
    if kind == "wild":
        flat = x.reshape(-1)
        at = random.random(flat.size) < 0.05
        flat[at] = random.choice(draws.SPECIAL, at.sum())
        x[:, : x.shape[1] // 2] *= np.float32(1e-20)
    return x


def job(session, x, name, gap=0, form=None, **given):
    """A tensor in a mode that users can ask for, as golden plans it, with any options but the ``given`` ones; and that
    golden's file has the same payload. It has the format ``form``, or any. ``gap``, in values, is between rows."""
    random, cdus = session.random, session.driver.cdus
    mode, options = drawn(random, name, cdus, **given)
    form = form or str(random.choice([one for one in session.driver.formats if one != formats.CODES or mode.codes]))
    x = {"float32": lambda: x, formats.CODES: lambda: sfpr.quantize(x, 30)}.get(form, lambda: formats.narrow(x, form))()
    values = formats.widen(x, form) if form in formats.HALVES and not mode.halves else x
    lane, words, settings = mode.model.plan(values, dtype=form, **options)
    one = Job.shaped(host_mode(lane), cdus, x, words, settings, options.get("signs", False), form)
    golden = stored(mode.model.compress(values, dtype=form, **options))
    assert (golden.mode, golden.payload) == (lane, one.payload), f"{name}, {options}, {x.shape}, {form}"
    size = one.descriptor.bytes
    return one.at(size * int(random.integers(256 // size)), size * (one.descriptor.width + gap),
                  32 * int(random.integers(4)))


@pytest.mark.parametrize("wrong, name", [
    ({"cdus": 0}, "cdus"), ({"cdus": 9}, "cdus"), ({"modes": ()}, "modes"), ({"modes": ("jpeg",)}, "modes"),
    ({"address_width": 31}, "address_width"), ({"outstanding": 0}, "outstanding"), ({"memory": "common"}, "memory"),
    ({"formats": ("float16",)}, "formats"), ({"formats": ("float32", "float64")}, "formats"),
    ({"payload": "file"}, "payload")])
def test_refuses_wrong_parameters(wrong, name):
    with pytest.raises(ValueError, match=f"{name} must be"):
        Hardware(**{"cdus": 4, "modes": lane_modes(*JPEG_ACT), "codec": Cdu, **wrong})


# --------------------------------------------------------------------------------------------------------- good tensors
@pytest.mark.parametrize("session", [WHOLE[0], *regress(WHOLE[1], *OTHERS)], indirect=True, ids=label)
def test_there_and_back(session):
    """Every mode that has blocks, and every shape in a part of them: with one lane in a third, or in a sixth in ``make
    sim``; with several lanes, which take longer to simulate, in a twelfth. Rows may have gaps between them."""
    random, part = session.random, few(session, 12, 3 * (1 + session.brief))
    for number, mode in enumerate(mode for mode in lanes_modes(session) if not mode.format.endless):
        for k, shape in enumerate(SHAPES):
            if k % part != number % part or mode.name not in selectable(session.driver.modes):
                continue
            chance.around(session)
            dqt = ("optL", "jpeg60")[k % 2]
            x = tensor(random, shape, ("normal", "relu", "wild")[k % 3])
            session.both(job(session, x, mode.name, int(random.choice([0, 1, 9, 31])), dqt=dqt))


@pytest.mark.parametrize("session", [WHOLE[0], *regress(WHOLE[1], *OTHERS)], indirect=True, ids=label)
def test_tensors_in_changing_modes_and_whatever_befalls_them(session):
    """Of the soak: any descriptors, on any memory; cut and garbled frames, errors of memory, soft and hard resets,
    refusals, a host that writes what is locked."""
    for _ in range(few(session, 1, 2)):
        soak.run(session.environment.accelerator, int(session.random.integers(2**63)))


def test_takes_whatever_the_limits_allow_and_nothing_else(session):
    """Rows, scales and settings that need not be those of a shape; and the same beyond one limit, which moves nothing,
    neither in memory nor of a frame that waits."""
    random = session.random
    for mode in some(session, lanes_modes(session)):
        for turn in range(few(session, 1, 2)):
            chance.around(session)
            one = Job.draw(random, draws.descriptor(random, mode, session.driver.cdus, most=400,
                                                    formats=session.driver.formats)).at(0x1000)
            session.both(one)
            _, values = draws.illegal(random, one.registers(turn, one.lengths), mode, session.driver.address_width)
            frame = framed(one.payload, random)
            session.environment.send(frame.data, frame.keep, frame.last)
            session.refuse(mode, values, ErrorCode.DESCRIPTOR)
            session.decompress(one, frame, sent=True)


def test_counts_what_passes(session):
    """Cycles, and saturated values and NaNs of all CDUs together; also after a tensor that not all CDUs worked on."""
    environment, driver = session.environment, session.driver
    mode = "sfpr" if "sfpr" in driver.modes else "sfpr-zvc"
    for shape in ((1, 2, 64, 64), (1, 1, 8, 8), (1, 3, 16, 24)):
        x, view = tensor(session.random, shape, "wild"), blocks.view(shape)
        environment.begin(POLITE)
        one = job(session, x, mode, form="float32")
        session.compress(one)
        there = dict(zip(COUNTERS, run(driver.get(*COUNTERS)), strict=True))
        product = one.x * (one.words & np.uint32(0xFFFF0000)).view(np.float32)[view.channel, None]
        rounded = np.rint(product.astype(np.float64))
        assert there["nans"] == np.isnan(x).sum()
        assert there["saturated"] == ((rounded > 127) | (rounded < -128)).sum()
        assert there["cycles"] > 8 * view.blocks(False) // driver.cdus
        for other in lane_modes(*driver.modes):  # of the next tensor, whose registers are written
            run(driver.put(mode=other.code))
            environment.run(40)
            same(run(driver.get(*COUNTERS)), [*there.values()], f"counters with {other.name} in MODE")
    session.decompress(one)
    back = dict(zip(COUNTERS, run(driver.get(*COUNTERS)), strict=True))
    run(driver.put(decompress=0))
    assert run(driver.get("bytes_in", "bytes_out")) == [back["bytes_in"], back["bytes_out"]]
    mostly = PATTERNS.index("mostly")
    for memory, stream_, stalls in ((replace(POLITE, pauses=mostly), 0, ("stall_read", "stall_write")),
                                    (POLITE, mostly, ("stall_stream", "stall_stream"))):
        environment.begin(memory, 1, stream_, stream_)
        session.compress(one)
        slow = dict(zip(COUNTERS, run(driver.get(*COUNTERS)), strict=True))
        assert slow["cycles"] >= there["cycles"] and slow[stalls[0]] > there[stalls[0]] and slow["stall_write"] == 0
        session.decompress(one)
        slow = dict(zip(COUNTERS, run(driver.get(*COUNTERS)), strict=True))
        assert slow["cycles"] >= back["cycles"] and slow[stalls[1]] > back[stalls[1]]


def test_a_null_beat_may_end_a_frame(session):
    """In each mode with blocks, behind a payload that fills packets: of blocks that are alike."""
    random = session.random
    for mode in some(session, (mode for mode in lanes_modes(session) if mode.name in selectable(session.driver.modes))):
        if mode.format.endless:
            continue
        block = len(mode.model.compress(np.zeros((1, 1, 8, 8), np.float32)).payload)
        one = job(session, np.zeros((1, 128 // math.gcd(128, block), 8, 8), np.float32), mode.name, form="float32")
        assert len(one.payload) % 128 == 0
        frame = framed(one.payload, random)
        null = Frame(np.vstack([frame.data, frame.data[:1]]), np.vstack([frame.keep, np.zeros((1, 128), np.uint8)]))
        chance.around(session)
        session.decompress(one, null)
        session.decompress(one)


@pytest.mark.parametrize("accelerator", [
    chance.EQUIPPED, *regress(chance.STORED, chance.LARGE)])
def test_payloads_in_memory(accelerator, random):
    """All ports on one slave, which keeps the order of all addresses, or on several; spaces of any size."""
    session = Session(accelerator, random, size=SIZE)
    modes = [mode for mode in lanes_modes(session) if mode.name in selectable(session.driver.modes)]
    for turn, mode in enumerate(modes):
        chance.around(session, **({"kind": KINDS.index("shared"), "ordered": 1} if turn % 2 else {}))
        one = Job.draw(random, draws.descriptor(random, mode, session.driver.cdus, most=400)).at(0x1000)
        assert session.compress(one) in (ErrorCode.NONE, ErrorCode.OVERFLOW)
        assert session.decompress(one) == ErrorCode.NONE


@pytest.mark.parametrize("accelerator", [chance.EQUIPPED, *regress(chance.LARGE)])
def test_payloads_in_memory_and_whatever_befalls_them(accelerator, random):
    soak.run(accelerator, int(random.integers(2**63)))


def test_a_payload_at_no_multiple_of_32_is_refused(random):
    session = Session(chance.EQUIPPED, random, size=SIZE)
    mode, = lane_modes("brc")
    good = Job.draw(random, draws.descriptor(random, mode, 2, most=100)).at(0x1000).registers(False)
    for low in (1, 2, 4, 8, 16, 31):
        chance.around(session)
        session.refuse(mode, good | {"payload_memory": 1, "payload": 0x4000 + low, "payload_size": 100},
                       ErrorCode.DESCRIPTOR)


# ---------------------------------------------------------------------------------------------------------- bad tensors
def test_refuses_descriptors_that_make_no_sense(session):
    random, driver, environment = session.random, session.driver, session.environment
    good = job(session, tensor(random, (1, 2, 8, 16)), driver.modes[0], form="float32").registers(False)
    mode, = lane_modes(driver.modes[0])
    end = 1 << driver.address_width
    bad = [{"rows": 0}, {"width": 0}, {"stride": 0}, {"stride": good["stride"] - 4}, {"stride": good["stride"] + 2},
           {"base": 0x1002}, {"height": 0}, {"channels": 0}, {"base": end - 1020}, {"rows": 1 << 31},
           {"width": 1 << 24, "stride": 1 << 26}]
    if mode.tiled:
        bad += [{"width": 7}, {"rows": 7}]
    if mode.scaled:
        bad += [{"scales": 0x8004}, {"scales": end - 32, "channels": 9}]
    for change in bad:
        for decompress in (0, 1):
            chance.around(session)
            session.refuse(mode, good | {"decompress": decompress} | change, ErrorCode.DESCRIPTOR)
    other = next(code for code in range(256) if code not in {one.code for one in lanes_modes(session)})
    session.refuse(mode, good | {"mode": other}, ErrorCode.MODE)
    assert environment.access(True, 0x3C, 256)[0] == SLVERR  # of counters, which nobody writes
    flat = next((one for one in lanes_modes(session) if not one.scaled and not one.tiled), None)
    if flat and not flat.format.endless:
        one = Job.draw(random, draws.descriptor(random, flat, driver.cdus)).at(0x1000)
        session.both(replace(one, table=end - 32))  # of no account


def test_ends_bad_streams_with_their_error(session):
    """Too short, too long, with gaps, with masks that promise too much or too little: in every mode of blocks."""
    random = session.random
    for mode in some(session, (mode for mode in lanes_modes(session) if not mode.format.endless)):
        chance.around(session)
        one = Job.draw(random, draws.descriptor(random, mode, session.driver.cdus, most=1000,
                                                formats=session.driver.formats)).at(0x1000)
        payload, size = one.payload, len(one.payload)
        frames = [payload[: size - 1], payload[:1], payload[: size // 2], payload[:128], payload + payload[:1],
                  payload + bytes(700), payload + bytes(-size % 128)]
        if mode.format.head:  # masks
            frames += [b"\xff" * 8 + payload[8:], bytes(8) + payload[8:], random.bytes(3 * size)]
        for k in random.permutation(len(frames))[: few(session, 3, 10)]:
            session.decompress(one, framed(frames[k], random))
        holes = framed(payload, random)
        holes.keep[0, min(size, 128) // 2] ^= 1
        session.decompress(one, holes)
        session.both(one)


def test_malformed_blocks_become_an_error(session):
    """Bits of codes and planes: the tensor is golden's, and so is whether there is an error."""
    random, cdus, ends = session.random, session.driver.cdus, Counter()
    coded = some(session, (mode for mode in lanes_modes(session) if mode.name in reference.TABLES))
    for mode in coded:
        while True:
            one = job(session, tensor(random, (1, 3, 16, 24), "relu"), mode.name)
            d = one.descriptor
            code = reference.code_of(mode.name, d.settings)
            sizes = reference.block_sizes(mode.name, one.payload, d.blocks)
            if np.any(sizes > 5):
                break
        for turn in range(few(session, 3, 6)):
            chance.around(session)
            payload = np.frombuffer(one.payload, np.uint8).copy()
            which = int(random.choice(np.flatnonzero(sizes > 5)))
            start = sizes[:which].sum() + 1
            if turn == 1:  # of all ones, which is no code
                payload[start : start + 4] = 255
            elif turn:
                payload[start + random.integers(4)] ^= 1 << random.integers(8)
            again, faults = recovered(mode.name, stream.deinterleave(payload, sizes, cdus)[0], d.blocks, code)
            plain = reference.block_sizes(mode.name, again.tobytes(), d.blocks)
            rows = d.decompress(stream.interleave(again, plain, cdus)[0].tobytes(), one.back)
            end = ErrorCode.BLOCK if np.any(faults) else ErrorCode.NONE
            session.decompress(one, framed(payload.tobytes(), random), outcome=({end}, rows, np.ones(rows.shape, bool)))
            ends[mode.name, end] += 1
        session.both(one)
    assert set(ends) == {(mode.name, code) for mode in coded for code in (ErrorCode.NONE, ErrorCode.BLOCK)}


@pytest.mark.parametrize("side", ["read", "write"])
def test_ends_memory_errors_with_an_error(session, side):
    """Of one lane alone, in every mode; each lane has its turn, and blocks for it."""
    random, cdus = session.random, session.driver.cdus
    code = ErrorCode.READ if side == "read" else ErrorCode.WRITE
    modes = some(session, selectable(session.driver.modes))
    for k in range(max(len(modes), cdus)):
        one, lane = job(session, tensor(random, (1, 6, 16, 24)), modes[k % len(modes)]), k % cdus
        chance.around(session, (1000, 0) if side == "read" else (0, 1000), spared=(1 << cdus) - 1 - (1 << lane))
        assert (session.compress if side == "read" else session.decompress)(one) == code
        chance.around(session)
        session.both(one)


# --------------------------------------------------------------------------------------------------------- soft resets
def test_recovers_from_a_soft_reset_at_any_moment(session):
    """Until it has met a tensor in each direction, a frame in progress, and one that has not begun."""
    random, cut = session.random, dict.fromkeys(("compress", "decompress", "frame", "unbegun"), 0)
    shape = 1, max(3, session.driver.cdus), 16, 40  # a frame that takes a while however many lanes there are
    jobs = [job(session, tensor(random, shape), name) for name in some(session, selectable(session.driver.modes))]
    for attempt in range(100):
        if attempt >= (4 if session.brief else 12) and all(cut.values()):
            break
        back, one = attempt % 2, jobs[random.integers(len(jobs))]
        chance.around(session)
        late = int(random.choice([60, 400, 1500]))  # some before a frame has begun
        planned = int(random.choice([0, 40 * session.driver.cdus]))  # by when every lane has begun
        in_time, frame = session.give_up(one, back, planned + int(random.integers(1, late)))
        cut["decompress" if back else "compress"] += in_time
        cut["frame"] += bool(frame) and len(frame) < len(one.payload)
        if back and not session.environment.begun and not session.environment.sent:  # it is for the next tensor
            cut["unbegun"] += 1
            chance.around(session)
            session.decompress(one, framed(one.payload, random), sent=True)
        session.both(jobs[random.integers(len(jobs))])
    assert all(cut.values()), cut


def test_a_soft_reset_forgets_a_tensor_that_ends_just_then(session):
    """Of one that ended before, what is pending stays."""
    driver, seen = session.driver, []
    run(driver.put(rows=0))  # it ends after a few cycles
    for delay in range(24):
        run(driver.put(done_pending=1, error_pending=1))
        run(driver.put(start=1))
        session.environment.run(delay)
        run(driver.put(reset=1))
        while run(driver.get("busy"))[0]:
            pass
        done, error, *pending = run(driver.get("done", "error", "done_pending", "error_pending"))
        assert done == error == 0 and pending in ([0, 0], [1, 1]), f"{delay} cycles: {done}, {pending}"
        seen.append(pending[0])
    assert seen == sorted(seen) and {0, 1} == set(seen), seen


def test_a_frame_that_waits_is_the_next_tensors(session):
    """Neither a soft reset nor a tensor that is refused takes it; a tensor of one value disposes of it."""
    random, driver, environment = session.random, session.driver, session.environment
    plain = [mode for mode in lanes_modes(session) if not (mode.format.endless or mode.format.segmented or mode.tiled)]
    mode = min(plain, key=lambda mode: mode.format.longest)
    other = job(session, tensor(random, (1, 3, 24, 40)), mode.name)
    small = Job.draw(random, draws.descriptor(random, mode, driver.cdus, (1, 1, 1, 1))).at(0x1004)
    size = len(small.payload)
    for length, code in ((len(other.payload), ErrorCode.EXCESS), (128, ErrorCode.EXCESS), (size + 1, ErrorCode.EXCESS),
                         (size, ErrorCode.NONE), (1, ErrorCode.SHORT)):
        chance.around(session)
        frame = framed((small.payload + other.payload)[:length], random)
        environment.send(frame.data, frame.keep, frame.last)
        run(driver.reset())
        session.refuse(mode, small.registers(True) | {"rows": 0}, ErrorCode.DESCRIPTOR)
        assert session.decompress(small, frame, sent=True) == code
        session.both(other)
