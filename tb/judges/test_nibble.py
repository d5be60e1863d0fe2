"""`nibble` against plain loops over single bits, its source's entropy, and the ratios of real activations."""

import numpy as np
import pytest

from actcodec.golden.jpegact import bits, nibble, zvc
from tb.judges import blockcodes

HEADER, LENGTH, PADDING, SHORT = 1, 2, 4, 8
RANDOM = np.random.default_rng(7)
WORDS = [int.from_bytes(RANDOM.bytes(11), "little") % 2**81 for _ in range(6)]
WORDS += [sum(entry << 5 * g for g in range(16)) for entry in (0, 0b11_111, 0b00_111, 0b01_000)]
WORDS += [sum(0b00_101 << 5 * g for g in range(16)) | 1 << 80]
TABLES = pytest.mark.parametrize("word", WORDS, ids=hex)


def widths(word, group):
    """The four widths of a group, from the 81 bits of a table."""
    b, f = word >> 5 * group & 7, word >> 5 * group + 3 & 3
    four = [[b, b + 1, b + 2, b + 3], [b, b + 1, b + 2, b + 4], [0, b, b + 1, b + 3], [0, b, b + 1, b + 2]][f]
    return [min(w, 8) for w in four]


def encoded(values, word):
    """One block, bit by bit."""
    if not any(values):
        return b"\0"
    u = [blockcodes.unsigned(int(x), word >> 80) for x in values]
    need = [max(u[4 * g : 4 * g + 4]).bit_length() for g in range(16)]
    codes = [[i for i in range(4) if widths(word, g)[i] >= need[g]] for g in range(16)]
    chosen = [widths(word, g)[codes[g][0]] if codes[g] else 999 for g in range(16)]
    out = blockcodes.Writer()
    if sum(chosen) > 118:
        chosen = [8] * 16
        out.put(64, 8)
    else:
        out.put(4 + (sum(chosen) + 1) // 2, 8)
        for code in codes:
            out.put(code[0], 2)
    for g in range(16):
        for plane in range(chosen[g]):
            for value in u[4 * g : 4 * g + 4]:
                out.put(value >> plane & 1)
    return out.data()


def decoded(data, word):
    """Values and faults of one block that may be malformed, bit by bit; what it lacks is zero."""
    read = blockcodes.Bits(data)
    length = read.take(8)
    faults = HEADER if 1 <= length <= 3 or length > 64 else 0
    plain = length in (0, 64)
    chosen = [length // 8 if plain else widths(word, g)[read.take(2)] for g in range(16)]
    u = []
    for w in chosen:
        planes = [[read.take() for _ in range(4)] for _ in range(w)]
        u += [sum(plane[lane] << j for j, plane in enumerate(planes)) for lane in range(4)]
    if not plain:
        odd = sum(chosen) % 2
        faults |= LENGTH * (length != 4 + (sum(chosen) + odd) // 2) | PADDING * (odd == 1 and read.take(4) != 0)
    return [blockcodes.signed(value, word >> 80) for value in u], faults


def everything(payload, n, word):
    """Values, faults and what is left of any payload."""
    blocks, rest = blockcodes.split(payload, n, lambda first: first)
    each = [(*decoded(data, word), SHORT * cut) for data, cut in blocks]
    return [values for values, _, _ in each], [a | b for _, a, b in each], len(rest)


@TABLES
def test_encode_is_the_plain_loop(word):
    x = blockcodes.of_every_kind(word % 97, 200)
    coded = [encoded(values, word) for values in x]
    payload, sizes = nibble.encode(x, nibble.Table.of(word))
    assert payload.tobytes() == b"".join(coded)
    assert sizes.tolist() == [len(block) for block in coded]
    assert nibble.measure(x, nibble.Table.of(word)).tolist() == sizes.tolist()


@TABLES
def test_decode_reverses_encode(word):
    x, table = blockcodes.of_every_kind(word % 89, 200), nibble.Table.of(word)
    payload, sizes = nibble.encode(x, table)
    y = nibble.decode(payload.tobytes(), len(x), table)
    assert y.dtype == np.int8
    assert np.array_equal(y, x)
    assert np.array_equal(nibble.sizes(payload, len(x)), sizes)
    assert everything(payload.tobytes(), 20, word)[0] == x[:20].tolist()
    for one, size, start in zip(x[:5], sizes, np.cumsum(sizes) - sizes, strict=False):
        assert nibble.decode(payload[start : start + size], 1, table).tolist() == [one.tolist()]


@pytest.mark.parametrize("family", range(4))
@pytest.mark.parametrize("base", range(8))
def test_every_width_of_every_entry_takes_the_lowest_code(family, base):
    """One group has a value of each bit length and both signs, the others none, or all have."""
    table = nibble.Table([base] * 16, [family] * 16)
    x = [np.zeros(64, int)]
    for n in range(1, 9):
        u = (1 << n) - 1 - n % 2
        for place in range(0, 64, 5):
            x.append(np.where(np.arange(64) == place, blockcodes.signed(u, False), 0))
        x.append(np.where(np.arange(64) % 4 == n % 4, blockcodes.signed(u, False), 0))
    x = np.array(x, np.int8)
    payload, _ = nibble.encode(x, table)
    assert payload.tobytes() == b"".join(encoded(values, table.word) for values in x)
    assert np.array_equal(nibble.decode(payload, len(x), table), x)


def test_blocks_of_every_length():
    """Sums of widths of 1 to 118, which make lengths of 5 to 63, and one nibble more, which makes a raw block."""
    for total in range(129):
        need = [(total + g) // 16 for g in range(16)]
        x = np.zeros((1, 64), np.int8)
        x[0, ::4] = [blockcodes.signed((1 << n) - 1, False) for n in need]
        table = nibble.Table([max(n, 1) - 1 for n in need], [total % 2] * 16)
        payload, sizes = nibble.encode(x, table)
        assert payload[0] == (0 if total == 0 else 64 if total > 118 else 4 + (total + 1) // 2)
        assert sizes.tolist() == [1 + payload[0]]
        assert payload.tobytes() == encoded(x[0], table.word)
        assert np.array_equal(nibble.decode(payload, 1, table), x)
    assert not nibble.decode(bytes([4, 0, 0, 0, 0]), 1, nibble.Table.of(0)).any()  # no encoder has a length of 4


@pytest.mark.parametrize("straight", [False, True])
def test_every_value_at_every_place(straight):
    x = np.zeros((64, 256, 64), np.int8)
    for place in range(64):
        x[place, :, place] = np.arange(-128, 128)
    x = x.reshape(-1, 64)
    table = nibble.Table(range(16) % np.int64(8), [0, 1, 2, 3] * 4, straight)
    payload, _ = nibble.encode(x, table)
    assert np.array_equal(nibble.decode(payload, len(x), table), x)
    some = RANDOM.integers(0, len(x), 300)
    assert nibble.encode(x[some], table)[0].tobytes() == b"".join(encoded(values, table.word) for values in x[some])


def test_values_map_to_unsigned_ones_as_specified():
    """0, -1, 1, -2 and -128 have u of 0, 1, 2, 3 and 255; straight ones are unsigned bytes."""
    for straight, expected in ((False, {0: 0, -1: 1, 1: 2, -2: 3, -128: 255}), (True, {1: 1, 127: 127, -128: 128})):
        for value, u in expected.items():
            x = np.zeros((1, 64), np.int8)
            x[0, 0], x[0, 63] = value, 1
            payload, _ = nibble.encode(x, nibble.Table([5] * 16, [0] * 16, straight))
            read = blockcodes.Bits(payload.tobytes())
            read.at = 40
            assert sum(read.take(4) << j for j in range(max(5, u.bit_length()))) == u  # alone in its group
            assert blockcodes.unsigned(value, straight) == u


@TABLES
def test_a_table_is_81_bits(word):
    table = nibble.Table.of(word)
    assert table.word == word
    assert table.widths.tolist() == [widths(word, g) for g in range(16)]
    assert table == nibble.Table(np.array(table.base), list(table.family), table.straight)


@TABLES
def test_recover_is_the_plain_loop_on_any_bytes(word, monkeypatch):
    """Streams of random bytes, truncated ones, and ones with a bit flipped, in parts of every size."""
    monkeypatch.setattr(bits, "PART", 1 + word % 5)
    random, table = np.random.default_rng(word % 1000), nibble.Table.of(word)
    payload = nibble.encode(blockcodes.of_every_kind(3, 16), table)[0].tobytes()
    garbage = bytes(random.integers(0, 90, 300, np.uint8)), b"\x50\xff\xff\xff\xff" + random.bytes(75)
    streams = [*garbage, b"", payload + b"\0\1\2", *(payload[: random.integers(len(payload))] for _ in range(2))]
    for _ in range(3):
        flipped = bytearray(payload)
        flipped[random.integers(len(payload))] ^= 1 << random.integers(8)
        streams.append(bytes(flipped))
    for stream in streams:
        values, faults, excess = everything(stream, 16, word)
        result = nibble.recover(stream, 16, table)
        assert result.blocks.tolist() == values
        assert result.faults.tolist() == faults
        assert result.excess == excess
        if any(faults) or excess:
            with pytest.raises(ValueError, match=r"malformed|follow"):
                nibble.decode(stream, 16, table)
        else:
            assert nibble.decode(stream, 16, table).tolist() == values
    assert len(nibble.recover(b"", 0, table).blocks) == 0


def test_flips_are_reported_as_often_as_the_format_allows():
    """Most flips change a value and nothing else; all that change the length or the sum of widths are found."""
    x = blockcodes.coded(blockcodes.tensors("conv")[0], "optL")[:200:7]
    table = nibble.fit(x)
    payload, sizes = nibble.encode(x, table)
    reported = 0
    for block, start in enumerate(np.cumsum(sizes) - sizes):
        for bit in range(block % 5, 8 * sizes[block], 5):
            flipped = payload[start : start + sizes[block]].copy()
            flipped[bit // 8] ^= 1 << bit % 8
            result = nibble.recover(flipped, 1, table)
            wrong = result.faults[0] or result.excess
            values, faults = decoded(flipped.tobytes()[: 1 + flipped[0]], table.word)
            assert bool(wrong) == bool(faults or 1 + flipped[0] != len(flipped))
            assert wrong or values != x[block].tolist() or 8 <= bit < 40  # another code of the same width
            assert wrong or bit >= 8
            reported += bool(wrong)
    assert 0.08 < reported / (8 * sizes.sum() / 5) < 0.25


@pytest.mark.parametrize("stream, n, text", [
    (b"\x00\x03\0\0\0", 2, "block 1 begins with a byte of 3"), (b"\x41" + bytes(65), 1, "begins with a byte of 65"),
    (b"\xff" * 9, 1, "begins with a byte of 255"), (b"\0\0", 3, "lengths of 3 blocks do not add up"),
    (b"\0\0", 1, "lengths of 1 blocks do not add up"), (b"\x05\0\0\0", 1, "do not add up"), (b"", 1, "do not add up"),
    (b"\0", 0, "do not add up")])  # fmt: skip
def test_lengths_that_cannot_be_are_refused(stream, n, text):
    with pytest.raises(ValueError, match=text):
        nibble.sizes(stream, n)
    with pytest.raises(ValueError, match=r"malformed|follow"):
        nibble.decode(stream, n, nibble.Table([0] * 16, [0] * 16))


@pytest.mark.parametrize("call, text", [
    (lambda: nibble.Table([0] * 15, [0] * 16), "base is .* 16 integers, 0 to 7"),
    (lambda: nibble.Table([8] * 16, [0] * 16), "base"), (lambda: nibble.Table([0] * 16, [4] * 16), "family"),
    (lambda: nibble.Table([0] * 16, [-1] * 16), "family"), (lambda: nibble.Table([0.0] * 16, [0] * 16), "base"),
    (lambda: nibble.Table.of(1 << 81), "81 bits"), (lambda: nibble.Table.of(-1), "81 bits"),
    (lambda: nibble.Table.of(1.0), "81 bits"),
    (lambda: nibble.encode(np.zeros((1, 64), np.int8), WORDS[0]), "has to be a nibble.Table"),
    (lambda: nibble.decode(b"", 0, None), "has to be a nibble.Table"),
    (lambda: nibble.encode(np.zeros((1, 64)), nibble.Table.of(0)), "float64"),
    (lambda: nibble.encode(np.zeros((2, 63), np.int8), nibble.Table.of(0)), "shape of the blocks"),
    (lambda: nibble.encode(np.zeros(64, np.int8), nibble.Table.of(0)), "shape of the blocks"),
    (lambda: nibble.best(np.zeros((16, 8))), "shape of the counts")])  # fmt: skip
def test_wrong_arguments_are_refused(call, text):
    with pytest.raises(ValueError, match=text):
        call()


def test_blocks_may_be_lines_unsigned_and_none():
    x, table = blockcodes.of_every_kind(), nibble.Table.of(WORDS[0])
    payload, _ = nibble.encode(x, table)
    assert np.array_equal(nibble.encode(x.reshape(-1, 8, 8).view(np.uint8), table)[0], payload)
    assert [part.size for part in nibble.encode(x[:0], table)] == [0, 0]
    assert nibble.decode(b"", 0, table).shape == (0, 64)
    assert nibble.measure(x[:0], table).size == nibble.sizes(b"", 0).size == 0


def test_parts_make_no_difference(monkeypatch):
    x, table = blockcodes.of_every_kind(1, 100), nibble.Table.of(WORDS[1])
    payload, sizes = nibble.encode(x, table)
    for part in (1, 7, 99, 100):
        monkeypatch.setattr(bits, "PART", part)
        assert np.array_equal(nibble.encode(x, table)[0], payload)
        assert np.array_equal(nibble.encode(x, table)[1], sizes)
        assert np.array_equal(nibble.measure(x, table), sizes)
        assert np.array_equal(nibble.decode(payload, 100, table), x)


def test_fit_takes_the_cheapest_entry_of_every_group():
    x = blockcodes.coded(blockcodes.tensors("conv")[2], "optL")
    x = np.vstack([x, np.zeros((20, 64), np.int8)])  # which need no widths
    counts = nibble.counts(x)
    u = [[max(blockcodes.unsigned(int(v), 0) for v in block[4 * g : 4 * g + 4]) for g in range(16)] for block in x]
    for g in range(16):
        need = [row[g].bit_length() for row in u if any(row)]
        assert counts[g].tolist() == [need.count(n) for n in range(9)]
    assert np.array_equal(nibble.counts(x[:200]) + nibble.counts(x[200:]), counts)
    table = nibble.fit(x)
    assert table == nibble.best(counts)
    least = nibble.measure(x, table).sum()
    for g in range(16):  # no other entry of any one group is better by more than rounding and raw blocks make
        for entry in range(32):
            word = table.word & ~(31 << 5 * g) | entry << 5 * g
            assert nibble.measure(x, nibble.Table.of(word)).sum() > 0.9985 * least
    assert nibble.fit(x[:0]).word == 0


@pytest.mark.parametrize("slope, far", [(0.0, 1.28), (-0.03, 1.36), (-0.06, 1.5)])
def test_a_source_takes_no_less_than_its_entropy_and_not_much_more(slope, far):
    x, each = blockcodes.of_a_source(1, 5 * np.exp(slope * np.arange(64)))
    size = 8 * nibble.encode(x, nibble.fit(x))[0].size / len(x)
    assert each < size < far * each


@pytest.mark.parametrize("kind, dqt, ratio, gain, far", [
    ("conv", "optL", 8.41, 1.70, 1.23), ("ReLU", "optL", 8.68, 1.82, 1.23), ("conv", "optH", 11.96, 1.75, 1.43),
    ("ReLU", "optH", 12.29, 1.80, 1.43), ("ReLU", None, 5.91, 1.00, 1.27)])  # fmt: skip
def test_real_activations_compress_as_expected(kind, dqt, ratio, gain, far):
    """Ratios with tables counted, gain over ZVC, and the distance from the entropy of each frequency."""
    x = blockcodes.tensors(kind)
    data = [blockcodes.coded(v, dqt) for v in x]
    payloads = [nibble.encode(v, nibble.fit(v, dqt is None))[0].size for v in data]
    packed, raw = sum(payloads) + len(x) * 81 / 8, sum(v.nbytes for v in x)
    assert raw / packed == pytest.approx(ratio, abs=0.01)
    assert sum(zvc.encode(v)[0].size for v in data) / packed == pytest.approx(gain, abs=0.01)
    bound = sum(map(blockcodes.frequency_entropy, data)) / 8
    assert bound < sum(payloads) < far * bound
