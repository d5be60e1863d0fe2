"""`rice` against plain loops over single bits, serial Rice codes, its source's entropy, and real activations."""

import numpy as np
import pytest

from actcodec.golden.jpegact import bits, rice, zvc
from tb.judges import blockcodes

HEADER, LENGTH, PADDING, SHORT = 1, 2, 4, 8
RANDOM = np.random.default_rng(8)


def word_of(k, flags, e, straight=False):
    """A table's 64 bits."""
    word = 0
    for i, value in enumerate([*k]):
        word |= value << 3 * i
    for i, value in enumerate([*e]):
        word |= value << 50 + 3 * i
    return word | flags << 45 | straight << 62


WORDS = [
    word_of(RANDOM.integers(0, 8, 15).tolist(), flags, sorted(RANDOM.integers(0, 8, 4).tolist()), flags % 2 == 1)
    for flags in (0, 5, 8, 13, 14)
]
WORDS += [
    word_of([0] * 15, 16, [0] * 4), word_of([7] * 15, 0, [7] * 4, True), word_of([2] * 15, 16, [1, 2, 3, 5]),
    word_of([3] * 3 + [1] * 4 + [0] * 8, 8, [1, 2, 3, 5]), word_of([4] * 15, 15, [0, 1, 2, 3], True),
]  # fmt: skip
TABLES = pytest.mark.parametrize("word", WORDS, ids=hex)


