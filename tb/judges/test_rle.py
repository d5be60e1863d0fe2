"""RLE and RLD against libjpeg, and what they make of damage against a plain decoder."""

import io

import numpy as np
import PIL.Image
import pytest

from actcodec.golden.jpegact import rle
from actcodec.golden.jpegact.zigzag import ZIGZAG
from actcodec.golden.offload.wire import stream
from tb.judges import libjpeg

FRAMINGS = pytest.mark.parametrize("framing", rle.FRAMINGS)
PREDICTIONS = pytest.mark.parametrize("dc", rle.DC)
TILES = 7


def corners():
    """Every run, and every category in both signs with its smallest and largest value; DC values far from each other;
    the largest and the smallest block."""
    values = [v for s in range(7) for n in (2**s, 2 ** (s + 1) - 1) for v in (n, -n)] + [-128]
    q = np.zeros((63 * len(values), 64), np.int8)
    run = np.arange(len(q)) % 63
    q[np.arange(len(q)), ZIGZAG[1 + run]] = np.repeat(values, 63)
    q[::2, 63] = np.resize([0, 1, 0, -128, 0], len(q[::2]))
    q[:, 0] = np.resize([-128, 127, -128, 0, 1, 1, -1, 64, 2], len(q))
    return np.concatenate([q, np.full((2, 64), -128, np.int8), np.zeros((2, 64), np.int8)])


def random_blocks(count, density, seed=0):
    """Blocks with non-zeros of all sizes at random places."""
    random = np.random.default_rng([seed, count, int(100 * density)])
    magnitude = random.integers(0, 2 ** random.integers(1, 8, (count, 64)))
    values = np.where(random.random((count, 64)) < 0.5, magnitude, ~magnitude)
    return np.where(random.random((count, 64)) < density, values, 0).astype(np.int8)


DATA = {"corners": corners()} | {f"{p} %": random_blocks(210, p / 100) for p in (2, 5, 10, 20, 40, 70, 100)}
BLOCKS = pytest.mark.parametrize("q", DATA.values(), ids=DATA)


