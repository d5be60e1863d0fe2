"""Frames for ``s_axis``, good ones and bad ones, and what the accelerator has to make of them."""

from dataclasses import dataclass

import numpy as np

from actcodec.golden.offload import blocks
from actcodec.golden.offload.wire.stream import PACKET, order
from actcodec.rtl.offload.control.register_map import ErrorCode

__all__ = ["MUTATIONS", "Frame", "expected", "framed", "mutated"]


@dataclass(frozen=True, eq=False)
class Frame:
    """Beats: bytes and which of them count, uint8 [beats, 128]; the last one has ``tlast``."""

    data: np.ndarray
    keep: np.ndarray

    def __len__(self):
        return len(self.data)

    @property
    def last(self):
        return np.arange(len(self)) == len(self) - 1

    @property
    def malformed(self):
        """Whether a beat's bytes have gaps, do not begin in lane 0, or do not fill a beat that is not the last."""
        gaps = np.any(self.keep[:, 1:] > self.keep[:, :-1])
        return bool(gaps or not np.all(self.keep[:-1]))

    @property
    def bytes(self):
        """What they stand for: all lanes of a malformed beat, zeros where they do not count."""
        counts = self.keep.copy()
        counts[:-1] = 1
        if np.any(self.keep[-1, 1:] > self.keep[-1, :-1]):
            counts[-1] = 1
        return np.where(self.keep, self.data, 0)[counts.astype(bool)]


def expected(frame, job, lengths=(), granule=1):
    """What decompression of a frame in place of a job's, with these ``lengths`` of streams, may end with: error codes,
    the rows that memory gets, and which of their values are sure. Of streams all are, however damaged. Of blocks those
    are not in which a frame ended too soon; nor is anything of counted ones that are not as they were, whose damage is
    the matter of their coders' benches. Less than a ``granule`` of bytes that are too many may go unseen."""
    stream, d = frame.bytes, job.descriptor
    if d.mode.format.endless:
        rows, code = d.restore(stream.tobytes(), lengths)
        return {ErrorCode.BEAT if frame.malformed else code}, rows, np.ones(rows.shape, bool)
    if d.mode.format.counted:
        good = stream.tobytes() == job.payload
        codes = {ErrorCode.NONE} if good else {ErrorCode.NONE, ErrorCode.SHORT, ErrorCode.EXCESS, ErrorCode.BLOCK}
        rows = d.decompress(job.payload, job.back)
        return {ErrorCode.BEAT} if frame.malformed else codes, rows, np.full(rows.shape, good)
    sizes = d.block_sizes(stream)
    content = np.zeros(sizes.sum(), np.uint8)
    content[: len(stream)] = stream[: len(content)]
    more = len(stream) - len(content)
    codes = {ErrorCode.BEAT} if frame.malformed else {ErrorCode.SHORT} if more < 0 \
        else {ErrorCode.EXCESS} if more >= granule else {ErrorCode.EXCESS, ErrorCode.NONE} if more \
        else {ErrorCode.NONE}
    ends = np.cumsum(sizes)
    sure = np.ones((d.blocks, 8, 8), np.uint8)
    sure[order(d.blocks, d.cdus)[(ends - sizes < len(stream)) & (len(stream) < ends)]] = 0
    return codes, d.decompress(content.tobytes(), job.back), blocks.join(sure, d.view, d.mode.tiled).astype(bool)


def framed(payload, random):
    """A payload as a frame. Bytes that do not count are random."""
    count = max(1, -(-len(payload) // PACKET))
    data = random.integers(0, 256, count * PACKET, np.uint8)
    data[: len(payload)] = np.frombuffer(payload, np.uint8)
    keep = (np.arange(count * PACKET) < len(payload)).astype(np.uint8)
    return Frame(data.reshape(-1, PACKET), keep.reshape(-1, PACKET))


# Ways to damage a frame: name -> function of a payload (uint8) and a generator that gives a payload or a frame.
def _flip(payload, random):
    payload = payload.copy()
    for at in random.integers(0, payload.size, int(random.integers(1, 4))):
        payload[at] ^= 1 << int(random.integers(8))
    return payload


def _cut(payload, random):
    return payload[: int(random.integers(payload.size))]


def _drop(payload, random):
    start, stop = sorted(random.integers(0, payload.size + 1, 2))
    return np.concatenate([payload[:start], payload[stop:]])


def _insert(payload, random):
    more = random.integers(0, 256, int(random.choice([1, 8, 120, 128, 700])), np.uint8)
    at = int(random.choice([0, payload.size, random.integers(payload.size + 1)]))
    return np.concatenate([payload[:at], more, payload[at:]])


def _noise(payload, random):
    return random.integers(0, 256, int(random.integers(1, 2 * payload.size + 1)), np.uint8)


def _null_last(payload, random):
    """A beat without bytes behind a payload, whose last beat has to be full."""
    frame = framed(payload[: payload.size // PACKET * PACKET].tobytes(), random)
    if not np.all(frame.keep):
        return frame  # of an empty payload, it is one of these
    return Frame(np.vstack([frame.data, frame.data[:1]]), np.vstack([frame.keep, np.zeros((1, PACKET), np.uint8)]))


def _null(payload, random):
    """A beat without bytes in front of another one."""
    frame = framed(payload.tobytes(), random)
    at = int(random.integers(len(frame)))
    return Frame(np.insert(frame.data, at, 0, axis=0), np.insert(frame.keep, at, 0, axis=0))


def _holes(payload, random):
    frame = framed(payload.tobytes(), random)
    keep = frame.keep.copy()
    beat = int(random.integers(len(frame)))
    if random.random() < 0.5:
        keep[beat] = random.integers(0, 2, PACKET)
    else:
        keep[beat, int(random.integers(PACKET))] ^= 1
    return Frame(frame.data, keep)


MUTATIONS = {"flip": _flip, "cut": _cut, "drop": _drop, "insert": _insert, "noise": _noise, "null last": _null_last,
             "null": _null, "holes": _holes}


def mutated(payload, name, random):
    """A frame of the ``payload`` (bytes), damaged in that way. It may still be a good one."""
    result = MUTATIONS[name](np.frombuffer(payload, np.uint8), random)
    return result if isinstance(result, Frame) else framed(result.tobytes(), random)
