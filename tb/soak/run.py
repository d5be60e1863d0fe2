"""A run: an accelerator after reset, some tensors, and what goes wrong with some of them, all of it from one seed."""

from collections import Counter

import numpy as np

from actcodec.codecs import lane_modes
from actcodec.rtl.offload.register_map import ErrorCode
from tb.soak import chance
from tb.soak.frames import MUTATIONS, mutated
from tb.soak.session import Session

__all__ = ["FAULTS", "run"]

STEPS = 12  # of a run

class Run:
    """``counts`` are of tensors, faults and error codes; they grow while it goes on."""

    def __init__(self, accelerator, seed):
        self.random = np.random.default_rng(seed)
        self.accelerator = accelerator
        self.origin = chance.window(self.random, accelerator)
        self.session = Session(accelerator, self.random, self.origin, chance.SIZE)
        self.counts, self.log = Counter(), []

    def go(self):
        names, shares = list(FAULTS), np.array([share for share, _ in FAULTS.values()])
        for _ in range(STEPS):
            self.well()
            name = str(self.random.choice(names, p=shares / shares.sum()))
            FAULTS[name][1](self)

    # --------------------------------------------------------------------------------------------------------- parts
    def around(self, errors=(0, 0)):
        """Memory, streams and host behave in another way."""
        random, session = self.random, self.session
        manners = chance.manners(random, self.accelerator, errors)
        patterns = [chance.pattern(random) for _ in range(3)]
        session.world.begin(manners, int(random.integers(2**63)), *patterns)
        session.polls = random.random() < 0.2
        self.note(f"{manners}, sink, source and host {patterns}")

    def job(self, modes=None):
        return chance.job(self.random, self.accelerator, self.origin, modes and str(self.random.choice(modes)))

    def note(self, text):
        self.log.append(f"cycle {self.session.world.cycle}: {text}")

    def count(self, name, code=None):
        self.counts[name] += 1
        if code is not None:
            self.counts["tensors"] += 1
            self.counts[f"code {ErrorCode(code).name}"] += 1

    def compress(self, job, name="compressed"):
        self.note(f"compress {job}")
        self.count(name, self.session.compress(job))

    def decompress(self, job, name="decompressed", frame=None, sent=False, lengths=None):
        self.note(f"decompress {job}, frame: {name}" + (f", lengths {lengths}" if lengths else ""))
        self.count(name, self.session.decompress(job, frame, sent, lengths))

    def well(self):
        """A tensor there, back, or both."""
        self.around()
        job = self.job()
        way = self.random.integers(3)
        if way != 1:
            self.compress(job)
        if way != 0:
            self.decompress(job)


# --------------------------------------------------------------------------------------------------------- the faults
def _mutated(run):
    for _ in range(int(run.random.integers(1, 4))):
        run.around()
        job = run.job()
        name = str(run.random.choice(list(MUTATIONS)))
        form = job.lane.format
        if name == "null last" and not (form.head or form.endless) and len(job.payload) % 128:
            continue  # such a payload ends with a full beat
        run.decompress(job, f"mutated: {name}", mutated(job.payload, name, run.random))
        if form.endless:
            frame = mutated(job.payload, name, run.random) if run.random.random() < 0.5 else None
            run.decompress(job, "mutated: lengths", frame, lengths=_lengths(run.random, job.lengths))


def _lengths(random, lengths):
    """Wrong ones of streams."""
    some = [max(0, length + int(random.choice([-8, -1, 0, 0, 1, 8]))) for length in lengths]
    any_ = random.integers(0, 1 << int(random.integers(1, 16)), len(lengths)).tolist()
    return [some, any_, [0] * len(lengths), lengths[::-1]][random.integers(4)]


def _memory_error(run):
    rate = int(run.random.choice([3, 30, 300, 1000]))
    for _ in range(2):
        run.around((rate, rate))
        if run.random.random() < 0.5:
            run.compress(run.job(), "memory error")
        else:
            run.decompress(run.job(), "memory error")
    run.around()


def _soft_reset(run):
    run.around()
    job, back = run.job(), run.random.random() < 0.5
    cycles = int(run.random.integers(1, int(run.random.choice([3, 200, 600, 3000]))))
    run.note(f"soft reset {cycles} cycles after the start, {'de' * back}compress {job}")
    world = run.session.world
    run.count("soft reset" if run.session.give_up(job, back, cycles) else "soft reset behind the end")
    if back and not world.begun and not world.sent:  # its frame is for the next tensor
        run.around()
        run.decompress(job, "frame kept over a soft reset", sent=True)


def _hard_reset(run):
    run.around()
    job, back = run.job(), run.random.random() < 0.5
    cycles = int(run.random.integers(1, 1000))
    run.note(f"rst {cycles} cycles after the start, {'de' * back}compress {job}")
    run.session.cut_off(job, back, cycles)
    run.count("hard reset")


def _refused(run):
    """A descriptor that cannot be: nothing moves."""
    run.around()
    job = run.job()
    view, width = job.view, run.accelerator.address_width
    top = 1 << width
    good = {"mode": job.lane.code, "decompress": int(run.random.integers(2)), "base": job.address,
            "rows": view.rows, "width": view.width, "stride": job.stride, "height": view.height,
            "channels": view.channels, "scales": job.table}
    size = (view.rows - 1) * job.stride + 4 * view.width
    bad = [{name: 0} for name in ("rows", "width", "height", "channels")]
    bad += [{"stride": 4 * view.width - 4}, {"stride": job.stride + 2}, {"base": job.address + 2},
            {"base": top - size + 4}, {"width": 1 << 24, "stride": 1 << 26}, {"rows": 1 << 31}]
    if job.lane.scaled:
        bad += [{"scales": job.table + 4}, {"scales": top - 32, "channels": view.channels + 8}]
    if job.lane.tiled:
        bad += [{"rows": 7}, {"width": 7}]
    if job.lane.format.endless:
        bad += [{"settings": step} for step in (0, 0x8000, 0xFFFF)]
    code = ErrorCode.DESCRIPTOR
    if run.random.random() < 0.2:
        known = [mode.code for mode in lane_modes(*run.accelerator.modes)]
        bad, code = [{"mode": k} for k in range(8) if k not in known], ErrorCode.MODE
    change = bad[run.random.integers(len(bad))]
    run.note(f"refuse {change} of {good}")
    run.session.refuse(job.lane, {**good, **change}, code)
    run.count("refused", code)


def _locked(run):
    """A host that writes what it must not while a tensor is under way."""
    run.around()
    run.session.meddles = True
    run.decompress(run.job()) if run.random.random() < 0.5 else run.compress(run.job())
    run.session.meddles = False
    run.count("locked")


FAULTS = {"mutated": (0.35, _mutated), "soft reset": (0.25, _soft_reset), "memory error": (0.2, _memory_error),
          "refused": (0.1, _refused), "hard reset": (0.05, _hard_reset), "locked": (0.05, _locked)}


def run(accelerator, seed, log=None):
    """Runs it; the counts. What it does is appended to ``log``. Raises AssertionError where something is not right."""
    one = Run(accelerator, seed)
    one.log = one.log if log is None else log
    one.go()
    one.counts["cycles"] = one.session.world.cycle
    one.counts["runs"] = 1
    return one.counts
