"""Bench of SSDC's decoder: restored tensors are golden's, at a sector a cycle, and bad arrays are told of."""

import cocotb
import numpy as np

from actcodec.golden.gist import ssdc
from actcodec.rtl.gist.ssdc_decode import SsdcDecode
from tb.gist.ssdc import ARRAYS, ROW, beats, dense, encoded, shuffled, sparse
from tb.gist.ssdc_ways import (  # noqa: F401 - tests that both directions have
    Decoder,
    handles_a_single_value_at_each_position,
    handles_every_length_and_density,
    handles_every_mask_of_a_sector,
    lenient,
    passes_real_activations,
)
from tb.harness import PATTERNS, SEED, STALLS, after, chunks, rng, sectors, simulate


def test_ssdc_decode():
    simulate(SsdcDecode(), __file__, way="decode")


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def equals_golden_whatever_the_ports_do(dut, idle, stall):
    random = rng()
    bench = await Decoder.started(dut)
    for length in (1, 300, 1500):
        await bench.tensor(sparse(random, length), random, idle, stall)
        await bench.tensor(sparse(random, length), random, shuffled(random, list(PATTERNS), ARRAYS), stall)


@cocotb.test
async def waits_for_each_array_on_its_own(dut):
    random = rng()
    bench = await Decoder.started(dut)
    for port in ("length", *ARRAYS):
        for idle in ("mostly", "bursts"):
            await bench.tensor(sparse(random, 20 * ROW + 5, 0.9), random, {port: idle})


@cocotb.test
async def gives_a_sector_every_cycle(dut):
    random = rng()
    bench = await Decoder.started(dut)
    count = 32 * 40
    for words in (dense(random, 8 * count), sparse(random, 8 * count), np.zeros(8 * count, np.uint32)):
        run = await bench.tensor(words, random)
        assert run.cycles["length"] == [0]
        assert run.cycles["o"] == list(range(6, 6 + count))


@cocotb.test
async def knows_lengths_that_are_powers_of_two(dut):
    """With one bit set, up to what is simulated in a second."""
    random = rng()
    bench = await Decoder.started(dut)
    for bit in range(17):
        await bench.tensor(sparse(random, 1 << bit, 0.02), random)


