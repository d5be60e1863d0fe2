"""What the bench of the AXI4-Stream edges sends and sees: frames, beats with lanes that do not count, what passes."""

import cocotb
from cocotb.triggers import RisingEdge
from cocotbext.axi import AxiStreamBus, AxiStreamFrame, AxiStreamSink, AxiStreamSource

from tb.harness import PATTERNS, Bench, chunk


class Watch:
    """Notes in every cycle what passes the flat ports, and checks that an offered beat stays until taken."""

    def __init__(self, dut):
        self.sent, self.received = [], []  # beats of the master; of the slave
        self.passed = 0  # chunks of ``o``
        self.flags = []  # which beats that passed were malformed
        self.times = []  # cycles of beats sent
        self.cycle, self.offer = 0, None
        self.quiet = self.stop = None  # first cycles in which they are high
        self.offer_at_stop = False
        cocotb.start_soon(self._run(dut))

    async def _run(self, dut):
        master, slave = ([getattr(dut, f"{prefix}_axis_{name}") for name in
                          ("tvalid", "tready", "tdata", "tkeep", "tlast")] for prefix in "ms")
        passes = False
        while True:
            await RisingEdge(dut.clk)
            if dut.rst.value == 1:
                self.offer, passes = None, False
                continue
            if dut.stop.value == 1 and self.stop is None:
                self.stop, self.offer_at_stop = self.cycle, self.offer is not None
            valid, ready, *beat = [int(handle.value) for handle in master]
            assert self.offer is None or (valid and beat == self.offer), f"cycle {self.cycle}: an offered beat changed"
            self.offer = beat if valid and not ready else None
            if valid and ready:
                self.sent.append(tuple(beat))
                self.times.append(self.cycle)
            valid, ready, *beat = [int(handle.value) for handle in slave]
            if valid and ready:
                self.received.append(tuple(beat))
            if dut.malformed.value == 1:
                assert passes, f"cycle {self.cycle}: nothing was taken"
                self.flags.append(self.passed - 1)
            passes = dut.o__valid.value == 1 and dut.o__ready.value == 1
            self.passed += passes
            if dut.quiet.value == 1:
                assert dut.stop.value == 1 or self.stop is not None
                self.quiet = self.cycle if self.quiet is None else self.quiet
            self.cycle += 1


async def begin(dut):
    bench = await Bench.started(dut)
    return bench, Watch(dut)


def sink(dut, random, pause):
    result = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis"), dut.clk, dut.rst)
    result.log.setLevel("WARNING")
    result.set_pause_generator(PATTERNS[pause](random))
    return result


def source(dut, random, pause):
    result = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis"), dut.clk, dut.rst)
    result.log.setLevel("WARNING")
    result.set_pause_generator(PATTERNS[pause](random))
    return result


def contents(random, size, count):
    """Bytes of ``count`` frames of any length, and of some that fill their beats, or almost, or just not."""
    near = [k * size + d for k in (1, 2, 3) for d in (-1, 0, 1)]
    lengths = [1, *near, *random.integers(1, 8 * size, count).tolist()]
    random.shuffle(lengths)
    return [random.bytes(length) for length in lengths]


def beat(content, last, size):
    """A chunk as a beat: data, keep, last."""
    return int.from_bytes(content, "little"), (1 << len(content)) - 1, int(last)


def split(content, size):
    """A frame's beats; without bytes, one that is empty."""
    starts = range(0, max(len(content), 1), size)
    return [(content[start : start + size], start == starts[-1]) for start in starts]


def frame_of(beats, size):
    """Beats (data, keep) as cocotbext-axi's frame."""
    return AxiStreamFrame(b"".join(data.to_bytes(size, "little") for data, _ in beats),
                          tkeep=[keep >> k & 1 for _, keep in beats for k in range(size)])


def received(data, keep, last, size):
    """What a beat comes to: its chunk, and whether it is malformed."""
    length = keep.bit_length()
    gaps = keep != (1 << length) - 1
    wrong = gaps or (length < size and not last)
    lanes = bytes(byte if keep >> k & 1 else 0 for k, byte in enumerate(data.to_bytes(size, "little")))
    return chunk(lanes if wrong else lanes[:length], last, size), wrong


def strange(random, size):
    """Beats of a frame, many of them malformed."""
    full, result = (1 << size) - 1, []
    for _ in range(int(random.integers(1, 6))):
        kind = int(random.integers(5))
        length = int(random.integers(size + 1))
        keep = [full, full, (1 << length) - 1, (full >> length << length) & full,
                full & ~(1 << int(random.integers(size)))][kind]
        keep = int(random.integers(1 << size)) if random.random() < 0.2 else keep
        result.append((int.from_bytes(random.bytes(size), "little"), keep))
    return result


def with_last(frame):
    return [(*one, k == len(frame) - 1) for k, one in enumerate(frame)]
