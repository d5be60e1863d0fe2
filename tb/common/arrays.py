"""What benches of units between sectors of values and packed arrays share: Bitpack and DPR, in both directions."""

import numpy as np

from tb.harness import chunks, sectors

SECTOR = 32  # bytes


def words(x):
    """Bits of float32 values."""
    return np.asarray(x, np.float32).view(np.uint32)


async def packs(bench, random, x, content, what, idle="never", stall="never", empty=False):
    """Sends the values ``x``, of which ``content`` is the packed array, and compares; ``empty``: the last beat of
    values has none."""
    expected = chunks(content, SECTOR)
    if empty and len(content) and len(content) % SECTOR == 0:  # the full sector left before the end was known
        expected = chunks(np.append(content, np.uint8(1)), SECTOR)[:-1] + chunks([], SECTOR)
    run = await bench.run({"i": sectors(words(x), empty)}, {"o": len(expected)}, random, idle, stall)
    bench.equal(run["o"], expected, f"{what}, {len(x)} values")
    return run


async def unpacks(bench, random, content, count, unpack, what, idle="never", stall="never", short=False, excess=False):
    """Sends an array (bytes, or payloads), and compares values and errors. ``unpack`` is golden's, of an array that is
    long enough and the number of values."""
    dut = bench.dut
    sent = chunks(content, SECTOR) if isinstance(content, np.ndarray) else content
    have = np.frombuffer(b"".join((beat & (1 << 256) - 1).to_bytes(SECTOR, "little") for beat in sent), np.uint8)
    expected = sectors(words(unpack(np.pad(have, (0, 4 * count)), count)))
    run = await bench.run({"length": [count], "i": sent}, {"o": len(expected)}, random, idle, stall)
    what = f"{what}, {count} values of {len(sent)} sectors"
    bench.equal(run["o"], expected, what)
    assert dut.length__ready.value == 1, f"{what}: not ready for the next tensor"
    error = dut.error.value.to_unsigned()
    assert (error & 1, error >> 1) == (short, excess), what
    return run


async def unpacks_any_length(bench, random, content, values):
    """The first sectors of an array, and the ``values`` of these, as those of tensors with every bit of the length."""
    sent, expected = chunks(content, SECTOR)[:-1], sectors(words(values))[:16]
    for bit in range(len(values).bit_length(), 32):
        for more in (0, 64):  # the bit is borrowed from at once, or stands alone behind the first sectors
            length = 1 << bit | more | int(random.integers(8))
            run = await bench.run({"length": [length], "i": sent}, {"o": len(expected)}, random)
            bench.equal(run["o"][: len(expected)], expected, f"{length} values")
            await bench.reset()


async def interrupts(bench, random, sent, count=None):
    """Sends the beats of a part of a tensor, of ``count`` values if it is unpacked, and resets."""
    dut = bench.dut
    if count is None:
        await bench.run({"i": sent}, {"o": None}, random, stall="half")
    else:
        await bench.run({"length": [count], "i": sent}, {"o": None}, random, stall="half",
                        until=lambda: dut.o__valid.value == 1)
    await bench.reset()
    assert dut.o__valid.value == 0