@cocotb.test
async def takes_the_next_tensor_soon(dut):
    random = rng()
    bench = await Decoder.started(dut)
    tensors = [sparse(random, 8 * int(random.integers(40, 80))) for _ in range(10)]
    run = await queue(bench, [(encoded(words), len(words)) for words in tensors], random)
    sizes = np.array([len(words) // 8 for words in tensors])
    assert (np.diff(run.cycles["length"]) - sizes[:-1]).tolist() == [7] * 9


async def queue(bench, tensors, random, idle="never", stall="never"):
    """Decodes tensors of (arrays, length) one behind the other."""
    sources = {"length": [length for _, length in tensors],
               **{port: [beat for arrays, _ in tensors for beat in beats(arrays)[port]] for port in ARRAYS}}
    expected = [beat for arrays, length in tensors for beat in sectors(lenient(arrays, length)[0])]
    run = await bench.run(sources, {"o": len(expected)}, random, idle, stall)
    bench.equal(run["o"], expected, f"{len(tensors)} tensors")
    return run


def spoiled(random, arrays, length):
    """Arrays of a tensor with a fault, one example of each kind: yields its name, arrays, and errors (count, column,
    short, excess)."""
    rows = len(arrays.counts)
    starts = np.cumsum(arrays.counts) - arrays.counts
    ends = starts + arrays.counts
    last = length - ROW * (rows - 1)  # values of the last row
    count, column, short, excess = np.eye(4, dtype=int).tolist()

    def changed(name, index, value):
        array = getattr(arrays, name).copy()
        array[index] = value
        return arrays._replace(**{name: array})

    row = int(random.integers(rows))
    for value in (257, 258, 511, 512, 513, 1 << 15, 65535):
        yield f"a count of {value}", changed("counts", row, value), count
    yield "a count above the last row's values", changed("counts", -1, last + 1), count
    full = np.flatnonzero(arrays.counts >= 2)
    for row in random.permutation(full)[:4]:
        at = int(random.integers(starts[row] + 1, ends[row]))
        before, here = arrays.columns[at - 1 : at + 1]
        yield "a column twice", changed("columns", at, before), column
        yield "columns swapped", changed("columns", [at - 1, at], [here, before]), column
        yield "a column that falls", changed("columns", at, int(random.integers(before + 1))), column
    if arrays.counts[-1] and last < ROW:
        for value in (last, last | 7, min(last + 8, 255), 255):
            if value >= last:
                yield f"column {value} in a last row of {last}", changed("columns", -1, value), column
        yield "a count too large above a column beyond the row", changed("columns", -1, last)._replace(
            counts=changed("counts", -1, 300).counts), count
    total, size = len(arrays.columns), 2 * rows
    for cut in {1, total, int(random.integers(1, total + 1))}:
        yield f"{cut} columns less", arrays._replace(columns=arrays.columns[: total - cut]), short
        yield f"{cut} values less", arrays._replace(values=arrays.values[: total - cut]), short
    for cut in {1, 2, size, int(random.integers(1, size + 1))}:
        yield f"{cut} bytes of counts less", arrays._replace(counts=arrays.counts.view(np.uint8)[: size - cut]), short
    for more in (1, 2, 7, 8, 9, 31, 32, 33, 100):
        extra = random.integers(0, 256, more, np.uint8)
        yield f"{more} columns more", arrays._replace(columns=np.append(arrays.columns, extra)), excess
        yield f"{more} values more", arrays._replace(values=np.append(arrays.values, extra.astype(np.uint32))), excess
        yield f"{more} bytes of counts more", arrays._replace(
            counts=np.append(arrays.counts.view(np.uint8), extra)), excess
    for row in random.permutation(full)[:2]:
        yield "a count too low", changed("counts", row, arrays.counts[row] - 1), None
    for row in random.permutation(np.flatnonzero(arrays.counts < ROW - 1))[:2]:
        yield "a count too high", changed("counts", row, arrays.counts[row] + 1), None


@cocotb.test
@cocotb.parametrize(idle=["never", "bursts"], stall=["never", "half"])
async def tells_what_is_wrong_and_recovers(dut, idle, stall):
    """A good tensor follows each bad one."""
    random = rng()
    bench = await Decoder.started(dut)
    seen = set()
    for length, density in ((3, 1), (300, 0.5), (700, None), (1000, 1), (1024, 0.1)):
        arrays = encoded(sparse(random, length, density))
        for name, bad, kind in spoiled(random, arrays, length):
            error = lenient(bad, length)[1]
            assert any(error) and (kind is None or list(error) == kind), f"SEED={SEED} {name}: {error}"
            await bench.arrays(bad, length, random, idle, stall)
            good = sparse(random, int(random.integers(1, 40)))
            assert (await bench.tensor(good, random)).cycles["length"] == [0]
            seen.add((name.lstrip("0123456789 "), error))
    assert len(seen) > 20


@cocotb.test
async def tells_all_that_is_wrong_with_a_tensor(dut):
    """Missing values alone do not end a tensor: what else may be wrong with it comes on top."""
    random = rng()
    bench = await Decoder.started(dut)
    for _ in range(10):
        length = int(random.integers(ROW + 2, 4 * ROW))
        good = encoded(dense(random, length))
        less = good._replace(values=good.values[: int(random.integers(ROW // 2))])
        twice, large = good.columns.copy(), good.counts.copy()
        twice[-1], large[-1] = twice[-2], 300
        for bad, error in (
                (good, (0, 0, 0, 0)), (less, (0, 0, 1, 0)),
                (good._replace(counts=large), (1, 0, 0, 0)), (less._replace(counts=large), (1, 0, 1, 0)),
                (good._replace(columns=twice), (0, 1, 0, 0)), (less._replace(columns=twice), (0, 1, 1, 0)),
                (good._replace(columns=np.append(good.columns, np.uint8(7))), (0, 0, 0, 1)),
                (less._replace(columns=np.append(good.columns, np.uint8(7))), (0, 0, 1, 1))):
            assert lenient(bad, length)[1] == error
            await bench.arrays(bad, length, random)


@cocotb.test
async def tells_of_a_column_that_falls_at_any_place(dut):
    random = rng()
    bench = await Decoder.started(dut)
    length = 40
    arrays = encoded(dense(random, length))
    for at in range(1, length):
        columns = arrays.columns.copy()
        columns[at] = columns[at - 1]
        bad = arrays._replace(columns=columns)
        assert lenient(bad, length)[1] == (0, 1, 0, 0), f"SEED={SEED}: column {at}"
        await bench.arrays(bad, length, random)


@cocotb.test
@cocotb.parametrize(idle=["never", "half"])
async def survives_garbage(dut, idle):
    """Arrays of random bytes and lengths; or good ones in which a few bytes are."""
    random = rng()
    bench = await Decoder.started(dut)
    errors = set()
    for turn in range(150):
        length = int(random.integers(1, 1200))
        if turn % 3:
            arrays = encoded(sparse(random, length))
            for name in ("columns", "counts"):
                content = getattr(arrays, name).view(np.uint8).copy()
                if content.size:
                    content[random.integers(0, content.size, turn % 3)] = random.integers(0, 256)
                arrays = arrays._replace(**{name: content})
            if turn % 2:
                arrays = arrays._replace(values=dense(random, int(random.integers(0, 300))))
        else:
            sizes = random.integers(0, 100, 3)
            length = int(random.integers(1, 400))
            arrays = ssdc.Encoded(dense(random, sizes[0]), np.sort(random.integers(0, 256, sizes[1])).astype(np.uint8),
                                  random.integers(0, 20, sizes[2]).astype(np.uint8))
        errors.add(lenient(arrays, length)[1])
        await bench.arrays(arrays, length, random, idle)
    assert len(errors) >= 4  # the test above has all eight; here the rare ones need luck


@cocotb.test
@cocotb.parametrize(idle=["never", "half", "bursts"], stall=["never", "half", "shy"])
async def keeps_tensors_apart(dut, idle, stall):
    """Good and bad tensors directly one behind the other, each port at its own pace."""
    random = rng()
    bench = await Decoder.started(dut)
    tensors = []
    for length in (40, 300, 600):
        arrays = encoded(sparse(random, length, 0.5))
        tensors += [(bad, length) for _, bad, _ in spoiled(random, arrays, length)] + [(arrays, length)]
    tensors = [tensors[k] for k in random.permutation(len(tensors))[:40]]
    await queue(bench, tensors, random, shuffled(random, [idle, "never", "seldom"], ("length", *ARRAYS)), stall)


@cocotb.test
async def takes_arrays_that_end_with_an_empty_word(dut):
    random = rng()
    bench = await Decoder.started(dut)
    words = dense(random, 16 * ROW)
    arrays = encoded(words)
    sources = {"values": sectors(arrays.values, empty=True)}
    for port in ("columns", "counts"):
        full = chunks(getattr(arrays, port).tobytes(), 32)
        sources[port] = [beat & ~(1 << 262) for beat in full] + [1 << 262]
    for _ in range(2):
        run = await bench.run({"length": [len(words)], **sources}, {"o": 512}, random, stall="seldom")
        bench.equal(run["o"], sectors(words), "words")
        await cocotb.triggers.ClockCycles(bench.clk, 9)
        assert (dut.length__ready.value, int(dut.error.value)) == (1, 0)


@cocotb.test
async def forgets_everything_at_reset(dut):
    random = rng()
    bench = await Decoder.started(dut)
    for fill in range(1, 80, 5):
        words = sparse(random, 1000)
        sources = {"length": [1000], **beats(encoded(words))}
        await bench.run(sources, {"o": None}, random, until=after(fill))
        await bench.reset()
        assert (dut.o__valid.value, dut.length__ready.value, int(dut.error.value)) == (0, 1, 0)
        await bench.tensor(sparse(random, 300), random)
