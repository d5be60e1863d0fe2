"""Memory traffic against what others wrote: strided views of NumPy, and itertools.groupby over single words."""

from itertools import groupby

import numpy as np
import pytest

from actcodec.golden.offload.memory import traffic
from actcodec.golden.offload.memory.traffic import Places

SHAPES = [(1, 8, 32), (5, 28, 112), (7, 13, 60), (9, 3, 12), (4, 32, 260), (6, 224, 1000)]  # rows, width, stride


def rows(count, width, stride, base, size=4):
    """Places of the sectors of an array of rows."""
    row, tile = np.divmod(np.arange(count * -(-width // 8)), -(-width // 8))
    words = np.minimum(width - 8 * tile, 8)
    return Places(base + row * stride + 8 * size * tile, words, row // 2, row % 2)


@pytest.mark.parametrize("base", [0, 4, 28, 4092])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("size", [2, 4])
def test_gather_and_scatter_are_a_strided_view(shape, base, size):
    count, width, stride = shape
    stride, base = stride * size // 4, base * size // 4
    random = np.random.default_rng(base)
    words = random.integers(0, 1 << 32, 8192).astype(f"u{size}")
    places = rows(count, width, stride, base, size)
    view = np.lib.stride_tricks.as_strided(words[base // size :], (count, width), (stride, size))
    padded = np.pad(view, ((0, 0), (0, -width % 8))).reshape(-1, 8)
    assert np.array_equal(traffic.gather(words, places), padded)

    sectors = random.integers(0, 1 << 32, padded.shape).astype(words.dtype)
    after = traffic.scatter(words, places, sectors)
    expected = words.copy()
    view = np.lib.stride_tricks.as_strided(expected[base // size :], (count, width), (stride, size))
    view[...] = sectors.reshape(count, -1)[:, :width]
    assert np.array_equal(after, expected)


def anywhere(seed):
    random = np.random.default_rng(seed)
    count = 400
    word = np.where(random.random(count) < 0.2, random.integers(0, 4000, count), 0)
    word = np.abs(np.cumsum(random.integers(0, 12, count)) + word)
    return Places(4 * word, random.integers(0, 9, count), random.integers(0, 60, count), random.integers(0, 2, count))


@pytest.mark.parametrize("places", [*(rows(*shape, 20) for shape in SHAPES), *map(anywhere, range(8))])
def test_beats_are_the_runs_of_equal_beats_of_the_words(places):
    words = [address // 4 + k for address, count in zip(places.address.tolist(), places.words.tolist(), strict=True)
             for k in range(count)]
    assert traffic.beats(places).index.tolist() == [beat for beat, _ in groupby(word // 8 for word in words)]
    half = places._replace(address=places.address // 2)
    assert traffic.beats(half, size=2).index.tolist() == [beat for beat, _ in groupby(word // 16 for word in words)]


@pytest.mark.parametrize("places", [*(rows(*shape, 20) for shape in SHAPES), *map(anywhere, range(8))])
def test_lines_of_scales_are_the_runs_of_equal_lines_of_each_slot(places):
    table = 0x8000
    beats = traffic.beats(places, table, gather=False)
    assert beats.scale.all()
    for slot in (0, 1):
        lines = (places.channel[places.slot == slot] // 8).tolist()
        assert (beats.index[places.slot[beats.sector] == slot] - table // 32).tolist() == [
            line for line, _ in groupby(lines)]
    both = traffic.beats(places, table)
    assert both.index[~both.scale].tolist() == traffic.beats(places).index.tolist()
    assert np.array_equal(both.index[both.scale], beats.index) and (np.diff(both.sector) >= 0).all()
    first = np.flatnonzero(both.scale)
    assert (both.sector[first] != np.append(-1, both.sector)[first]).all(), "a line comes in front of its sector"


@pytest.mark.parametrize("places", [*(rows(*shape, 20) for shape in SHAPES), *map(anywhere, range(8))])
@pytest.mark.parametrize("table", [None, 0x8000])
def test_bursts_are_the_runs_of_ascending_beats_in_a_block(places, table):
    beats = traffic.beats(places, table)
    # A run has the same distance between a beat's index and its number; a line of scales is nobody's neighbour.
    keys = [(index - k, index // 8, k if scale else -1)
            for k, (index, scale) in enumerate(zip(beats.index.tolist(), beats.scale.tolist(), strict=True))]
    runs = [list(run) for _, run in groupby(range(len(keys)), key=keys.__getitem__)]
    address, length = traffic.bursts(beats)
    assert length.tolist() == [len(run) for run in runs]
    assert address.tolist() == [32 * int(beats.index[run[0]]) for run in runs]
    assert (address % 4096 + 32 * length <= 4096).all()


def test_scales_are_words_of_the_table():
    words = np.arange(1024, dtype=np.uint32)
    places = Places(*np.zeros((3, 5), int)[:2], np.array([0, 7, 8, 100, 3]), np.zeros(5, int))
    assert traffic.scales(words, places, 0x400).tolist() == [256, 263, 264, 356, 259]


def test_a_tensor_of_padding_touches_nothing():
    places = Places(np.arange(0, 64, 4), np.zeros(16, int), np.zeros(16, int), np.zeros(16, int))
    beats = traffic.beats(places)
    assert beats.index.size == 0 and all(part.size == 0 for part in traffic.bursts(beats))
    assert not traffic.gather(np.ones(64, np.uint32), places).any()
