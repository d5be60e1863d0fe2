"""Native kernels of the block codes make golden's payload, with any table."""

import numpy as np
import pytest
import torch

from actcodec.golden.jpegact import nibble, rice
from actcodec.torch import blockcodes, kernels

CODES = {"nibble": nibble, "rice": rice}


def native(name, x):
    return blockcodes.NATIVE[name](kernels.of(blockcodes.__name__, x))


def blocks(random, n):
    """Blocks of int8 with more or less of an image's spectrum, some of them of zeros."""
    spectrum = np.exp(-np.add.outer(np.arange(8), np.arange(8)) / random.choice([2, 4, 100])).reshape(64)
    x = np.rint(random.normal(size=(n, 64)) * random.choice([0.3, 4, 20, 90]) * spectrum)
    x[random.random(n) < 0.1] = 0
    return np.clip(x, -128, 127).astype(np.int8)


def tables(random, model, x, straight):
    """One that fits the blocks, and any."""
    yield model.fit(x, straight)
    if model is nibble:
        yield nibble.Table(random.integers(0, 8, 16), random.integers(0, 4, 16), straight)
    else:
        yield rice.Table(random.integers(0, 8, 15), random.integers(0, 17), np.sort(random.integers(0, 8, 4)), straight)


@pytest.mark.parametrize("straight", [False, True])
@pytest.mark.parametrize("name", CODES)
@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 3000])
def test_payloads_are_those_of_golden(name, n, straight, random, monkeypatch):
    model, x = CODES[name], blocks(random, n)
    values = torch.from_numpy(x.view(np.uint8))
    coder = native(name, values)
    assert coder.fit(values, straight) == model.fit(x, straight).word
    for table in tables(random, model, x, straight):
        payload, _ = model.encode(x, table)
        assert coder.size(values, table.word) == len(payload)
        encoded = coder.encode(values, table.word)
        assert encoded.data.numpy().tobytes() == payload.tobytes()
        assert encoded.nbytes == len(payload)
        assert torch.equal(blockcodes.decode(name, encoded), values)
        monkeypatch.setattr(kernels, "enabled", False)
        assert torch.equal(blockcodes.decode(name, encoded), values)
        monkeypatch.setattr(kernels, "enabled", True)


@pytest.mark.parametrize("name", CODES)
def test_threads_share_the_blocks(name, random):
    model, x = CODES[name], blocks(random, 5000)
    values, table, threads = torch.from_numpy(x.view(np.uint8)), model.fit(x), torch.get_num_threads()
    payload, _ = model.encode(x, table)
    try:
        torch.set_num_threads(4)
        encoded = native(name, values).encode(values, table.word)
        assert encoded.data.numpy().tobytes() == payload.tobytes()
        assert torch.equal(blockcodes.decode(name, encoded), values)
    finally:
        torch.set_num_threads(threads)


def kinds(random):
    """Blocks for which tables are hard to find: with many steps that change nothing, of very different values, and more
    than a search takes."""
    yield "none", np.zeros((0, 64), np.int8)
    yield "zeros", np.zeros((70, 64), np.int8)
    for value in 1, -1, 7, 127, -128:
        yield f"all {value}", np.full((3, 64), value, np.int8)
        one = np.zeros((130, 64), np.int8)
        one[::2, random.integers(64)] = value
        yield f"one {value}", one
    for n in 1, 2, 63, 65, rice.SAMPLE - 1, rice.SAMPLE + 1, 8193:
        yield f"{n} of a spectrum", blocks(random, n)
    yield "bytes", random.integers(-128, 128, (500, 64), np.int8)
    yield "first values", blocks(random, 400) * (np.arange(64) < 3)
    yield "a ReLU's", np.maximum(np.rint(random.normal(size=(900, 64)) * 40), 0).clip(0, 127).astype(np.int8)
    large = random.random((300, 64)) < 0.01
    yield "some large", np.where(large, 100, random.integers(-1, 2, (300, 64))).astype(np.int8)


@pytest.mark.parametrize("straight", [False, True])
@pytest.mark.parametrize("name", CODES)
def test_tables_are_those_of_golden(name, straight, random):
    for kind, x in kinds(random):
        values = torch.from_numpy(x.view(np.uint8))
        assert native(name, values).fit(values, straight) == CODES[name].fit(x, straight).word, kind


@pytest.mark.parametrize("straight", [False, True])
def test_a_gpus_table_is_of_the_same_blocks(straight, random):
    n = 2 * rice.SAMPLE + 900
    x = blocks(random, n)
    x[np.arange(n) % 3 > 0] = 127  # it takes every third one
    coder = blockcodes.FusedRice(None)  # whose table the CPU finds
    assert coder.fit(torch.from_numpy(x.view(np.uint8)), straight) == rice.fit(x, straight).word


def test_of_steps_that_save_as_much_the_first_is_taken():
    """A search that took others, or steps that save nothing, would end with other tables of these blocks."""
    for seed in range(40):
        random = np.random.default_rng(seed)
        x = random.integers(0, random.integers(2, 9), (random.integers(1, 4), 64), np.int8)
        x[:, random.random(64) < 0.5] = 0
        values = torch.from_numpy(x.view(np.uint8))
        for straight in False, True:
            assert native("rice", values).fit(values, straight) == rice.fit(x, straight).word, seed


def test_of_two_ways_that_is_chosen_whose_nibbles_are_fewer(random):
    """Whichever is tried first, and though what must be larger is not tried; of equals, that which is not straight."""
    ways = set()
    for kind, x in [*kinds(random), *((f"positive, {n}", np.abs(blocks(random, n)) // 2) for n in range(1, 60))]:
        values, tables = torch.from_numpy(x.view(np.uint8)), [nibble.fit(x, straight) for straight in (False, True)]
        sizes = [int(nibble.measure(x, table).sum()) for table in tables]
        encoded, size = blockcodes.smallest("nibble", values, (False, True))
        best = sizes.index(min(sizes))
        assert (encoded.table, size, len(encoded.data)) == (tables[best].word, min(sizes), min(sizes)), kind
        ways.add((best, len(set(sizes))))
    assert ways == {(0, 1), (0, 2), (1, 2)}


@pytest.mark.parametrize("straight", [False, True])
def test_no_payload_of_nibbles_is_below_the_bound(straight, random):
    for kind, x in kinds(random):
        coder = native("nibble", values := torch.from_numpy(x.view(np.uint8)))
        best, least = coder._fit(values, straight)
        for table in nibble.Table.of(best), *tables(random, nibble, x, straight):
            assert least <= nibble.measure(x, table).sum(), kind


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("n", [70, 9000])
def test_of_two_ways_that_is_chosen_whose_table_makes_a_sample_smallest(n, sign, random, monkeypatch):
    """By kernels and by operations; straight for a ReLU's values."""
    x = sign * np.maximum(np.rint(random.normal(size=(n, 64)) * 5), 0)
    x = torch.from_numpy(x.astype(np.int8)).view(torch.uint8)
    encoded, size = blockcodes.smallest("rice", x, (False, True))
    table = rice.Table.of(encoded.table)
    assert table.straight == (sign > 0)
    assert size == len(encoded.data) == rice.measure(x.numpy(), table).sum()
    monkeypatch.setattr(kernels, "enabled", False)
    other, length = blockcodes.smallest("rice", x, (False, True))
    assert (other.table, length) == (table, size)
