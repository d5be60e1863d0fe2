"""Values that make MX's units meet their corners."""

import numpy as np

__all__ = ["SPECIAL", "blocks", "corners"]

SPECIAL = np.array([np.nan, -np.nan, np.inf, -np.inf, 1e-45, -1e-42, -0.0, 0.0, 3.4028235e38, -3.4e38, 1.1754944e-38,
                    -1.2e-38, 2.0**127, 1.0], np.float32)


def blocks(random, n):
    """float32 [n, 64]: halves of one magnitude or of many, near the ends of float32 or not, with ties, with values that
    are none, of any bits."""
    x = random.standard_normal((2 * n, 32))
    kind = random.integers(6, size=2 * n)
    exponents = np.where(random.random(2 * n) < 0.3, random.choice([-126, -124, -118, 100, 122, 126], 2 * n),
                         random.integers(-60, 60, 2 * n))
    x = np.where((kind == 1)[:, None], np.ldexp(np.rint(np.ldexp(x, 5)), -5), x)  # few bits: ties
    x = np.where((kind == 2)[:, None], np.ldexp(x, random.integers(-12, 2, x.shape)), x)
    with np.errstate(over="ignore", under="ignore"):
        x = np.ldexp(x, exponents[:, None]).astype(np.float32)
    some = (random.random(x.shape) < 0.06) & (kind == 3)[:, None]
    x[some] = random.choice(SPECIAL, some.sum())
    x[kind == 4] = random.integers(0, 1 << 32, (int((kind == 4).sum()), 32), np.uint32).view(np.float32)
    x[random.random(2 * n) < 0.03] = 0
    return x.reshape(n, 64)


def corners(form):
    """float32 [n, 64]: of a format, each code's value, the middles between, and the numbers on either side of both, at
    four scales; greatest values on either side of every rule's threshold, at both ends of the exponents; each special
    value alone and beside others."""
    bits = form.mantissa
    steps = np.arange(1, 4 << bits) / 2 ** (bits + 1)  # of the element's half step, up to 2
    near = np.concatenate([steps, steps * 2.0**-bits, 1 + steps / 2]).astype(np.float32)
    near = np.unique(np.concatenate([near, np.nextafter(near, np.float32(0)), np.nextafter(near, np.float32(9))]))
    near = np.concatenate([near, -near])
    halves = []
    for exponent in (0, -4, -form.bias, 1 - form.bias - bits):
        for tops in (1.0, 1.5, 1.99):
            values = np.ldexp(near, exponent).astype(np.float32)
            values = np.pad(values, (0, -len(values) % 31)).reshape(-1, 31)
            halves.append(np.hstack([np.full((len(values), 1), tops, np.float32), values]))
    thresholds = np.array([1, 1.5, 1.75, 1.875, 1.9375, 1.96875, 127 / 64, 1.9921875, 1 + 127 / 128], np.float32)
    thresholds = np.concatenate([thresholds, np.nextafter(thresholds, np.float32(0)),
                                 np.nextafter(thresholds, np.float32(9))])
    for exponent in (-126, -125, -120, -112, -110, 0, 119, 126, 127):
        tops = np.ldexp(thresholds, exponent).astype(np.float32)
        tops = tops[np.isfinite(tops)]
        half = np.zeros((len(tops), 32), np.float32)
        half[np.arange(len(tops)), np.arange(len(tops)) % 32] = tops
        half[:, 31] = -tops / 2
        halves.append(half)
    for beside in (0, 1):
        half = np.full((len(SPECIAL), 32), beside, np.float32)
        half[np.arange(len(SPECIAL)), 2 * np.arange(len(SPECIAL)) % 31] = SPECIAL
        halves.append(half)
    x = np.concatenate(halves)
    return np.pad(x, ((0, len(x) % 2), (0, 0))).reshape(-1, 64)
