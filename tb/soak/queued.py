"""Rings of descriptors, drawn by chance: tensors in any direction, wrong descriptors, and what befalls them."""

from actcodec import descriptors as ring
from actcodec.codecs import lane_modes
from tb.offload import draws
from tb.offload.jobs import Job
from tb.soak.ring import Ring
from tb.soak.session import same

__all__ = ["add", "job", "rings", "wrong"]

MOST = 12  # descriptors of a ring


def job(session, mode=None, most=500):
    """A tensor in a mode, perhaps to be scanned."""
    random = session.random
    mode = mode or lane_modes(str(random.choice(session.driver.modes)))[0]
    scan = session.driver.scans and random.random() < 0.4
    return Job.draw(random, draws.descriptor(random, mode, session.driver.cdus, most=most, scan=scan,
                                             formats=session.driver.formats), scan)


def add(session, batch, one=None):
    """Adds a tensor to a ring, in any direction; whether there was room."""
    one, way = one or job(session), session.random.random()
    if way < 0.5:
        return batch.compress(one, one.scan and way < 0.1)
    return batch.decompress(one)


def wrong(session, batch):
    """Adds a descriptor that is refused: beyond a limit, with bits of addresses that are none, or of any bytes."""
    random, width = session.random, session.driver.address_width
    kind = random.choice([0, 1, 2] if width < 64 else [0, 2])
    while True:
        one = job(session).at(0x1000)
        back = bool(random.integers(2))
        values = one.registers(back, one.lengths)
        if kind == 0:
            _, values = draws.illegal(random, values, one.mode, width)
        if kind == 1:
            bit = int(random.integers(width, 64))
            values |= {str(random.choice(["base", "scales"])): 1 << bit}
        content = random.bytes(ring.SIZE) if kind == 2 else ring.descriptor(values)
        if batch.garbage(content):
            return


def rings(run):
    """A ring of a soak's run: all goes well, but for descriptors that are wrong; tensors meet errors of memory, or the
    ring itself does; it stops at an error; or it meets a soft reset."""
    session, random = run.session, run.random
    kinds = {"well": 0.4, "memory error": 0.15, "ring error": 0.15, "stop": 0.1, "soft reset": 0.2}
    kind = str(random.choice(list(kinds), p=list(kinds.values())))
    rate = int(random.choice([3, 30, 300])) if kind.endswith("error") else 0
    ports = run.accelerator.cdus + (run.accelerator.payload != "stream")
    run.around((rate, rate), spared=(1 << ports) - 1 if kind == "ring error" else 1 << ports)
    size = min(run.accelerator.queue, int(random.choice([1, 2, 8, 16])))
    batch = Ring(session, size, stop_on_error=kind == "stop", at=512 * int(random.integers(4)))
    stops = kind not in ("well", "memory error")
    if stops:  # no frame may be left that waits
        batch.resident = session.payload != "stream"
    for _ in range(int(random.integers(1, min(size, MOST) + 1))):
        if random.random() < 0.2:
            wrong(session, batch)
        elif stops and session.payload == "stream":
            batch.compress(job(session))
        elif not add(session, batch):
            break
    if not batch.entries:
        return
    run.note(f"a ring of {size}, {kind}: {', '.join(entry.what for entry in batch.entries)}")
    count, aborted = batch.publish(), None
    if kind == "soft reset":
        ended, aborted = batch.reset(int(random.integers(1, int(random.choice([50, 600, 6000])))))
    else:
        ended = batch.wait()
    codes = batch.check(ended, aborted)
    if kind in ("well", "memory error"):
        same(ended, count, "descriptors that have ended")
    run.count(f"ring: {kind}")
    run.ended(codes)
