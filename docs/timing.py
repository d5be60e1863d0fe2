"""Draws the diagrams of docs/timing.md from simulation: ``python -m docs.timing``.

The accelerator runs in Amaranth's simulator with a memory and a DMA engine that are just lists; what its ports did
becomes a diagram by :mod:`docs.waves`.
"""

import json
from collections import deque
from pathlib import Path

from amaranth.lib.wiring import In
from amaranth.sim import Simulator

from actcodec.codecs import MODES
from actcodec.driver import Driver, Plain, run
from actcodec.rtl.a2dtwp.bitpack import Bitpack
from actcodec.rtl.gist.binarize import Binarize
from actcodec.units import UNITS
from docs.waves import draw, svg

ONE = 0x3F800000  # 1.0, which each word of memory is
LATENCY = 6  # cycles from an address to the first beat, and from the last beat of a burst to its answer
CONTROL = 0x0C


class System:
    """What surrounds an accelerator of one lane. :meth:`run` leaves the ports of each cycle in ``rows``."""

    def __init__(self):
        self.dut = UNITS["accelerator"].build(cdus=1)
        self.names = list(self.dut.signature.members)
        self.inputs = [name for name, member in self.dut.signature.members.items() if member.flow is In]
        self.host, self.reads, self.answers, self.frame = deque(), deque(), deque(), deque()
        self.sent, self.marks = [False, False], {}
        self.rows, self.shy, self.waited = [], 2, 0  # cycles in which the DMA engine lets a beat wait, and has

    def write(self, address, value):
        """The driver's bus."""
        self.host.append((address, value))

    def describe(self, mode, rows, width, decompress=0):
        driver = Driver(Plain(self), None)
        run(driver.put(mode=MODES[mode].code, decompress=decompress))
        run(driver.put(rows=rows, width=width, stride=4 * width, height=rows, channels=1, base=0x4000, scales=0x8000,
                       done_enable=1))
        run(driver.put(done_pending=1, error_pending=1))

    def _offer(self):
        """The inputs of this cycle."""
        now = len(self.rows)
        drive = dict.fromkeys(self.inputs, 0)
        drive |= {"s_axil_bready": 1, "s_axil_rready": 1, "m_axi_0_arready": 1, "m_axi_0_awready": 1,
                  "m_axi_0_wready": 1, "m_axis_tready": int(self.waited >= self.shy)}
        if self.host:
            address, value = self.host[0]
            drive |= {"s_axil_awaddr": address, "s_axil_awvalid": int(not self.sent[0]), "s_axil_wdata": value,
                      "s_axil_wstrb": 15, "s_axil_wvalid": int(not self.sent[1])}
        if self.reads and self.reads[0][0] <= now:
            drive |= {"m_axi_0_rvalid": 1, "m_axi_0_rlast": self.reads[0][1],
                      "m_axi_0_rdata": sum(ONE << 32 * k for k in range(8))}
        if self.answers and self.answers[0] <= now:
            drive |= {"m_axi_0_bvalid": 1}
        if self.frame:
            keep, last = self.frame[0]
            drive |= {"s_axis_tvalid": 1, "s_axis_tkeep": (1 << keep) - 1, "s_axis_tlast": last}
        return drive

    def _see(self, row):
        """What has passed in this cycle."""
        def passes(prefix):
            return row[f"{prefix}valid"] and row[f"{prefix}ready"]

        now = len(self.rows)
        self.sent = [sent or bool(passes(f"s_axil_{channel}"))
                     for sent, channel in zip(self.sent, ("aw", "w"), strict=True)]
        if passes("s_axil_b"):
            self.host.popleft()
            self.sent = [False, False]
        if passes("m_axi_0_r"):
            self.reads.popleft()
        if passes("m_axi_0_ar"):
            self.reads += [(now + LATENCY, k == row["m_axi_0_arlen"]) for k in range(row["m_axi_0_arlen"] + 1)]
        if passes("m_axi_0_b"):
            self.answers.popleft()
        if passes("m_axi_0_w") and row["m_axi_0_wlast"]:
            self.answers.append(now + LATENCY)
        if passes("s_axis_t"):
            self.frame.popleft()
        self.waited = self.waited + 1 if row["m_axis_tvalid"] and not row["m_axis_tready"] else 0

    def run(self, story):
        """``story`` is a generator that says what happens; it goes on after each cycle, with its ports."""
        simulator, story = Simulator(self.dut), story(self)

        async def bench(ctx):
            next(story)
            while True:
                for name, value in self._offer().items():
                    ctx.set(getattr(self.dut, name), value)
                row = {name: ctx.get(getattr(self.dut, name)) for name in self.names}
                row["busy"] = ctx.get(self.dut._registers.status.busy)  # in STATUS
                self.rows.append(row)
                self._see(row)
                try:
                    story.send(row)
                except StopIteration:
                    return
                await ctx.tick()

        simulator.add_clock(1e-9)
        simulator.add_testbench(bench)
        simulator.run()


