"""What passes Widen and Narrow without a change: a test for both of them."""

import numpy as np

from actcodec.rtl.offload.memory.formats import Format
from tb.harness import Bench, pack, rng, unpack

__all__ = ["codes_pass", "float32_passes"]


async def codes_pass(dut, plain, latency, sectors, width):
    """Every code in every lane, whatever is above: ``sectors`` makes sectors of codes; of a result each has the low
    byte of eight words of ``width`` bits."""
    random = rng()
    bench = Bench(dut)
    await bench.start()
    dut.format.value, dut.plain.value = Format.INT8.value, plain
    for lane in range(8):
        codes = np.roll(np.arange(256, dtype=np.uint8), lane)
        count = codes.size // 8
        run = await bench.run({"i": sectors(random, codes)}, {"o": count}, random)
        got = np.ravel([unpack(sector, width, 256 // width)[:8] for sector in run["o"]])
        bench.equal(got & 255, codes, f"plain={plain}")
        assert run.cycles["o"] == list(range(latency, latency + count))


async def float32_passes(dut, plain):
    random = rng()
    bench = Bench(dut)
    await bench.start()
    dut.format.value, dut.plain.value = Format.FLOAT32.value, plain
    stream = [pack(sector, 32) for sector in random.integers(0, 1 << 32, (500, 8))]
    run = await bench.run({"i": stream}, {"o": len(stream)}, random, "half", "half")
    bench.equal(run["o"], stream, "float32")
