"""Bench of SSDC: arrays and restored tensors are golden's, at a sector a cycle, and bad arrays are told of."""

import cocotb
import numpy as np
from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from actcodec.golden.gist import dpr, ssdc
from actcodec.rtl.common import vectors
from actcodec.rtl.common.minifloat import Format
from actcodec.rtl.common.packer import chunk
from actcodec.rtl.gist.dpr import DprDecode, DprEncode
from actcodec.rtl.gist.ssdc import SsdcEncode
from actcodec.rtl.gist.ssdc_decode import Error, SsdcDecode
from tb.harness import PATTERNS, ROOT, SEED, STALLS, Bench, after, chunks, pack, rng, sectors, simulate

ROW = 256
ARRAYS = ("values", "columns", "counts")
CORNERS = [1, 1 << 31 | 1, 0x7F_FFFF, 0x80_0000, 0x3F80_0000, 0x7F7F_FFFF, 0x7F80_0000, 0xFF80_0000, 0x7F80_0001,
           0xFFC0_0000, 0x7FFF_FFFF, 0xFFFF_FFFF]
LENGTHS = [1, 7, 8, 9, 15, 16, 17, 247, 248, 249, 255, 256, 257, 264, 511, 512, 513, 1000, 16 * ROW, 17 * ROW + 3]


def test_encoder():
    simulate(SsdcEncode(), __file__, r"\.encoder_")


def test_decoder():
    simulate(SsdcDecode(), __file__, r"\.decoder_")


class Reduced(wiring.Component):
    """Both directions with DPR behind, or in front of, the values."""

    i: In(stream.Signature(vectors.sectors))
    packed: Out(stream.Signature(chunk(32)))
    columns: Out(stream.Signature(chunk(32)))
    counts: Out(stream.Signature(chunk(32)))
    length: In(stream.Signature(32))
    total: In(stream.Signature(32))
    unpacked: In(stream.Signature(chunk(32)))
    columns_back: In(stream.Signature(chunk(32)))
    counts_back: In(stream.Signature(chunk(32)))
    o: Out(stream.Signature(vectors.sectors))
    error: Out(Error)

    def elaborate(self, platform):
        m = Module()
        m.submodules.there = there = SsdcEncode()
        m.submodules.back = back = SsdcDecode()
        m.submodules.pack = pack = DprEncode((Format.FP8,))
        m.submodules.unpack = unpack = DprDecode((Format.FP8,))
        for source, sink in (
            (wiring.flipped(self.i), there.i), (there.values, pack.i), (pack.o, wiring.flipped(self.packed)),
            (there.columns, wiring.flipped(self.columns)), (there.counts, wiring.flipped(self.counts)),
            (wiring.flipped(self.length), back.length), (wiring.flipped(self.total), unpack.length),
            (wiring.flipped(self.unpacked), unpack.i), (unpack.o, back.values),
            (wiring.flipped(self.columns_back), back.columns), (wiring.flipped(self.counts_back), back.counts),
            (back.o, wiring.flipped(self.o)),
        ):
            wiring.connect(m, source, sink)
        m.d.comb += self.error.eq(back.error)
        return m


def test_values_of_dpr():
    simulate(Reduced(), __file__, r"\.reduced_")


# ---------------------------------------------------------------------------------------------------------- stimuli
def dense(random, length):
    """Words that are not zero: random ones, corner cases, those with one bit set."""
    words = random.integers(0, 2**32, length, np.uint32)
    words = np.where(random.random(length) < 0.2, random.choice(CORNERS, length), words)
    words = np.where(random.random(length) < 0.2, 1 << random.integers(0, 31, length), words).astype(np.uint32)
    return np.where(words << 1 == 0, 1, words).astype(np.uint32)


