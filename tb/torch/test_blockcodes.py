"""Native kernels of the block codes make golden's payload, with any table."""

import numpy as np
import pytest
import torch

from actcodec.golden.jpegact import nibble, rice, rice_sizes
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
    assert coder.fit(values, straight) == model.fit(x, straight)
    for table in tables(random, model, x, straight):
        payload, _ = model.encode(x, table)
        assert coder.size(values, table) == len(payload)
        encoded = coder.encode(values, table)
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
        encoded = native(name, values).encode(values, table)
        assert encoded.data.numpy().tobytes() == payload.tobytes()
        assert torch.equal(blockcodes.decode(name, encoded), values)
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("straight", [False, True])
def test_sizes_under_many_tables_are_those_of_golden(straight, random):
    x = blocks(random, 200).view(np.uint8)
    own = blockcodes.Sizes(kernels.of(blockcodes.__name__, torch.from_numpy(x)), x, straight)
    golden = rice_sizes.Sizes(x, straight)
    np.testing.assert_array_equal(own.sums, golden.sums)
    for _ in range(50):
        first, *k = random.integers(0, 8, 15).tolist()
        e = np.sort(random.integers(0, min(8, 9 - max(k)), 4)).tolist()
        parameters = (first, *k, int(random.integers(17)), *e)
        assert own.total(*parameters) == golden.total(*parameters), parameters


@pytest.mark.parametrize("n", [1, 7, 8, 200, 3001])
def test_tiles_and_lines_are_each_other_by_kernels_and_without(n, random, monkeypatch):
    q = torch.from_numpy(random.integers(-128, 128, (8, 8, n), np.int8))
    x = blockcodes.lines(q, None, True)
    back = blockcodes.values_of_lines(x, None, True)
    assert torch.equal(back, q)
    monkeypatch.setattr(kernels, "enabled", False)
    assert torch.equal(blockcodes.lines(q, None, True), x)
    assert torch.equal(blockcodes.values_of_lines(x, None, True), q)
