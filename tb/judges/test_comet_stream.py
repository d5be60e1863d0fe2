"""Huffman coding and interleaving against an encoder and a decoder that pass strings of single bits, and streams that
are no streams."""

import numpy as np
import pytest

from actcodec.golden.comet import deinterleave, huffman, interleave
from actcodec.golden.comet.book import Book
from actcodec.golden.comet.huffman import Error
from tb.judges import comet_oracles

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")

EDGES = [(2, 0, 0, 0, 0, 0, 0, 0), (0, 0, 0, 0, 0, 0, 0, 256), (1, 1, 1, 1, 1, 1, 1, 2), (1, 1, 2, 0, 0, 0, 0, 0),
         (1, 0, 0, 0, 0, 0, 0, 128), (0, 1, 3, 2, 4, 4, 4, 8), (0, 4, 0, 0, 0, 0, 0, 0)]
BOOKS = [*EDGES, *(tuple(comet_oracles.some_book(np.random.default_rng(seed))) for seed in range(25))]
COUNTS = [0, 1, 7, 8, 9, 300]
EACH = pytest.mark.parametrize("counts", BOOKS, ids=str)
ERRORS = {"": Error(0), "short": Error.SHORT, "excess": Error.EXCESS}


@pytest.fixture(params=["by bytes", "by steps"], autouse=True)
def way(request, monkeypatch):
    """Decodes all that can be by bytes, or nothing."""
    monkeypatch.setattr(deinterleave, "_SMALL", 0 if request.param == "by bytes" else 1 << 30)
    monkeypatch.setattr(deinterleave, "_FEW", 0)


def values(count, U, seed):
    """Symbols of every kind of escape next to coded ones, outliers and their floats (any bits)."""
    random = np.random.default_rng(seed)
    kind = random.integers(0, 8, count)
    u = np.where(kind < 5, random.integers(0, U, count), random.integers(0, 4096, count))
    edge = random.choice([0, 1, U - 1, U, U + 1, U + 223, U + 224, U + 225, 255, 256, 4095], count)
    u = np.where(kind == 7, edge, u)
    outliers = random.random(count) < random.choice([0, 0.05, 1])
    x = random.integers(0, 1 << 32, count, dtype=np.uint32).view(np.float32)
    return u, outliers, x


def floats(outliers, x):
    return [int(bits) if outlier else None for outlier, bits in zip(outliers, x.view(np.uint32), strict=True)]


def decoded(stream, count, book):
    u, outliers, x, error = huffman.decode(stream, count, book)
    assert (u.dtype, outliers.dtype, x.dtype) == (np.uint16, bool, np.float32)
    assert not x[~outliers].view(np.uint32).any()
    return u.tolist(), floats(outliers, x), error


@EACH
def test_streams_equal_those_of_plain_loops_both_ways(counts):
    book = Book(counts)
    for seed, count in enumerate(COUNTS):
        u, outliers, x = values(count, book.U, seed)
        stream, steps = comet_oracles.encode(u, floats(outliers, x), counts)
        given, lengths = huffman.steps(u, outliers, x, book)
        assert [f"{v:0{n}b}" for v, n in zip(given.flat, lengths.flat, strict=True)] == [b for s in steps for b in s]
        assert interleave.interleave(given, lengths) == stream
        assert decoded(stream, count, book) == (u.tolist(), floats(outliers, x), Error(0))
        assert comet_oracles.decode(stream, count, counts) == (u.tolist(), floats(outliers, x), "")


@EACH
def test_symbols_reverses_steps(counts):
    book = Book(counts)
    u, outliers, x = values(301, book.U, 9)
    back, escapes, content = huffman.symbols(huffman.steps(u, outliers, x, book), book)
    assert np.array_equal(back, np.pad(u, (0, 3)))
    assert np.array_equal(escapes, np.pad(outliers, (0, 3)))
    assert np.array_equal(content[escapes].view(np.uint32), x[outliers].view(np.uint32))


@EACH
def test_demands_keep_8_to_22_bits_in_every_lane(counts):
    book = Book(counts)
    _, lengths = huffman.steps(*values(2000, book.U, 1), book)
    bits = 8 + np.zeros(8, int)
    for length, asks in zip(lengths, interleave.demands(lengths), strict=True):
        assert bits.min() >= 8
        assert bits.max() <= 22
        assert np.array_equal(asks, bits < 16)
        bits = bits + 8 * asks - length


@EACH
def test_any_bytes_decode_to_all_symbols_and_say_what_was_wrong(counts):
    """Random bytes are rich in escapes of every form, also of symbols that need none."""
    book, random = Book(counts), np.random.default_rng(sum(counts))
    for length in (0, 1, 7, 8, 15, 16, 40, 200, 2000):
        stream = random.integers(0, 256, length, np.uint8).tobytes()
        count = int(random.integers(1, 200))
        u, bits, error = comet_oracles.decode(stream, count, counts)
        assert decoded(stream, count, book) == (u, bits, ERRORS[error])
        assert len(u) == count