def story(system):
    """Compresses, decompresses, and gives a tensor up; the cycles of interest are in ``system.marks``."""
    marks = system.marks

    def until(happens):
        while not happens((yield)):
            pass

    def started():
        yield from until(lambda row: row["s_axil_awvalid"] and row["s_axil_awaddr"] == CONTROL)
        return len(system.rows) - 1

    def ended():
        yield from until(lambda row: row["interrupt"])
        return len(system.rows) - 1

    yield
    system.describe("sfpr", 40, 8)
    system.write(CONTROL, 1)
    marks["compress"] = yield from started()
    marks["compressed"] = yield from ended()
    system.describe("sfpr", 40, 8, decompress=1)
    system.write(CONTROL, 1)
    system.frame += [(128, 0), (128, 0), (64, 1)]
    marks["decompress"] = yield from started()
    marks["decompressed"] = yield from ended()
    system.describe("sfpr", 320, 8)
    system.shy = 0
    system.write(CONTROL, 1)
    yield from started()
    yield from until(lambda row: row["m_axis_tvalid"])
    yield from until(lambda row: row["m_axis_tvalid"])
    system.write(CONTROL, 2)
    marks["reset"] = yield from started()
    for _ in range(30):
        yield


def alone(dut, beats, shown, idle, stall, cycles):
    """The ports of a unit with streams ``i`` and ``o``, cycle by cycle, with pauses at both in these cycles. ``beats``
    are what comes in: what it is called, and the fields of its payload; ``shown`` calls what goes out by its name."""
    rows, beats = [], deque(beats)

    async def bench(ctx):
        for cycle in range(cycles):
            valid = bool(beats) and cycle not in idle
            ctx.set(dut.i.valid, valid)
            for field, value in beats[0][1].items() if valid else ():
                ctx.set(getattr(dut.i.payload, field), value)
            ctx.set(dut.o.ready, cycle not in stall)
            rows.append({
                "i__valid": ctx.get(dut.i.valid), "i__ready": ctx.get(dut.i.ready),
                "i__payload": beats[0][0] if beats else "",
                "o__valid": ctx.get(dut.o.valid), "o__ready": ctx.get(dut.o.ready),
                "o__payload": shown(ctx, dut.o.payload)})
            if valid and rows[-1]["i__ready"]:
                beats.popleft()
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-9)
    simulator.add_testbench(bench)
    simulator.run()
    return rows


def binarize():
    """Binarize: a bit for each positive value."""
    sectors = (0x01, 0x80, 0xFF, 0x3C)
    beats = [(f"sector {k}", {"data": [ONE * (bits >> n & 1) for n in range(8)], "last": k == len(sectors)})
             for k, bits in enumerate(sectors, 1)]
    return alone(Binarize(), beats, lambda ctx, payload: f"{ctx.get(payload.bits):#04x}", (0, 3), (5, 6), 11)


def bitpack():
    """Bitpack to one byte of each value, which needs four sectors for one."""
    beats = [(f"{k}", {"data": [k << 24] * 8, "count": 8, "last": k == 6}) for k in range(1, 7)]
    return alone(Bitpack(), beats, lambda ctx, payload: f"{ctx.get(payload.count)} B", (0, 3), (7,), 12)


def diagrams():
    """WaveJSON by the names of the diagrams."""
    system = System()
    system.run(story)
    rows, marks = system.rows, system.marks

    def first(name, start):
        return next(k for k in range(start, len(rows)) if rows[k][name])

    def last(name, stop):
        return next(k for k in range(stop, 0, -1) if rows[k][name])

    start, back, reset = marks["compress"], marks["decompress"], marks["reset"]
    read, write, frame = first("m_axi_0_arvalid", start), first("m_axi_0_awvalid", back), first("m_axis_tvalid", start)
    return {
        "start": draw("Start over AXI4-Lite", rows[start - 1 : read + 3],
                      {"s_axil_aw": ["addr"], "s_axil_w": ["data"], "s_axil_b": ["resp"], "m_axi_0_ar": ["addr"]},
                      ["busy"]),
        "read": draw("Reads: a line of scales, then the tensor", rows[read - 1 : read + 21],
                     {"m_axi_0_ar": ["addr", "len"], "m_axi_0_r": ["last"]}),
        "write": draw("Writes", rows[write - 1 : write + 26],
                      {"m_axi_0_aw": ["addr", "len"], "m_axi_0_w": ["strb", "last"], "m_axi_0_b": ["resp"]}),
        "sent": draw("A frame of 320 bytes, and the interrupt", rows[frame - 1 : marks["compressed"] + 2],
                     {"m_axis_t": ["keep", "last"]}, ["interrupt"], 8),
        "received": draw("A frame that waited for its start",
                         rows[back - 2 : last("s_axis_tvalid", marks["decompressed"]) + 3],
                         {"s_axil_aw": ["addr"], "s_axis_t": ["keep", "last"]}, ["busy"]),
        "reset": draw("Soft reset", rows[reset - 2 : reset + 34],
                      {"s_axil_w": ["data"], "m_axi_0_ar": ["len"], "m_axi_0_r": ["last"],
                       "m_axis_t": ["keep", "last"]}, ["busy"]),
        "unit": draw("A unit: Binarize", binarize(), {"i__": ["payload"], "o__": ["payload"]}),
        "bitpack": draw("Bitpack, one byte of each value", bitpack(), {"i__": ["payload"], "o__": ["payload"]}),
    }


def main():
    folder = Path(__file__).with_name("timing")
    folder.mkdir(exist_ok=True)
    for name, wave in diagrams().items():
        text = json.dumps(wave, indent=1) + "\n"
        (folder / f"{name}.json").write_text(text)
        (folder / f"{name}.svg").write_text(svg(text))


if __name__ == "__main__":
    main()
