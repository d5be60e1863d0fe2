"""Random numbers against Python's integers, the contract's vectors, and SciPy's chi-square; rounding against its mean.
"""

from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from actcodec.golden.division import codec, dither, view
from tb.judges.division import oracle

BITS = pytest.mark.parametrize("bits", dither.BITS)
SURPRISE = 1e-3  # of a p-value, with seeds that do not change


def test_hash_and_first_numbers_are_the_published_vectors():
    pairs = [(1, 0), (0x12345678, 5), (0xFFFFFFFF, 0xFFFFFFFF)]
    assert [hex(dither.mix(*pair)) for pair in pairs] == ["0x42be2c6f", "0x80ed847a", "0xb91832b3"]
    assert dither.phases(np.arange(1), 1)[0, :8].tolist() == [
        [22, 9], [4, 16], [28, 24], [28, 9], [30, 30], [21, 7], [7, 19], [13, 4]]


def test_random_numbers_are_those_of_pythons_integers():
    groups = np.array([0, 1, 2, 7, 0xFFFF, 0x10000, 0x12345678, 0xFFFFFFFF])
    for seed in (0, 1, 0xFFFF, 0x10000, 0xDEADBEEF, 0xFFFFFFFF):
        expected = [[list(pair) for pair in oracle.random_numbers(seed, group)] for group in groups.tolist()]
        assert dither.phases(groups, seed).tolist() == expected


def test_seeds_and_groups_have_numbers_of_their_own():
    """The hash is a bijection of the groups for each seed; nearby seeds have nothing in common."""
    groups = np.arange(1 << 16)
    hashes = np.concatenate([dither.mix(seed, groups) for seed in range(4)])
    assert all(np.unique(part).size == groups.size for part in np.split(hashes, 4))
    assert np.unique(hashes).size > 0.9999 * hashes.size


def uniform(a, b):
    """p-value of the pairs of two arrays of numbers of 5 bits."""
    return stats.chisquare(np.bincount(32 * a.ravel().astype(int) + b.ravel(), minlength=1024)).pvalue


def test_numbers_are_uniform_and_independent():
    """Of the same row, of neighbouring rows, of rows 8 apart, of groups, and of seeds."""
    random = dither.phases(np.arange(4096), 12345)
    even, odd = random[..., 0], random[..., 1]
    seeds = [dither.phases(np.arange(1024), seed) for seed in range(1000, 1005)]
    p = {"lanes": uniform(even, odd),
         "rows": uniform(even[:, :-1], even[:, 1:]), "rows, other lanes": uniform(even[:, :-1], odd[:, 1:]),
         "odd rows": uniform(odd[:, :-1], odd[:, 1:]),
         "blocks": uniform(even[:, :-8], even[:, 8:]), "blocks, odd": uniform(odd[:, :-8], odd[:, 8:]),
         "groups": uniform(even[:-1], even[1:]), "groups, odd": uniform(odd[:-1], odd[1:]),
         "first rows": uniform(even[:, 0], odd[:, 0]), "first rows of groups": uniform(even[:-1, 0], even[1:, 0])}
    for i, (one, other) in enumerate(pairwise(seeds)):
        p[f"seeds {i}"] = uniform(one[..., 0], other[..., 0])
        p[f"seeds {i}, odd"] = uniform(one[..., 1], other[..., 1])
    assert min(p.values()) > SURPRISE, p
    assert max(p.values()) < 1 - SURPRISE, p
    assert stats.kstest(list(p.values()), "uniform").pvalue > SURPRISE, p


@BITS
def test_every_phase_gives_every_threshold_as_often(bits):
    phases = np.stack(np.meshgrid(np.arange(32), np.arange(32), indexing="ij"), -1).astype(np.uint8)
    r = dither.thresholds(phases, bits).reshape(-1, 8)
    count = 1 << 6 - bits
    for lane in r.T:
        assert np.bincount(lane).tolist() == [1024 // count] * count


def test_lanes_of_one_number_lie_in_the_quarters_of_a_step_neighbours_in_its_halves():
    r = dither.thresholds(np.arange(32, dtype=np.uint8)[:, None].repeat(2, 1), 1).astype(int)
    for first in (0, 1):
        four = r[:, first::2]
        assert np.array_equal(np.sort(four // 8, axis=1), np.tile(np.arange(4), (32, 1)))
        for one, other in ((0, 1), (2, 3), (0, 2), (1, 3)):
            assert np.all(np.abs(four[:, one] - four[:, other]) >= 8)
            assert np.all(four[:, one] // 16 != four[:, other] // 16)


@BITS
def test_codes_of_all_phases_add_up_to_the_value(bits):
    """Exactly unbiased: 32 codes of each value of y - base in each lane, and the variance is f (1 - f) of a step."""
    unit = 1 << 6 - bits
    gap = np.arange(64 - unit + 1)
    noise = dither.thresholds(np.arange(32, dtype=np.uint8)[:, None].repeat(2, 1), bits)[:, None]
    for base in (-128, -100, 0, 60):
        y = np.broadcast_to((base + gap)[:, None], (gap.size, 8)).astype(np.int16)
        codes, t = codec.quantize(y, np.full((1, 1), base, np.int8), noise, bits)
        assert codes.shape == (32, gap.size, 8) and codes.max() == 2**bits - 1 and t.min() == 0 and t.max() <= 63
        values = codes.astype(int) * unit
        assert np.array_equal(values.sum(0), np.broadcast_to(32 * gap[:, None], (gap.size, 8)))
        part = gap % unit
        assert np.array_equal((values**2).sum(0) - 32 * gap[:, None] ** 2,
                              np.broadcast_to(32 * (part * (unit - part))[:, None], (gap.size, 8)))


@BITS
def test_noise_is_that_of_the_block_s_group_or_half_a_step(bits):
    v = view.view((2, 3, 24, 40))
    r = dither.noise(v, bits, 0xC0FFEE)
    assert r.shape == (90, 8, 8)
    for block in (0, 1, 5, 89):
        pairs = list(oracle.random_numbers(0xC0FFEE, block // 4))[8 * (block % 4) :][:8]
        expected = [[(pair[lane % 2] ^ xor) >> bits - 1 for lane, xor in enumerate([0, 0, 16, 16, 24, 24, 8, 8])]
                    for pair in pairs]
        assert r[block].tolist() == expected
    assert np.all(dither.noise(v, bits, rounding="nearest") == 1 << 5 - bits)


@pytest.mark.parametrize(("arguments", "text"), [
    ({"bits": 0}, "bits is 0, legal are the integers 1 to 4"), ({"bits": 8}, "bits is 8"), ({"bits": 5}, "bits is 5"),
    ({"bits": True}, "bits is True"), ({"bits": 2.0}, "bits is 2.0"), ({"bits": "2"}, "bits is '2'"),
    ({"seed": -1}, "seed is -1, legal are the integers 0 to 2.32 - 1"), ({"seed": 1 << 32}, "seed is 4294967296"),
    ({"seed": 1.0}, "seed is 1.0"), ({"seed": None}, "seed is None"),
    ({"rounding": "up"}, "rounding is 'up', legal are stochastic, nearest")])  # fmt: skip
def test_wrong_parameters_are_refused(arguments, text):
    with pytest.raises(ValueError, match=text):
        dither.noise(view.view((1, 1, 8, 8)), **{"bits": 2, **arguments})