@pytest.mark.parametrize("counts", EDGES[:4], ids=str)
def test_a_stream_cut_or_lengthened_anywhere_is_told(counts):
    book = Book(counts)
    u, outliers, x = values(43, book.U, 5)
    stream, _ = comet_oracles.encode(u, floats(outliers, x), counts)
    whole = decoded(stream, 43, book)
    for length in range(len(stream)):
        cut = decoded(stream[:length], 43, book)
        assert cut[2] == Error.SHORT
        assert cut[:2] == comet_oracles.decode(stream[:length], 43, counts)[:2]
    for more in (b"\0", b"\xff" * 9, bytes(1000)):
        assert decoded(stream + more, 43, book) == (*whole[:2], Error.EXCESS)


def test_a_decoder_takes_any_form_of_an_escape():
    book = Book((1, 1, 2, 0, 0, 0, 0, 0))
    lanes = [[1], [223], [224, 0], [224, 200], [239, 255], [240, 0, 0, 0, 0x80, 0x7F], [255, 255, 1, 0, 0xA0, 0xFF], []]
    given, lengths = np.zeros((7, 8), np.uint8), np.ones((7, 8), np.uint8)
    for lane, numbers in enumerate(lanes):
        given[0, lane], lengths[0, lane] = (7, 3) if numbers else (0, 1)
        given[1 : len(numbers) + 1, lane], lengths[1 : len(numbers) + 1, lane] = numbers, 8
    u, outliers, x, error = huffman.decode(interleave.interleave(given, lengths), 8, book)
    assert (u.tolist(), error) == ([4, 226, 0, 200, 4095, 0, 4095, 0], Error(0))
    assert outliers.tolist() == [False] * 5 + [True] * 2 + [False]
    assert x.view(np.uint32)[5:7].tolist() == [0x7F800000, 0xFFA00001]


def test_the_bits_of_lanes_that_wait_in_a_raw_step_do_not_matter():
    book = Book((1, 1, 2, 0, 0, 0, 0, 0))
    u, outliers, x = np.arange(160) % 3, np.arange(160) % 8 == 5, np.full(160, np.nan, np.float32)
    given, lengths = huffman.steps(u, outliers, x, book)
    given.reshape(20, 7, 8)[:, 1:, np.arange(8) != 5] = 1
    result = decoded(interleave.interleave(given, lengths), 160, book)
    assert result == (u.tolist(), floats(outliers, x), Error(0))


@pytest.mark.parametrize("counts, size", [((2, 0, 0, 0, 0, 0, 0, 0), 8 * (2 + 125)), ((0,) * 7 + (256,), 8 + 8 * 1000)])
def test_a_round_without_escapes_takes_one_to_eight_bytes(counts, size):
    book = Book(counts)
    u = np.zeros(8 * 1000, int)
    given, lengths = huffman.steps(u, u > 0, np.zeros(u.size, np.float32), book)
    assert len(given) == 1000
    assert len(interleave.interleave(given, lengths)) == size


def test_a_stream_is_at_most_56_bytes_a_round_and_8():
    book = Book((0,) * 7 + (256,))
    u = np.full(8 * 50, 4095)
    stream = interleave.interleave(*huffman.steps(u, u > 0, np.ones(u.size, np.float32), book))
    assert len(stream) == 56 * 50 + 8


def test_no_values_make_no_bytes():
    book, none = Book((2, 0, 0, 0, 0, 0, 0, 0)), np.zeros(0, int)
    assert interleave.interleave(*huffman.steps(none, none > 0, np.zeros(0, np.float32), book)) == b""
    assert huffman.decode(b"", 0, book)[3] == Error(0)
    assert huffman.decode(b"\0", 0, book)[3] == Error.EXCESS


@pytest.mark.parametrize("few", [0, 32])
@pytest.mark.parametrize("counts", EDGES, ids=str)
def test_long_streams_with_few_escapes_come_back(counts, few, monkeypatch):
    monkeypatch.setattr(deinterleave, "_FEW", few)
    book, random, count = Book(counts), np.random.default_rng(few), 70_000  # more than a part
    u = random.integers(0, book.U, count)
    close = np.arange(count) % 20_000 < 2_000  # escapes in each of these rounds, and in some others
    escaped = random.random(count) < np.where(close, 0.2, 0.001)
    u[escaped] = random.integers(book.U, 4096, np.count_nonzero(escaped))
    outliers, x = escaped & (random.random(count) < 0.1), random.standard_normal(count).astype(np.float32)
    stream = interleave.interleave(*huffman.steps(u, outliers, x, book))
    for end, error in ((len(stream), Error(0)), (len(stream) - 1, Error.SHORT)):
        back, escapes, content, result = huffman.decode(stream[:end], count, book)
        assert result == error
        if not error:
            assert np.array_equal(back, u) and np.array_equal(escapes, outliers)
            assert np.array_equal(content[outliers], x[outliers])
