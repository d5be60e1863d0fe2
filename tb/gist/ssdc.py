"""Tensors, arrays and beats for the benches of SSDC."""

import numpy as np

from actcodec.golden.gist import ssdc
from tb.harness import ROOT, chunks, sectors

ROW = 256
ARRAYS = ("values", "columns", "counts")
CORNERS = [1, 1 << 31 | 1, 0x7F_FFFF, 0x80_0000, 0x3F80_0000, 0x7F7F_FFFF, 0x7F80_0000, 0xFF80_0000, 0x7F80_0001,
           0xFFC0_0000, 0x7FFF_FFFF, 0xFFFF_FFFF]
LENGTHS = [1, 7, 8, 9, 15, 16, 17, 247, 248, 249, 255, 256, 257, 264, 511, 512, 513, 1000, 16 * ROW, 17 * ROW + 3]


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


def varied(random):
    """Tensors of many lengths and densities."""
    yield np.zeros(0, np.uint32)
    for length in LENGTHS:
        yield from (sparse(random, length), sparse(random, length, 0.02), np.zeros(length, np.uint32),
                    np.full(length, 1 << 31, np.uint32), dense(random, length), runs(random, length))


def around(random):
    """Tensors of 300 words of which a single one is not zero, or is, at every seventh position."""
    for position in range(0, 300, 7):
        words, here = dense(random, 300), np.arange(300) == position
        yield np.where(here, 0, words).astype(np.uint32)
        yield np.where(here, words, 0).astype(np.uint32)


def masked(random):
    """A tensor whose sectors have every mask once."""
    masks = np.unpackbits(random.permutation(256).astype(np.uint8)).astype(bool)
    return np.where(masks, dense(random, 2048), 0).astype(np.uint32)


def activations():
    """Words of the sample's ReLU tensors."""
    tensors = np.load(ROOT / "actcodec" / "data" / "resnet20.npz")
    relus = [name for name in tensors if "relu" in name.lower()]
    assert len(relus) >= 2
    for name in relus:
        words = np.ascontiguousarray(tensors[name]).reshape(-1)[:8000].view(np.uint32)
        assert 0.2 < np.count_nonzero(words) / words.size < 0.8
        yield words
