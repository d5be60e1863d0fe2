"""What the judges of `nibble` and `rice` share: blocks of every kind, real tensors, and a reader of single bits."""

from pathlib import Path

import numpy as np
from scipy.special import entr

import actcodec
from actcodec.golden.jpegact import dct, quantize, sfpr
from actcodec.golden.offload import blocks

SAMPLE = Path(actcodec.__file__).parent / "data" / "resnet20.npz"


class Bits:
    """The bits of a block, least significant one of a byte first; zeros behind its end."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, width=1):
        value = 0
        for i in range(width):
            byte = self.at // 8
            if byte < len(self.data):
                value |= (self.data[byte] >> self.at % 8 & 1) << i
            self.at += 1
        return value


class Writer:
    """Bits to bytes, least significant one first."""

    def __init__(self):
        self.bits = []

    def put(self, value, width=1):
        assert 0 <= value < 1 << width
        self.bits += [value >> i & 1 for i in range(width)]

    def data(self):
        padded = self.bits + [0] * (-len(self.bits) % 8)
        return bytes(sum(bit << i for i, bit in enumerate(padded[j : j + 8])) for j in range(0, len(padded), 8))


def unsigned(x, straight):
    """u of a value."""
    return x % 256 if straight else 2 * x if x >= 0 else -2 * x - 1


def signed(u, straight):
    """The value of u."""
    return (u + 128) % 256 - 128 if straight else -(u + 1) // 2 if u % 2 else u // 2


def split(payload, n, skip):
    """n blocks of any payload, as a list of (bytes, 65 at most; whether it is cut); skip(first byte) bytes follow a
    first one."""
    pieces, at = [], 0
    for _ in range(n):
        end = at + 1 + skip(payload[at]) if at < len(payload) else at + 1
        pieces.append((payload[at : min(end, at + 65)], end > len(payload)))
        at = min(end, len(payload))
    return pieces, payload[at:]


def of_every_kind(seed=0, n=400):
    """Blocks of every density, int8 [n, 64], with values small and up to both ends, half of them falling to the end."""
    random = np.random.default_rng(seed)
    size = 2.0 ** random.uniform(-2, 8, (n, 1)) * np.where(random.random((n, 1)) < 0.5, 0.93 ** np.arange(64), 1)
    x = np.where(random.random((n, 64)) < random.random((n, 1)), random.laplace(size=(n, 64)) * size, 0)
    x[random.random(x.shape) < 0.003] = -128
    x = np.clip(np.rint(x), -128, 127).astype(np.int8)
    x[:: n // 16] = 0
    x[1 :: n // 16] *= np.arange(64) == random.integers(0, 64)
    return x


def of_a_source(seed, scales, n=4000):
    """Blocks of independent values, int8 [n, 64], of Laplace distributions rounded to integers, and their bits each."""
    edges = np.arange(-128, 129) - 0.5
    tail = np.exp(-np.abs(edges) / scales[:, None]) / 2
    p = np.diff(np.where(edges < 0, tail, 1 - tail), axis=1)
    p /= p.sum(axis=1, keepdims=True)
    random = np.random.default_rng(seed)
    values = np.stack([random.choice(np.arange(-128, 128), n, p=row) for row in p], axis=1)
    return values.astype(np.int8), float(entr(p).sum() / np.log(2))


def tensors(kind):
    """Real activations whose names begin so."""
    with np.load(SAMPLE) as sample:
        return [x for name, x in sample.items() if name.startswith(kind)]


def coded(x, dqt=None):
    """Blocks of a tensor as a coder meets them, int8 [n, 64]: through the DCT, column by column, or straight ones."""
    view, k = blocks.view(x.shape), sfpr.scales(x).k
    y = blocks.split(sfpr.quantize(x.reshape(view.rows, view.width), k[view.channel, None]), view, dqt is not None)
    if dqt is None:
        return y
    q = quantize.shift(dct.forward(y), quantize.shifts(quantize.table(dqt)))
    return np.stack([q[:, place % 8, place // 8] for place in range(64)], axis=1)


def frequency_entropy(x):
    """Bits that blocks need by the entropy of each of the 64 places alone."""
    counts = np.stack([np.bincount(column.view(np.uint8), minlength=256) for column in x.T.copy()])
    return float(entr(counts / len(x)).sum() / np.log(2)) * len(x)
