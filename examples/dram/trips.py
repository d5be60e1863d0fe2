"""Tensors through the accelerator and DDR3, to a payload and back, as golden has them."""

from typing import NamedTuple

import actcodec
from actcodec.bus import run
from actcodec.codecs import find, host_mode

__all__ = ["Trip", "trip"]

TENSOR, PAYLOAD, BACK, SCALES = (k << 24 for k in range(4))  # places in memory
BEAT = 32  # bytes a cycle of the controller's ports
BLOCK = 256  # bytes of 64 values


class Trip(NamedTuple):
    """Bytes of tensor and payload; cycles a block of 64 values, compressing and decompressing, and what memory's port
    could do at best, as both are in the one memory."""

    mode: str
    tensor: int
    payload: int
    compressing: float
    decompressing: float
    least: float


def trip(machine, x, mode, **options):
    """A :class:`Trip` of a tensor, float32, with a mode's ``options``.

    Raises
    ------
    AssertionError
        If payload or tensor are not those of the golden model.
    """
    compressed = actcodec.compress(x, mode, **options)
    stored = find(compressed.mode).model.unpack(compressed)
    options = find(mode).option_values(options)
    options.pop("cdus", None)
    lane, words, settings = find(mode).model.plan(x, "float32", **options)
    job = {"scale_table": SCALES, "settings": settings}
    machine.write(TENSOR, x.tobytes())
    machine.write(BACK, bytes(x.nbytes))
    there = run(machine.driver.compress(TENSOR, x.shape, host_mode(lane).name, scales=words,
                                        payload=(PAYLOAD, 2 * x.nbytes + BLOCK), **job))
    size = there.counters["bytes_out"]
    assert machine.read(PAYLOAD, size) == stored.payload, f"{mode}: the payload is not golden's"
    back = run(machine.driver.decompress(BACK, x.shape, host_mode(lane).name, scales=there.scales,
                                         payload=(PAYLOAD, size), lengths=there.lengths, **job))
    y = actcodec.decompress(compressed)
    assert machine.read(BACK, x.nbytes) == y.tobytes(), f"{mode}: the tensor is not golden's"
    blocks = stored.blocks
    return Trip(mode, x.nbytes, size, there.counters["cycles"] / blocks, back.counters["cycles"] / blocks,
                (x.nbytes + size) / BEAT / blocks)
