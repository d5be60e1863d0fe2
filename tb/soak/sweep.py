"""Tensors of every class of row, in all modes and both directions, on memory that serves all lanes in order."""

from itertools import product

import numpy as np

from actcodec.codecs import lane_modes
from actcodec.sim.environment import MemoryBehaviour
from tb.offload.draws import descriptor
from tb.offload.jobs import Job
from tb.soak.session import Session

__all__ = ["KINDS", "PLACES", "jobs", "sweep"]

# No pauses, four cycles of latency, an address a cycle. Regions of the crossbar alternate.
KINDS = {"shared": MemoryBehaviour(kind=1), "crossbar": MemoryBehaviour(kind=2, region=12)}
WIDTHS = (8, 9, 13, 16, 17, 20, 24, 25, 28, 32, 33, 40)
# Width, rows, first address, bytes between rows: rows that begin with a beat, within one, and with gaps between them.
PLACES = [(33, 64, 0x4000, 0), (40, 72, 0x4FE4, 12)] + [
    (width, 40 + 8 * (width % 3), address, gap) for width in WIDTHS for address, gap in
    ((0x4000, 0), (0x4F9C, 0), (0x4000 + 4 * width % 32, 4 * width % 36))]


def jobs(modes, cdus):
    """All of it: pairs of a job and whether it is decompression."""
    for number, ((width, rows, address, gap), mode) in enumerate(product(PLACES, modes)):
        random, (lane,) = np.random.default_rng(number), lane_modes(mode)
        height = rows // 2 if lane.format.kind != "segment" else rows
        job = Job.draw(random, descriptor(random, lane, cdus, (rows, width, height, 2))).at(address, 4 * width + gap)
        yield from ((job, False), (job, True))


def sweep(accelerator, kind, every=1, first=0):
    """Runs every so-and-so-many-th of them, each in an environment of its own; those that broke, with what is wrong."""
    broken = []
    for number, (job, back) in enumerate(jobs(accelerator.modes, accelerator.cdus)):
        if number % every != first % every:
            continue
        session = Session(accelerator, np.random.default_rng(number))
        session.environment.begin(KINDS[kind])
        try:
            (session.decompress if back else session.compress)(job)
        except AssertionError as error:
            broken.append(f"{'de' * back}compress {job}: {error}")
    return broken