def whole_rows(q):
    return q[: len(q) // TILES * TILES]


def bits_of(payload):
    return "".join(f"{byte:08b}" for byte in bytes(payload))


def bytes_of(bits):
    """Bytes, the last one filled with ones."""
    bits += "1" * (-len(bits) % 8)
    return bytes(int(bits[i : i + 8], 2) for i in range(0, len(bits), 8))


def framed(codes):
    """Blocks in the framing "block", each the string of its bits."""
    return b"".join(bytes([len(block)]) + block for block in map(bytes_of, codes))


@BLOCKS
def test_the_stream_is_libjpegs(q):
    q = whole_rows(q)
    payload, sizes = rle.encode(q, "stream", "pred")
    _, scan = libjpeg.parts(libjpeg.written(q, np.ones((8, 8)), TILES))
    assert payload.tobytes() == scan.replace(b"\xff\0", b"\xff")
    assert -(-sizes.sum() // 8) == payload.size
    assert np.array_equal(rle.decode(payload, len(q), "stream", "pred"), q)


@BLOCKS
def test_libjpeg_reads_each_block_between_restarts(q):
    """Where a marker follows each block, they are filled with ones to bytes, and DC values are not predicted."""
    q = whole_rows(q)
    payload, sizes = rle.encode(q)
    header, _ = libjpeg.parts(libjpeg.written(q, np.ones((8, 8)), TILES))
    sof = header.index(b"\xff\xc0")
    header = header[:sof] + b"\xff\xdd\0\4\0\1" + header[sof:]  # a restart interval of 1
    scan, start = b"", 0
    for i, size in enumerate(sizes.tolist()):
        assert payload[start] == size - 1
        block = payload[start + 1 : start + size].tobytes()
        scan += block.replace(b"\xff", b"\xff\0") + bytes([0xFF, 0xD0 + i % 8])
        start += size
    assert start == payload.size
    assert np.array_equal(libjpeg.read(header + scan[:-2] + b"\xff\xd9")[0].reshape(-1, 64), q)


@BLOCKS
@PREDICTIONS
def test_framings_have_the_same_codes(q, dc):
    whole, bits = rle.encode(q, "stream", dc)
    blocks, sizes = rle.encode(q, "block", dc)
    string, ends = bits_of(whole), np.cumsum(bits).tolist()
    codes = [string[start:end] for start, end in zip([0] + ends, ends, strict=False)]
    assert blocks.tobytes() == framed(codes)
    assert whole.tobytes() == bytes_of("".join(codes))
    assert sizes.tolist() == [1 + -(-len(code) // 8) for code in codes]


@FRAMINGS
@PREDICTIONS
@pytest.mark.parametrize("count", [0, 1, 2, 7, 8, 9, 1000])
def test_decode_reverses_encode(framing, dc, count):
    q = DATA["corners"][-count:] if count else DATA["corners"][:0]
    payload, sizes = rle.encode(q, framing, dc)
    assert payload.dtype == np.uint8 and sizes.dtype == np.int64
    decoded = rle.decode(payload, count, framing, dc)
    assert decoded.dtype == np.int8 and np.array_equal(decoded, q)
    assert np.array_equal(rle.sizes(payload, count, framing), sizes)
    salvaged = rle.salvage(payload, count, framing, dc)
    assert np.array_equal(salvaged.blocks, q) and not salvaged.errors.any()
    assert np.array_equal(rle.encode(q.reshape(-1, 8, 8), framing, dc)[0], payload)
    assert np.array_equal(rle.decode(payload.tobytes(), count, framing, dc), q)
    assert np.array_equal(rle.sizes(payload.tobytes(), count, framing), sizes)


def test_sizes_of_the_largest_and_the_smallest_block():
    q = np.concatenate([np.full((1, 64), -128), np.zeros((1, 64))]).astype(np.int8)
    assert rle.encode(q, "stream")[1].tolist() == [1148, 6]
    assert rle.encode(q, "block")[1].tolist() == [145, 2]


@pytest.mark.parametrize("cdus", [1, 3, 8])
def test_the_splitter_finds_blocks_by_their_lengths(cdus):
    q = DATA["20 %"]
    payload, sizes = stream.interleave(*rle.encode(q), cdus)
    assert np.array_equal(rle.sizes(payload, len(q)), sizes)
    assert np.array_equal(rle.decode(stream.deinterleave(payload, sizes, cdus)[0], len(q)), q)


def huffman_codes():
    """Codes (strings of bits) to symbols, for DC and AC, from a file that Pillow wrote; T.81, figure C.2."""
    file = io.BytesIO()
    PIL.Image.new("L", (8, 8)).save(file, "JPEG")
    tables, rest = [], file.getvalue()
    while b"\xff\xc4" in rest:
        rest = rest[rest.index(b"\xff\xc4") + 5 :]
        counts, rest = rest[:16], rest[16:]
        codes, code = {}, 0
        for length, count in enumerate(counts, 1):
            for _ in range(count):
                codes[f"{code:0{length}b}"], rest = rest[0], rest[1:]
                code += 1
            code *= 2
        tables.append(codes)
    return tables


CODES = [{code: symbol for code, symbol in codes.items() if symbol % 16 <= 8} for codes in huffman_codes()]


def plain(bits):
    """Decode a block from a string of bits, one code at a time: values, error, and what is left behind good codes."""
    values, place, codes = [0] * 64, 0, CODES[0]
    while place < 64:
        code = next((bits[:n] for n in range(1, 17) if bits[:n] in codes), "")
        run, category = divmod(codes.get(code, 0), 16)
        end = len(code) + category
        if not code or end > len(bits):
            return values, 1 if len(bits) >= 16 else 3, bits
        first, codes = codes is CODES[0], CODES[1]
        if (run, category) == (0, 0) and not first:
            return values, 0, bits[end:]
        place += run
        if place > (63 if category or first else 62):
            return values, 2, bits
        if category:
            value = int(bits[len(code) : end], 2)
            values[ZIGZAG[place]] = value if bits[len(code)] == "1" else value - 2**category + 1
        place, bits = place + 1, bits[end:]
    return values, 0, bits


def salvaged(payload, n, framing, dc):
    """`rle.salvage` by `plain`: lists of blocks and errors."""
    rest, bits, blocks, errors, total = bytes(payload), bits_of(payload), [], [], 0
    for _ in range(n):
        if framing == "block":
            bits, rest = bits_of(rest[1 : 1 + rest[0]] if rest else b""), rest[1 + rest[0] if rest else 0 :]
        values, error, after = plain(bits)
        if framing == "stream" and errors and errors[-1]:
            values, error, after = [0] * 64, 4, bits
        elif dc == "pred" and after != bits:
            values[0] = total = total + values[0]
        blocks.append([(v + 128) % 256 - 128 for v in values])
        errors.append(error)
        bits = after
    return blocks, errors


ZERO = "001010"


@pytest.mark.parametrize("codes, error, values", [
    ("", 3, []), ("00", 3, []), ("1110", 3, []), ("01111" + "001", 3, [3, 1]), ("00001" + "101", 3, [0, 1]),
    ("1" * 16, 1, []), ("1111110" + "0" * 17, 1, []), ("01111" + "1" * 16, 1, [3]),
    ("0101" + "1111111110000010" + "0" * 12, 1, [1]), ("0101" + "1111111110000011" + "0" * 12, 1, [1]),
    ("0101" + 4 * "11111111001" + "001" + "1010", 2, [1]), ("0101" + 47 * "001" + "11111111001" + "001", 2, [1] * 48),
    ("0101" + 3 * "11111111001" + "1111111111110101" + "1" + "1010", 2, [1]),
    ("0101" + 46 * "001" + "11111111001" + "001", 0, [1] * 47 + [0] * 16 + [1]),
    ("111110" + "10000000" + "1010", 0, [-128]), ("111110" + "00000000" + "1010", 0, [1]),  # 128 and -255
])  # fmt: skip
def test_values_in_front_of_an_error_stay_and_the_next_block_is_found(codes, error, values):
    payload = framed([codes, "01110" + "1010", ZERO])
    expected = np.zeros((3, 64), np.int8)
    expected[0, ZIGZAG[: len(values)]] = values
    expected[1, 0] = 2
    blocks, errors = rle.salvage(payload, 3)
    assert errors.tolist() == [error, 0, 0]
    assert np.array_equal(blocks, expected)
    if error:
        with pytest.raises(ValueError, match=f"block 0 is damaged: {rle.REASONS[error]}"):
            rle.decode(payload, 3)
    else:
        assert np.array_equal(rle.decode(payload, 3), expected)


@FRAMINGS
@PREDICTIONS
@pytest.mark.parametrize("seed", range(8))
def test_damage_gives_what_a_plain_decoder_makes_of_it(framing, dc, seed):
    """Wrong bits anywhere, length bytes among them; and bytes that are random altogether."""
    random = np.random.default_rng(seed)
    q = random_blocks(30, 0.3, seed)
    payload = rle.encode(q, framing, dc)[0]
    if seed % 2:
        payload = payload ^ np.packbits(random.random((payload.size, 8)) < 0.002, axis=1)[:, 0]
    else:
        payload = random.integers(0, 256, payload.size).astype(np.uint8)
        payload[random.random(payload.size) < 0.1] = 0xFF
    blocks, errors = salvaged(payload, 30, framing, dc)
    result = rle.salvage(payload, 30, framing, dc)
    assert result.errors.tolist() == errors
    assert result.blocks.tolist() == blocks
    if any(errors):
        with pytest.raises(ValueError, match=f"block {np.flatnonzero(errors)[0]} is damaged"):
            rle.decode(payload, 30, framing, dc)


@pytest.mark.parametrize("seed", range(20))
def test_damage_in_the_codes_of_a_block_harms_no_other(seed):
    random = np.random.default_rng(seed)
    q = random_blocks(20, 0.3, seed)
    payload, sizes = rle.encode(q)
    k = random.integers(20)
    start = sizes[:k].sum()
    payload[start + 1 : start + sizes[k]] ^= random.integers(0, 256, sizes[k] - 1).astype(np.uint8)
    blocks, errors = rle.salvage(payload, 20)
    others = np.arange(20) != k
    assert np.array_equal(blocks[others], q[others]) and not errors[others].any()
    assert np.array_equal(rle.sizes(payload, 20), sizes)
    assert errors[k] or not np.array_equal(blocks[k], q[k])


@FRAMINGS
def test_a_payload_of_another_length_is_refused(framing):
    """All that are shorter, and longer ones."""
    q = np.concatenate([random_blocks(4, 0.3), np.zeros((2, 64), np.int8)])
    payload = rle.encode(q, framing)[0]
    wrong = [payload[:end] for end in range(payload.size)]
    wrong += [np.pad(payload, (0, n), constant_values=fill) for n in (1, 2, 200) for fill in (0, 0xFF)]
    for data in wrong:
        for read in (rle.decode, rle.sizes):
            with pytest.raises(ValueError, match=r"block \d+ is damaged|do not add up"):
                read(data, len(q), framing)
        assert rle.salvage(data, len(q), framing).blocks.shape == q.shape


@FRAMINGS
@pytest.mark.parametrize("count", [0, 1, 99, 101, 102])
def test_another_number_of_blocks_is_refused(framing, count):
    payload = rle.encode(np.zeros((100, 64), np.int8), framing)[0]
    for read in (rle.decode, rle.sizes):
        with pytest.raises(ValueError, match=r"block \d+ is damaged|do not add up"):
            read(payload, count, framing)


@pytest.mark.parametrize("block", [b"\x28", b"\x2a", b"\x2b\xff", b"\x2b\x00"])
def test_anything_but_ones_up_to_the_byte_is_refused(block):
    q = np.zeros((2, 64), np.int8)
    payload = bytes([len(block)]) + block + b"\1\x2b"
    blocks, errors = rle.salvage(payload, 2)
    assert np.array_equal(blocks, q) and not errors.any()
    with pytest.raises(ValueError, match="block 0 is damaged: behind its codes is more than"):
        rle.decode(payload, 2)
    with pytest.raises(ValueError, match=r"block 0 is damaged|do not add up"):
        rle.decode(block, 1, "stream")


@pytest.mark.parametrize("q", [
    np.zeros((2, 64), np.uint8), np.zeros((2, 64)), np.zeros(64, np.int8), np.zeros((2, 63), np.int8),
    np.zeros((2, 4, 16), np.int8), np.int8(3),
])  # fmt: skip
def test_other_blocks_are_refused(q):
    with pytest.raises(ValueError, match="legal is int8"):
        rle.encode(q)


def test_other_framings_and_predictions_are_refused():
    q = np.zeros((1, 64), np.int8)
    for wrong in ({"framing": "blocks"}, {"framing": None}, {"dc": "diff"}, {"dc": True}):
        for call, data in ((rle.encode, (q,)), (rle.decode, (b"", 0)), (rle.salvage, (b"", 0))):
            with pytest.raises(ValueError, match=f"{next(iter(wrong))} is"):
                call(*data, **wrong)
    with pytest.raises(ValueError, match="framing is 'bits', legal are block and stream"):
        rle.sizes(b"", 0, "bits")
