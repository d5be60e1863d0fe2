"""What the benches of SSDC's two directions share: a driver for each, and the tests that need no more."""

import cocotb
import numpy as np
from cocotb.triggers import FallingEdge

from actcodec.golden.gist import ssdc
from tb.gist.ssdc import ARRAYS, ROW, activations, around, beats, encoded, masked, varied
from tb.harness import SEED, Bench, pack, parameters, rng, sectors


class Encoder(Bench):
    """Encodes tensors and compares the arrays."""

    async def tensor(self, words, random, idle="never", stall="never"):
        expected = beats(encoded(words))
        run = await self.run({"i": sectors(words)}, {port: len(expected[port]) for port in ARRAYS}, random, idle, stall)
        for port in ARRAYS:
            self.equal(run[port], expected[port], f"{port} of {len(words)}")
            assert getattr(self.dut, f"{port}__valid").value == 0
        return run


class Decoder(Bench):
    """Decodes arrays and compares the tensor and the errors."""

    async def tensor(self, words, random, idle="never", stall="never"):
        """Those of a tensor, which are good."""
        arrays = encoded(words)
        expected, error = lenient(arrays, len(words))
        assert not any(error)
        golden = ssdc.decode(arrays._replace(values=arrays.values.view(np.float32)), len(words))
        assert expected.tolist() == golden.view(np.uint32).tolist()
        return await self.arrays(arrays, len(words), random, idle, stall)

    async def arrays(self, arrays, length, random, idle="never", stall="never"):
        """Any, good or bad."""
        expected, error = lenient(arrays, length)
        sources = {"length": [length], **beats(arrays)}
        run = await self.run(sources, {"o": max(-(-length // 8), 1)}, random, idle, stall)
        self.equal(run["o"], sectors(expected), f"{length} words")
        limit = 200
        while not self.dut.length__ready.value:
            await FallingEdge(self.clk)
            limit -= 1
            assert limit, "the tensor does not come to an end"
        actual = int(self.dut.error.value)
        assert actual == pack(error, 1), f"SEED={SEED} {length} words: expected {error}, got {actual:04b}"
        assert self.dut.o__valid.value == 0
        return run


def lenient(arrays, length):
    """What the decoder makes of any arrays: words, and errors as (count, column, short, excess)."""
    values, columns = arrays.values.tolist(), arrays.columns.tolist()
    counts = arrays.counts.tobytes()
    words, error = np.zeros(length, np.uint32), np.zeros(4, bool)
    used, done, stop, lost = 0, 0, 0, False
    for first in range(0, length, ROW):
        width = min(ROW, length - first)
        row, counts = counts[:2], counts[2:]
        if not lost:
            count = int.from_bytes(row, "little")
            short, large = len(row) < 2, len(row) == 2 and count > width
            error |= [large, False, short, False]
            lost, stop = short or large, stop + count
        for start in range(0, width, 8):
            if lost:
                break
            end = start + 8 >= width
            window = range(done, min(stop, done // 8 * 8 + 16))
            missing = any(k >= len(columns) for k in window)
            bad = any(columns[k] <= columns[k - 1] for k in window if done < k < len(columns))
            match = [k for k in window if (columns[k] if k < len(columns) else 0) // 8 == start // 8]
            if end and first + ROW >= length:
                bad |= any(k not in match or columns[k] >= width for k in window if k < len(columns))
            error |= [False, bad, missing, False]
            lost = bad or missing
            if not lost:
                for k in match:
                    words[first + columns[k]] = values[used] if used < len(values) else 0
                    error[2] |= used >= len(values)
                    used += 1
                done += len(match)
    error[3] = not lost and (used < len(values) or done < len(columns) or len(counts) > 0)
    return words, tuple(map(bool, error))


async def started(dut):
    """The driver of the test's direction."""
    return await {"encode": Encoder, "decode": Decoder}[parameters()["way"]].started(dut)


@cocotb.test
async def handles_every_length_and_density(dut):
    random = rng()
    bench = await started(dut)
    for words in varied(random):
        await bench.tensor(words, random)


@cocotb.test
async def handles_a_single_value_at_each_position(dut):
    """And a single zero."""
    random = rng()
    bench = await started(dut)
    for words in around(random):
        await bench.tensor(words, random)


@cocotb.test
async def handles_every_mask_of_a_sector(dut):
    random = rng()
    bench = await started(dut)
    await bench.tensor(masked(random), random)


@cocotb.test
async def passes_real_activations(dut):
    random = rng()
    bench = await started(dut)
    for words in activations():
        await bench.tensor(words, random)