def fields(word):
    """k of the 64 places, flags, e and z."""
    k = [word >> 3 * (place // 8 + place % 8) & 7 for place in range(64)]
    return k, word >> 45 & 31, [word >> 50 + 3 * i & 7 for i in range(4)], word >> 62


def split_value(u, k, z):
    """Class and mantissa."""
    if z:
        c = 0 if u == 0 else min(3, 1 + ((u - 1) >> k))
        return c, 0 if u == 0 else u - 1 - ((c - 1) << k)
    c = min(3, u >> k)
    return c, u - (c << k)


def width_of(c, k, e, z):
    return min(8, k + e) if c == 3 else 0 if z and c == 0 else k


def encoded(values, word):
    """One block, bit by bit."""
    k, flags, e, z = fields(word)
    u = [blockcodes.unsigned(int(x), z) for x in values]
    if not any(u):
        return b"\0"
    raw = bytes([63, *(int(x) % 256 for x in values)])
    parts = [split_value(u[j], k[j], z) for j in range(64)]
    escapes = [(k[j], m) for j, (c, m) in enumerate(parts) if c == 3]
    enough = [i for i in range(4) if all(m < 1 << width_of(3, n, e[i], z) for n, m in escapes)]
    if not enough:
        return raw
    out = blockcodes.Writer()
    some = [any(c for c, _ in parts[4 * g : 4 * g + 4]) for g in range(16)]
    for g in range(16 - flags, 16):
        out.put(some[g])
    listed = [j for j in range(64) if j // 4 < 16 - flags or some[j // 4]]
    for above in range(3):
        for j in listed:
            out.put(parts[j][0] > above)
        listed = [j for j in listed if parts[j][0] > above]
    for j, (c, m) in enumerate(parts):
        out.put(m, width_of(c, k[j], e[enough[0]], z))
    data = out.data()
    return bytes([len(data) | enough[0] << 6]) + data if len(data) <= 62 else raw


def decoded(data, word):
    """Values and faults of one block that may be malformed, bit by bit; what it lacks is zero."""
    k, flags, e, z = fields(word)
    read = blockcodes.Bits(data)
    length, i = read.take(6), read.take(2)
    if length in (0, 63):
        values = [read.take(8) if length else 0 for _ in range(64)]
        return [(x + 128) % 256 - 128 for x in values], HEADER * (i > 0)
    shown = [g < 16 - flags or read.take() for g in range(16)]
    c = [0] * 64
    listed = [j for j in range(64) if shown[j // 4]]
    for _ in range(3):
        listed = [j for j in listed if read.take()]
        for j in listed:
            c[j] += 1
    u = []
    for j in range(64):
        m = read.take(width_of(c[j], k[j], e[i], z))
        u.append((m + (0 if not z else c[j] > 0) + ((c[j] - (1 if z and c[j] else 0)) << k[j])) % 256)
    faults = LENGTH * (-(-read.at // 8) != 1 + length)
    faults |= PADDING * (read.take(-read.at % 8) != 0)
    return [blockcodes.signed(v, z) for v in u], faults


def everything(payload, n, word):
    """Values, faults and what is left of any payload."""
    blocks, rest = blockcodes.split(payload, n, lambda first: 64 if first % 64 == 63 else first % 64)
    each = [(*decoded(data, word), SHORT * cut) for data, cut in blocks]
    return [values for values, _, _ in each], [a | b for _, a, b in each], len(rest)


@TABLES
def test_encode_is_the_plain_loop(word):
    x = blockcodes.of_every_kind(word % 97, 200)
    coded = [encoded(values, word) for values in x]
    payload, sizes = rice.encode(x, rice.Table.of(word))
    assert payload.tobytes() == b"".join(coded)
    assert sizes.tolist() == [len(block) for block in coded]
    assert rice.measure(x, rice.Table.of(word)).tolist() == sizes.tolist()


@TABLES
def test_decode_reverses_encode(word):
    x, table = blockcodes.of_every_kind(word % 89, 200), rice.Table.of(word)
    payload, sizes = rice.encode(x, table)
    y = rice.decode(payload.tobytes(), len(x), table)
    assert y.dtype == np.int8
    assert np.array_equal(y, x)
    assert np.array_equal(rice.sizes(payload, len(x)), sizes)
    assert everything(payload.tobytes(), 20, word)[0] == x[:20].tolist()
    for one, size, start in zip(x[:5], sizes, np.cumsum(sizes) - sizes, strict=False):
        assert rice.decode(payload[start : start + size], 1, table).tolist() == [one.tolist()]


@pytest.mark.parametrize("straight", [False, True])
@pytest.mark.parametrize("k", range(8))
def test_every_value_under_every_k_and_e(k, straight):
    """A lone value, among zeros and among small ones, with four e of which each is needed by some."""
    x = np.zeros((2, 256, 64), np.int8)
    x[1, :, ::3] = 1
    for value in range(256):
        x[:, value, (7 * value) % 64] = value - 128
    x = x.reshape(-1, 64)
    for e in ((0, 1, 2, 3), (4, 5, 6, 7)):
        table = rice.Table([k] * 15, 4 * (k % 5), e, straight)
        payload, _ = rice.encode(x, table)
        assert np.array_equal(rice.decode(payload, len(x), table), x)
        some = slice(k % 4, None, 7)
        assert rice.encode(x[some], table)[0].tobytes() == b"".join(encoded(v, table.word) for v in x[some])


def test_every_flag_tells_of_its_group():
    """Blocks where one group alone has a value, of a class above 0 or of class 0, under every number of flags."""
    x = np.zeros((2, 16, 64), np.int8)
    for g in range(16):
        x[0, g, 4 * g + g % 4], x[1, g, 4 * g + g % 4] = -5, -1
    x = x.reshape(-1, 64)
    for flags in range(17):
        table = rice.Table([1] * 15, flags)
        payload, sizes = rice.encode(x, table)
        assert payload.tobytes() == b"".join(encoded(values, table.word) for values in x)
        assert np.array_equal(rice.decode(payload, len(x), table), x)
        shown = [4 * (16 - flags) + 4 * (g >= 16 - flags) for g in range(16)]
        bits_of = [8 + flags + places + 2 + 63 + 2 for places in shown]  # u = 9: a bit in P1 and P2, and k + e of 2
        assert sizes[:16].tolist() == [-(-n // 8) for n in bits_of]


def test_blocks_of_every_length():
    """All zeros, lengths of 3 to 62, and raw blocks where there would be more."""
    seen = set()
    for k in range(8):
        x = (np.arange(64) >= 64 - np.arange(65)[:, None]) * np.int8(blockcodes.signed(min(3 << k, 255), False))
        for flags in (0, 15, 16):
            table = rice.Table([k] * 15, flags, [0, 0, 0, 0])
            payload, sizes = rice.encode(x, table)
            first = payload[np.cumsum(sizes) - sizes]
            seen |= set(first.tolist())
            assert np.array_equal(sizes, np.where(first == 63, 65, 1 + first.astype(int)))
            assert payload.tobytes() == b"".join(encoded(values, table.word) for values in x)
            assert np.array_equal(rice.decode(payload, 65, table), x)
    assert seen == {0, *range(3, 64)}
    # 16 flags, a k and no more are the least that an encoder needs; flags alone, of groups without mantissas, are legal
    assert not rice.decode(bytes([2, 0, 0]), 1, rice.Table([0] * 15, 16)).any()


def test_planes_have_the_bits_of_serial_rice_codes():
    """Without flags a block is as long as its values' codes one by one, a unary of at most three bits before each."""
    x = blockcodes.coded(blockcodes.tensors("conv")[0], "optL")[:300]
    table = rice.Table([3, 2, 2] + [1] * 12, 0, [7, 7, 7, 7])
    k = fields(table.word)[0]
    expected = []
    for block in x:
        u = [blockcodes.unsigned(int(v), False) for v in block]
        codes = ["1" * min(v >> n, 3) + "0" * (v >> n < 3) for v, n in zip(u, k, strict=True)]
        rest = [8 if v >> n > 2 else n for v, n in zip(u, k, strict=True)]
        expected.append(1 + (sum(map(len, codes)) + sum(rest) + 7) // 8)
    assert rice.measure(x, table).tolist() == expected


@TABLES
def test_a_table_is_64_bits(word):
    table = rice.Table.of(word)
    assert table.word == word
    k, flags, e, z = fields(word)
    assert (table.flags, list(table.e), table.straight) == (flags, e, bool(z))
    assert [table.k[place // 8 + place % 8] for place in range(64)] == k
    assert table == rice.Table(np.array(table.k), flags, list(e), bool(z))


@TABLES
def test_recover_is_the_plain_loop_on_any_bytes(word, monkeypatch):
    """Streams of random bytes, truncated ones, and ones with a bit flipped, in parts of every size."""
    monkeypatch.setattr(bits, "PART", 1 + word % 5)
    random, table = np.random.default_rng(word % 1000), rice.Table.of(word)
    payload = rice.encode(blockcodes.of_every_kind(3, 16), table)[0].tobytes()
    garbage = [bytes(random.integers(0, high, 500, np.uint8)) for high in (60, 256)]
    streams = [*garbage, b"", payload + b"\0\1\2", *(payload[: random.integers(len(payload))] for _ in range(2))]
    for _ in range(3):
        flipped = bytearray(payload)
        flipped[random.integers(len(payload))] ^= 1 << random.integers(8)
        streams.append(bytes(flipped))
    for stream in streams:
        values, faults, excess = everything(stream, 16, word)
        result = rice.recover(stream, 16, table)
        assert result.blocks.tolist() == values
        assert result.faults.tolist() == faults
        assert result.excess == excess
        if any(faults) or excess:
            with pytest.raises(ValueError, match=r"malformed|follow"):
                rice.decode(stream, 16, table)
        else:
            assert rice.decode(stream, 16, table).tolist() == values


def test_no_flip_goes_by_as_the_original():
    x = blockcodes.coded(blockcodes.tensors("conv")[0], "optL")[:200:7]
    table = rice.fit(x)
    payload, sizes = rice.encode(x, table)
    silent = 0
    for block, start in enumerate(np.cumsum(sizes) - sizes):
        for bit in range(block % 5, 8 * sizes[block], 5):
            flipped = payload[start : start + sizes[block]].copy()
            flipped[bit // 8] ^= 1 << bit % 8
            result = rice.recover(flipped, 1, table)
            silent += not (result.faults[0] or result.excess)
            assert result.faults[0] or result.excess or result.blocks[0].tolist() != x[block].tolist()
    assert 0.4 < silent / (8 * sizes.sum() / 5) < 0.8  # flips in mantissas


@pytest.mark.parametrize("stream, n, text", [
    (b"\x00\x40", 2, "block 1 begins with a byte of 64"), (b"\x7f" + bytes(64), 1, "begins with a byte of 127"),
    (b"\xff" + bytes(64), 1, "begins with a byte of 255"), (b"\xc0", 1, "begins with a byte of 192"),
    (b"\0\0", 3, "lengths of 3 blocks do not add up"), (b"\0\0", 1, "do not add up"),
    (b"\x3f" + bytes(63), 1, "do not add up"), (b"\x05\0\0\0", 1, "do not add up"), (b"", 1, "do not add up"),
    (b"\0", 0, "do not add up")])  # fmt: skip
def test_lengths_that_cannot_be_are_refused(stream, n, text):
    with pytest.raises(ValueError, match=text):
        rice.sizes(stream, n)
    with pytest.raises(ValueError, match=r"malformed|follow"):
        rice.decode(stream, n, rice.Table([0] * 15, 0))


@pytest.mark.parametrize("call, text", [
    (lambda: rice.Table([0] * 14, 0), "k is .* 15 integers, 0 to 7"), (lambda: rice.Table([8] * 15, 0), "k is"),
    (lambda: rice.Table([0] * 15, 17), "flags is .* 0 to 16"), (lambda: rice.Table([0] * 15, -1), "flags"),
    (lambda: rice.Table([0] * 15, 0, [1, 2, 3]), "e is .* 4 integers"),
    (lambda: rice.Table([0] * 15, 0, [1, 3, 2, 4]), "has to ascend"),
    (lambda: rice.Table.of(1 << 63), "of 63 bits"), (lambda: rice.Table.of(17 << 45), "flags"),
    (lambda: rice.Table.of(1 << 50), "has to ascend"), (lambda: rice.Table.of("0"), "63 bits"),
    (lambda: rice.encode(np.zeros((1, 64), np.int8), WORDS[0]), "has to be a rice.Table"),
    (lambda: rice.decode(b"", 0, None), "has to be a rice.Table"),
    (lambda: rice.encode(np.zeros((1, 64), np.int16), rice.Table([0] * 15, 0)), "int16"),
    (lambda: rice.encode(np.zeros((2, 4, 16), np.int8), rice.Table([0] * 15, 0)), "shape of the blocks"),
    (lambda: rice.Table(5, 0), "k is .* 15 integers"), (lambda: rice.Table([[0] * 15], 0), "k is"),
    (lambda: rice.Table(None, 0), "k is"), (lambda: rice.Table([0] * 15, 0, 3), "e is .* 4 integers"),
    (lambda: rice.fit(np.zeros((9, 64), np.int8), most=0), "most is 0, has to be at least 1"),
    (lambda: rice.fit(np.zeros((9, 64), np.int8), most=-5), "most is -5")])  # fmt: skip
def test_wrong_arguments_are_refused(call, text):
    with pytest.raises(ValueError, match=text):
        call()


def test_equal_e_are_legal_and_the_first_is_taken():
    table = rice.Table.of(word_of([0] * 15, 0, [2, 2, 5, 5]))
    x = np.zeros((2, 64), np.int8)
    x[:, 0] = 3, -16  # u of 6 and 31, mantissas of 3 and 28: 2 and 5 bits
    payload, sizes = rice.encode(x, table)
    assert [payload[0] >> 6, payload[sizes[0]] >> 6] == [0, 2]
    assert np.array_equal(rice.decode(payload, 2, table), x)


def test_blocks_may_be_lines_unsigned_and_none():
    x, table = blockcodes.of_every_kind(), rice.Table.of(WORDS[0])
    payload, _ = rice.encode(x, table)
    assert np.array_equal(rice.encode(x.reshape(-1, 8, 8).view(np.uint8), table)[0], payload)
    assert [part.size for part in rice.encode(x[:0], table)] == [0, 0]
    assert rice.decode(b"", 0, table).shape == (0, 64)
    assert rice.measure(x[:0], table).size == rice.sizes(b"", 0).size == 0


def test_parts_make_no_difference(monkeypatch):
    x, table = blockcodes.of_every_kind(1, 100), rice.Table.of(WORDS[1])
    payload, sizes = rice.encode(x, table)
    for part in (1, 7, 99, 100):
        monkeypatch.setattr(bits, "PART", part)
        assert np.array_equal(rice.encode(x, table)[0], payload)
        assert np.array_equal(rice.encode(x, table)[1], sizes)
        assert np.array_equal(rice.measure(x, table), sizes)
        assert np.array_equal(rice.decode(payload, 100, table), x)


def test_fit_ends_where_no_step_helps_and_obeys_the_recommendation():
    x = blockcodes.coded(blockcodes.tensors("conv")[2], "optL")
    table = rice.fit(x)
    least = rice.measure(x, table).sum()
    for i in range(15):
        for k in {max(table.k[i] - 1, 0), min(table.k[i] + 1, 7)}:
            other = rice.Table([*table.k[:i], k, *table.k[i + 1 :]], table.flags, table.e)
            assert rice.measure(x, other).sum() >= least or max(other.k[1:]) + other.e[3] > 8
    for flags in range(17):
        assert rice.measure(x, rice.Table(table.k, flags, table.e)).sum() > 0.999 * least
    wide = np.rint(np.random.default_rng(0).normal(size=(100, 64), scale=40)).clip(-128, 127).astype(np.int8)
    for fit in (table, rice.fit(x, most=100), rice.fit(wide), rice.fit(wide, straight=True)):
        assert max(fit.k[1:]) + fit.e[3] <= 8
    assert rice.encode(x[:0], rice.fit(x[:0]))[0].size == 0


@pytest.mark.parametrize("straight", [False, True])
@pytest.mark.parametrize("wide", [0.4, 3, 60])
def test_sizes_are_those_of_each_table(straight, wide, random):
    x = np.rint(random.normal(size=(300, 64), scale=wide)).clip(-128, 127).astype(np.int8)
    x[::7] = 0
    sizes = rice.Sizes(bits.bytes_of(x), straight)
    for _ in range(30):
        first, *k = random.integers(0, 8, 15).tolist()
        e, flags = np.sort(random.integers(0, min(8, 9 - max(k)), 4)).tolist(), int(random.integers(17))
        table = rice.Table((first, *k), flags, e, straight)
        assert sizes.total(first, *k, flags, *e) == rice.measure(x, table).sum(), table


def test_fit_of_straight_values_is_near_the_best_of_all():
    x = blockcodes.coded(blockcodes.tensors("ReLU")[3])[::4]
    table = rice.fit(x, straight=True)
    assert table.straight
    assert len(set(table.k)) == 1
    sets = [(a, b, c, d) for a in (0, 1) for b in (1, 2) for c in (2, 3) for d in (3, 5)]
    tables = [rice.Table([k] * 15, flags, e, True) for k in range(8) for flags in (0, 8, 16) for e in sets]
    assert rice.measure(x, table).sum() < 1.005 * min(rice.measure(x, t).sum() for t in tables)


@pytest.mark.parametrize("slope, far", [(0.0, 1.11), (-0.03, 1.12), (-0.06, 1.25)])
def test_a_source_takes_no_less_than_its_entropy_and_not_much_more(slope, far):
    x, each = blockcodes.of_a_source(1, 5 * np.exp(slope * np.arange(64)), 3000)
    size = 8 * rice.encode(x, rice.fit(x, most=500))[0].size / len(x)
    assert each < size < far * each


@pytest.mark.parametrize("kind, dqt, ratio, gain, far", [
    ("conv", "optL", 9.20, 1.86, 1.12), ("ReLU", "optL", 9.33, 1.95, 1.14), ("conv", "optH", 14.08, 2.07, 1.2),
    ("ReLU", "optH", 14.62, 2.15, 1.2), ("ReLU", None, 6.75, 1.14, 1.12)])  # fmt: skip
def test_real_activations_compress_as_expected(kind, dqt, ratio, gain, far):
    """Ratios with tables counted, gain over ZVC, and the distance from the entropy of each frequency."""
    x = blockcodes.tensors(kind)
    data = [blockcodes.coded(v, dqt) for v in x]
    payloads = [rice.encode(v, rice.fit(v, dqt is None, 1000))[0].size for v in data]
    packed, raw = sum(payloads) + len(x) * 8, sum(v.nbytes for v in x)
    assert raw / packed == pytest.approx(ratio, rel=0.003)
    assert sum(zvc.encode(v)[0].size for v in data) / packed == pytest.approx(gain, abs=0.01)
    bound = sum(map(blockcodes.frequency_entropy, data)) / 8
    assert bound < sum(payloads) < far * bound