def sparse(random, length, density=None):
    """Words of which a share is not zero, each row of its own density if None is given; zeros have either sign."""
    density = np.repeat(random.random(-(-length // ROW)), ROW)[:length] if density is None else density
    zeros = random.integers(0, 2, length, np.uint32) << 31
    return np.where(random.random(length) < density, dense(random, length), zeros).astype(np.uint32)


def runs(random, length):
    """Runs of zeros and of others, up to some rows long."""
    lengths = np.round(2 ** random.uniform(0, 11, length)).astype(int)
    flags = np.repeat(np.arange(length) % 2, lengths)[:length]
    return np.where(flags, dense(random, length), 0).astype(np.uint32)


def encoded(words):
    """Golden's arrays, of words."""
    arrays = ssdc.encode(words.view(np.float32))
    return arrays._replace(values=arrays.values.view(np.uint32))


def beats(arrays):
    """Arrays as what goes through the ports named like them."""
    return {"values": sectors(arrays.values), "columns": chunks(arrays.columns.tobytes(), 32),
            "counts": chunks(arrays.counts.tobytes(), 32)}


def shuffled(random, patterns, ports):
    """A pattern for each port, no port with that of another if there are enough."""
    return dict(zip(ports, random.permutation(np.resize(random.permutation(patterns), len(ports))), strict=True))


async def started(dut):
    bench = Bench(dut)
    await bench.start()
    return bench


# ---------------------------------------------------------------------------------------------------------- encoder
async def encode(bench, words, random, idle="never", stall="never"):
    """Encodes a tensor and compares the arrays."""
    expected = beats(encoded(words))
    run = await bench.run({"i": sectors(words)}, {port: len(expected[port]) for port in ARRAYS}, random, idle, stall)
    for port in ARRAYS:
        bench.equal(run[port], expected[port], f"{port} of {len(words)}")
        assert getattr(bench.dut, f"{port}__valid").value == 0
    return run


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def encoder_equals_golden_whatever_the_ports_do(dut, idle, stall):
    random = rng()
    bench = await started(dut)
    for length in (1, 300, 1500):
        await encode(bench, sparse(random, length), random, idle, stall)
        await encode(bench, sparse(random, length), random, idle, shuffled(random, STALLS, ARRAYS))


@cocotb.test
async def encoder_waits_for_each_output_on_its_own(dut):
    """One output rests while the two others are taken at once."""
    random = rng()
    bench = await started(dut)
    for port in ARRAYS:
        for stall in ("mostly", "bursts", "shy"):
            await encode(bench, sparse(random, 20 * ROW + 5, 0.9), random, "never", {port: stall})


@cocotb.test
async def encoder_handles_every_length_and_density(dut):
    random = rng()
    bench = await started(dut)
    await encode(bench, np.zeros(0, np.uint32), random)
    for length in LENGTHS:
        for words in (sparse(random, length), sparse(random, length, 0.02), np.zeros(length, np.uint32),
                      np.full(length, 1 << 31, np.uint32), dense(random, length), runs(random, length)):
            await encode(bench, words, random)


@cocotb.test
async def encoder_handles_a_single_value_at_each_position(dut):
    """And a single zero."""
    random = rng()
    bench = await started(dut)
    for position in range(0, 300, 7):
        words = dense(random, 300)
        await encode(bench, np.where(np.arange(300) == position, 0, words).astype(np.uint32), random)
        await encode(bench, np.where(np.arange(300) == position, words, 0).astype(np.uint32), random)


@cocotb.test
async def encoder_handles_every_mask_of_a_sector(dut):
    random = rng()
    bench = await started(dut)
    masks = np.unpackbits(random.permutation(256).astype(np.uint8)).astype(bool)
    await encode(bench, np.where(masks, dense(random, 2048), 0).astype(np.uint32), random)


@cocotb.test
async def encoder_makes_no_row_of_an_empty_sector(dut):
    """Whole sectors, and the end of the tensor in an empty one behind them."""
    random = rng()
    bench = await started(dut)
    for length in (8, 248, 256, 264, 512):
        words = sparse(random, length)
        expected = beats(encoded(words))
        run = await bench.run({"i": sectors(words, empty=True)}, {port: len(expected[port]) for port in ARRAYS}, random)
        assert run.beats == expected, f"SEED={SEED} {length}"


@cocotb.test
@cocotb.parametrize(idle=["never", "bursts"], stall=["never", "half", "shy"])
async def encoder_keeps_tensors_apart(dut, idle, stall):
    """Directly one behind the other, and nothing in some."""
    random = rng()
    bench = await started(dut)
    tensors = [sparse(random, int(length)) for length in random.permutation([0, 0, *LENGTHS[:-2]])]
    expected = [beats(encoded(words)) for words in tensors]
    expected = {port: [beat for arrays in expected for beat in arrays[port]] for port in ARRAYS}
    run = await bench.run({"i": [beat for words in tensors for beat in sectors(words)]},
                          {port: len(expected[port]) for port in ARRAYS}, random, idle, stall)
    for port in ARRAYS:
        bench.equal(run[port], expected[port], port)


@cocotb.test
async def encoder_compresses_real_activations(dut):
    random = rng()
    bench = await started(dut)
    tensors = np.load(ROOT / "actcodec" / "data" / "resnet20.npz")
    relus = [name for name in tensors if "relu" in name.lower()]
    assert len(relus) >= 2
    for name in relus:
        words = np.ascontiguousarray(tensors[name]).reshape(-1)[:8000].view(np.uint32)
        assert 0.2 < np.count_nonzero(words) / words.size < 0.8
        await encode(bench, words, random)


@cocotb.test
async def encoder_takes_a_sector_every_cycle(dut):
    random = rng()
    bench = await started(dut)
    count = 32 * 32  # two words of row counts
    for words in (dense(random, 8 * count), sparse(random, 8 * count), np.zeros(8 * count, np.uint32)):
        run = await encode(bench, words, random)
        assert run.cycles["i"] == list(range(count))
        assert run.cycles["counts"][0] == 32 * 16 - 1 + 3
        if words.all():
            # A full rest waits for the next chunk to know whether it was the last.
            assert run.cycles["values"] == list(range(4, 4 + count - 1)) + [count + 3]
            assert run.cycles["columns"] == list(range(8, count + 4, 4)) + [count + 4]


@cocotb.test
async def encoder_forgets_everything_at_reset(dut):
    random = rng()
    bench = await started(dut)
    for fill in range(1, 80, 7):
        await bench.run({"i": sectors(sparse(random, 1000))[:fill]}, dict.fromkeys(ARRAYS), random)
        await bench.reset()
        await encode(bench, sparse(random, 500), random)


# ---------------------------------------------------------------------------------------------------------- decoder
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


async def decode(bench, arrays, length, random, idle="never", stall="never"):
    """Decodes arrays, good or bad, and compares the tensor and the errors."""
    expected, error = lenient(arrays, length)
    sources = {"length": [length], **beats(arrays)}
    run = await bench.run(sources, {"o": max(-(-length // 8), 1)}, random, idle, stall)
    bench.equal(run["o"], sectors(expected), f"{length} words")
    limit = 200
    while not bench.dut.length__ready.value:
        await cocotb.triggers.FallingEdge(bench.clk)
        limit -= 1
        assert limit, "the tensor does not come to an end"
    found = int(bench.dut.error.value)
    assert found == pack(error, 1), f"SEED={SEED} {length} words: expected {error}, got {found:04b}"
    assert bench.dut.o__valid.value == 0
    return run


async def restore(bench, words, random, idle="never", stall="never"):
    """Decodes good arrays."""
    arrays = encoded(words)
    expected, error = lenient(arrays, len(words))
    assert not any(error)
    assert expected.tolist() == ssdc.decode(arrays._replace(values=arrays.values.view(np.float32)), len(words)).view(
        np.uint32).tolist()
    return await decode(bench, arrays, len(words), random, idle, stall)


@cocotb.test
@cocotb.parametrize(idle=list(PATTERNS), stall=STALLS)
async def decoder_equals_golden_whatever_the_ports_do(dut, idle, stall):
    random = rng()
    bench = await started(dut)
    for length in (1, 300, 1500):
        await restore(bench, sparse(random, length), random, idle, stall)
        await restore(bench, sparse(random, length), random, shuffled(random, list(PATTERNS), ARRAYS), stall)


@cocotb.test
async def decoder_waits_for_each_array_on_its_own(dut):
    random = rng()
    bench = await started(dut)
    for port in ("length", *ARRAYS):
        for idle in ("mostly", "bursts"):
            await restore(bench, sparse(random, 20 * ROW + 5, 0.9), random, {port: idle})


@cocotb.test
async def decoder_handles_every_length_and_density(dut):
    random = rng()
    bench = await started(dut)
    await restore(bench, np.zeros(0, np.uint32), random)
    for length in LENGTHS:
        for words in (sparse(random, length), sparse(random, length, 0.02), np.zeros(length, np.uint32),
                      dense(random, length), runs(random, length)):
            await restore(bench, words, random)


@cocotb.test
async def decoder_handles_a_single_value_at_each_position(dut):
    """And a single zero."""
    random = rng()
    bench = await started(dut)
    for position in range(0, 300, 7):
        words = dense(random, 300)
        await restore(bench, np.where(np.arange(300) == position, 0, words).astype(np.uint32), random)
        await restore(bench, np.where(np.arange(300) == position, words, 0).astype(np.uint32), random)


@cocotb.test
async def decoder_handles_every_mask_of_a_sector(dut):
    random = rng()
    bench = await started(dut)
    masks = np.unpackbits(random.permutation(256).astype(np.uint8)).astype(bool)
    await restore(bench, np.where(masks, dense(random, 2048), 0).astype(np.uint32), random)


@cocotb.test
async def decoder_restores_real_activations(dut):
    random = rng()
    bench = await started(dut)
    tensors = np.load(ROOT / "actcodec" / "data" / "resnet20.npz")
    for name in (name for name in tensors if "relu" in name.lower()):
        await restore(bench, np.ascontiguousarray(tensors[name]).reshape(-1)[:8000].view(np.uint32), random)


@cocotb.test
async def decoder_gives_a_sector_every_cycle(dut):
    random = rng()
    bench = await started(dut)
    count = 32 * 40
    for words in (dense(random, 8 * count), sparse(random, 8 * count), np.zeros(8 * count, np.uint32)):
        run = await restore(bench, words, random)
        assert run.cycles["length"] == [0]
        assert run.cycles["o"] == list(range(6, 6 + count))


@cocotb.test
async def decoder_takes_the_next_tensor_soon(dut):
    random = rng()
    bench = await started(dut)
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
async def decoder_tells_what_is_wrong_and_recovers(dut, idle, stall):
    """A good tensor follows each bad one."""
    random = rng()
    bench = await started(dut)
    seen = set()
    for length, density in ((3, 1), (300, 0.5), (700, None), (1000, 1), (1024, 0.1)):
        arrays = encoded(sparse(random, length, density))
        for name, bad, kind in spoiled(random, arrays, length):
            error = lenient(bad, length)[1]
            assert any(error) and (kind is None or list(error) == kind), f"SEED={SEED} {name}: {error}"
            await decode(bench, bad, length, random, idle, stall)
            good = sparse(random, int(random.integers(1, 40)))
            assert (await restore(bench, good, random)).cycles["length"] == [0]
            seen.add((name.lstrip("0123456789 "), error))
    assert len(seen) > 20


@cocotb.test
async def decoder_tells_all_that_is_wrong_with_a_tensor(dut):
    """Missing values alone do not end a tensor: what else may be wrong with it comes on top."""
    random = rng()
    bench = await started(dut)
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
            await decode(bench, bad, length, random)


@cocotb.test
@cocotb.parametrize(idle=["never", "half"])
async def decoder_survives_garbage(dut, idle):
    """Arrays of random bytes and lengths; or good ones in which a few bytes are."""
    random = rng()
    bench = await started(dut)
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
        await decode(bench, arrays, length, random, idle)
    assert len(errors) >= 4  # the test above has all eight; here the rare ones need luck


@cocotb.test
@cocotb.parametrize(idle=["never", "half", "bursts"], stall=["never", "half", "shy"])
async def decoder_keeps_tensors_apart(dut, idle, stall):
    """Good and bad tensors directly one behind the other, each port at its own pace."""
    random = rng()
    bench = await started(dut)
    tensors = []
    for length in (40, 300, 600):
        arrays = encoded(sparse(random, length, 0.5))
        tensors += [(bad, length) for _, bad, _ in spoiled(random, arrays, length)] + [(arrays, length)]
    tensors = [tensors[k] for k in random.permutation(len(tensors))[:40]]
    await queue(bench, tensors, random, shuffled(random, [idle, "never", "seldom"], ("length", *ARRAYS)), stall)


@cocotb.test
async def decoder_takes_arrays_that_end_with_an_empty_word(dut):
    random = rng()
    bench = await started(dut)
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
async def decoder_forgets_everything_at_reset(dut):
    random = rng()
    bench = await started(dut)
    for fill in range(1, 80, 5):
        words = sparse(random, 1000)
        sources = {"length": [1000], **beats(encoded(words))}
        await bench.run(sources, {"o": None}, random, until=after(fill))
        await bench.reset()
        assert (dut.o__valid.value, dut.length__ready.value, int(dut.error.value)) == (0, 1, 0)
        await restore(bench, sparse(random, 300), random)


# ---------------------------------------------------------------------------------------------------------- with DPR
@cocotb.test
@cocotb.parametrize(pace=["never", "half"])
async def reduced_values_go_both_ways(dut, pace):
    """In FP8, in which many values are zero, and stay."""
    random = rng()
    bench = await started(dut)
    for length in (1, 100, 2 * ROW, 1500):
        for density in (0, 0.5, 1):
            x = np.where(random.random(length) < density,
                         np.ldexp(random.normal(0, 1, length), random.integers(-15, 8, length)), 0).astype(np.float32)
            arrays = ssdc.encode(x, "fp8")
            restored = ssdc.decode(arrays, length, "fp8")
            assert density == 0 or length < 100 or (dpr.quantize(x[x != 0], "fp8") & 127 == 0).any()
            packed, columns, counts = (chunks(array.tobytes(), 32) for array in arrays)
            ports = {"packed": packed, "columns": columns, "counts": counts}
            run = await bench.run({"i": sectors(x.view(np.uint32))},
                                  {port: len(expected) for port, expected in ports.items()}, random, pace, pace)
            for port, expected in ports.items():
                bench.equal(run[port], expected, f"{port} of {length}")
            run = await bench.run(
                {"length": [length], "total": [len(arrays.columns)], "unpacked": packed, "columns_back": columns,
                 "counts_back": counts}, {"o": -(-length // 8)}, random, pace, pace)
            bench.equal(run["o"], sectors(restored.view(np.uint32)), f"{length} values")
            assert dut.error.value == 0
