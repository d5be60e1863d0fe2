"""A run: an accelerator after reset, some tensors, and what goes wrong with some of them, all of it from one seed."""

from collections import Counter

import numpy as np

from actcodec.codecs import lane_modes
from actcodec.rtl.offload.control import limits
from actcodec.rtl.offload.control.limits import FORMATS
from actcodec.rtl.offload.control.register_map import ErrorCode
from actcodec.sim.environment import KINDS
from tb.offload import draws
from tb.soak import chance
from tb.soak.counts import SLAVE
from tb.soak.frames import MUTATIONS, framed, mutated
from tb.soak.queued import rings
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
            if self.accelerator.queue and self.random.random() < 0.5:
                rings(self)
            else:
                self.well()
            name = str(self.random.choice(names, p=shares / shares.sum()))
            FAULTS[name][1](self)

    # --------------------------------------------------------------------------------------------------------- parts
    def around(self, errors=(0, 0), **behaviour):
        """Memory, streams and host behave in another way."""
        memory, patterns = chance.around(self.session, errors, **behaviour)
        self.shared = KINDS[memory.kind] == "shared"
        self.session.polls = self.random.random() < 0.2
        self.note(f"{memory}, sink, source and host {patterns}")

    def job(self, back=False):
        return chance.job(self.random, self.accelerator, self.origin, back)

    def note(self, text):
        self.log.append(f"cycle {self.session.environment.cycle}: {text}")

    def count(self, name, code=None):
        self.counts[name] += 1
        self.ended([] if code is None else [code])

    def ended(self, codes):
        """Tensors have ended with these error codes."""
        self.counts["tensors"] += len(codes)
        self.counts[SLAVE] += len(codes) if self.shared else 0
        self.counts.update(f"code {ErrorCode(code).name}" for code in codes)

    def compress(self, job, name="compressed"):
        self.note(f"compress {job}")
        self.count(name, self.session.compress(job))
        self.counts[f"mode {job.mode.name}"] += 1

    def decompress(self, job, name="decompressed", frame=None, sent=False, lengths=None):
        self.note(f"decompress {job}, frame: {name}" + (f", lengths {lengths}" if lengths else ""))
        self.count(name, self.session.decompress(job, frame, sent, lengths))
        self.counts[f"mode {job.mode.name}"] += 1

    def scan(self, job, name="scanned"):
        self.note(f"scan {job}")
        self.count(name, self.session.scan(job))

    def well(self):
        """A tensor there, back, or both; or it is only scanned."""
        self.around()
        way = self.random.integers(3)
        job = self.job(back=way == 1)
        if way != 1 and job.scan and self.random.random() < 0.3:  # settings to decompress with need not be legal then
            self.scan(job)
        if way != 1:
            self.compress(job)
        if way != 0:
            self.decompress(job)


# --------------------------------------------------------------------------------------------------------- the faults
def _mutated(run):
    for _ in range(int(run.random.integers(1, 4))):
        run.around()
        job = run.job(back=True)
        name = str(run.random.choice(list(MUTATIONS)))
        form = job.mode.format
        if name == "null last" and not (form.head or form.endless) and len(job.payload) % 128:
            continue  # such a payload ends with a full beat
        frame = mutated(job.payload, name, run.random)
        if frame.malformed and run.session.payload == "memory":
            continue  # beats are those of streams
        run.decompress(job, f"mutated: {name}", frame)
        if form.endless:
            again = frame if run.random.random() < 0.5 else None
            run.decompress(job, "mutated: lengths", again, lengths=_lengths(run.random, job.lengths))


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
            job = run.job()
            if job.scan and run.random.random() < 0.3:
                run.scan(job, "memory error")
            else:
                run.compress(job, "memory error")
        else:
            run.decompress(run.job(back=True), "memory error")
    run.around()


def _soft_reset(run):
    run.around()
    back = run.random.random() < 0.5
    job = run.job(back)
    cycles = int(run.random.integers(1, int(run.random.choice([3, 200, 600, 3000]))))
    run.note(f"soft reset {cycles} cycles after the start, {'de' * back}compress {job}")
    environment = run.session.environment
    in_time, _ = run.session.give_up(job, back, cycles)
    run.count("soft reset" if in_time else "soft reset after the end")
    if back and not environment.begun and not environment.sent:  # its frame is for the next tensor
        run.around()
        run.decompress(job, "frame kept over a soft reset", sent=True)


def _hard_reset(run):
    run.around()
    back = run.random.random() < 0.5
    job = run.job(back)
    cycles = int(run.random.integers(1, 1000))
    run.note(f"rst {cycles} cycles after the start, {'de' * back}compress {job}")
    run.session.cut_off(job, back, cycles)
    run.count("hard reset")


def _refused(run):
    """A descriptor or a setting beyond one of its limits: nothing moves, and a frame that waits goes on waiting."""
    run.around()
    random, back = run.random, bool(run.random.integers(2))
    job = run.job(back)
    good = job.registers(back, job.lengths)
    what, values = draws.illegal(random, good, job.mode, run.accelerator.address_width)
    code = ErrorCode.DESCRIPTOR
    if random.random() < 0.1:
        known = [mode.code for mode in lane_modes(*run.accelerator.modes)]
        what, code = "mode", ErrorCode.MODE
        values = good | {"mode": int(random.choice([k for k in range(256) if k not in known]))}
    others = [k for k, name in enumerate(FORMATS) if name not in run.accelerator.formats]
    if len(run.accelerator.formats) > 1 and others and random.random() < 0.1:
        what, code = "format", ErrorCode.FORMAT
        values = good | {"format": int(random.choice(others))}
    if limits.CODES in run.accelerator.formats and not job.mode.codes and random.random() < 0.1:
        what, code = "format", ErrorCode.DESCRIPTOR
        values = good | {"format": FORMATS.index(limits.CODES)}
    run.note(f"refuse {what} { {name: value for name, value in values.items() if value != good[name]} } of {job}")
    waits = random.random() < 0.5 and run.session.payload != "memory"
    if waits:
        frame = framed(job.payload, random)
        run.session.environment.send(frame.data, frame.keep, frame.last)
    run.session.refuse(job.mode, values, code)
    run.count("refused", code)
    run.count(f"beyond the limit of {what}")
    if waits:
        run.decompress(job, "frame kept over a refusal", sent=True)


def _locked(run):
    """A host that writes what it must not while a tensor is under way."""
    run.around()
    run.session.meddles = True
    run.decompress(run.job(back=True)) if run.random.random() < 0.5 else run.compress(run.job())
    run.session.meddles = False
    run.count("locked")


FAULTS = {"mutated": (0.35, _mutated), "soft reset": (0.25, _soft_reset), "memory error": (0.2, _memory_error),
          "refused": (0.1, _refused), "hard reset": (0.05, _hard_reset), "locked": (0.05, _locked)}


def run(accelerator, seed, log=None):
    """Runs it; the counts. What it does is appended to ``log``. Raises AssertionError where something is not right."""
    one = Run(accelerator, seed)
    one.log = one.log if log is None else log
    one.go()
    one.counts["cycles"] = one.session.environment.cycle
    one.counts["runs"] = 1
    return one.counts
