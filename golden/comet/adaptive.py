"""The control of the error bound during training (COMET, sections 3.1 to 3.4, equations 1 to 3).

The paper's text has lost signs and a root. It is read so:

    (1)  sigma = 0.01 * M_average
    (2)  M_t = alpha * G_(t-1) + beta * G_t
    (3)  eb = sigma / (a * L_average * sqrt(N * R))

M_average is the mean of |momentum| over a layer's weights (the signed mean would be near 0), L_average the mean of
|gradient of the loss| at the layer's output, N the batch. R, "sparsity", is the share of values that are not zero, as
zeros carry no error. The root is the only reading that fits: a weight's gradient sums N * P * R errors, independent
and uniform within the bound, each times a gradient, P being the positions summed for one weight. Its error has
sigma = g_rms * eb * sqrt(N * P * R / 3), which also gives the coefficient a, for which the text has no value
(`calibrate`). Of "2^k, where k 0 is an integer" k >= 0 is read.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from actcodec.golden.comet import prequantise

RESERVE = 0.05  # share of the memory that `batch` leaves free


def momentum(before: ArrayLike, now: ArrayLike, alpha: float, beta: float) -> NDArray[np.float64]:
    """Equation 2 as printed: the momentum of gradients `before` (of the last iteration) and `now`.

    For training without momentum; where a framework has one, its own is used.
    """
    return alpha * np.asarray(before) + beta * np.asarray(now)


def calibrate(P: int, gradients: ArrayLike) -> float:
    """The coefficient a of equation 3 with which the error of the weights' gradients has the wanted sigma.

    a = sqrt(P / 3) * g_rms / L_average: 0.72 * sqrt(P) for normally distributed gradients. `P` is the number of
    positions summed for one weight, `gradients` are those of the loss at a layer's output. Raises ValueError if all of
    them are 0.
    """
    g = np.abs(np.asarray(gradients, np.float64))
    if not g.any():
        raise ValueError("all gradients are 0: they give no coefficient")
    return math.sqrt(P / 3 * np.mean(g**2)) / float(np.mean(g))


def batch(memory: float, fixed: float, sample: float, ratio: float, maximum: int) -> int:
    """The largest batch, a power of two and at most `maximum`, that needs no more than 95 % of `memory` (bytes).

    `fixed` bytes are needed in any case, `sample` for each sample before compression, which has had `ratio` so far.
    Raises ValueError if there is no room for a single sample, unless `ratio` is positive, and if `maximum` is below 1.
    """
    if not ratio > 0:
        raise ValueError(f"ratio is {ratio}, has to be positive")
    room, each, size = (1 - RESERVE) * memory, sample / ratio, 1
    if not (maximum >= 1 and fixed + each <= room):
        raise ValueError(f"no batch: at most {maximum} samples of {each:g} bytes, {fixed:g} fixed, {room:g} in all")
    while 2 * size <= maximum and fixed + 2 * size * each <= room:
        size *= 2
    return size


class Adaptive:
    """Error bounds of layers in the course of training.

    `layers` are names, `a` is the coefficient of equation 3, or one for each layer in a mapping; `fraction` is the
    error rate of equation 1, `window` the paper's W in iterations, `change` the factor of a bound that halves W.
    Iterations count from 1. Until iteration W layers are not compressed. Then, and every W iterations, statistics are
    taken (of decompressed activations) and bounds set for what follows. W becomes max(1, W // 2) if the bound of any
    layer changed by more than `change`, up or down; else `window` again.

    Attributes: bounds, one for each layer, None as long as it is not compressed; interval, the present W. Raises
    ValueError for a parameter that is not positive, a W that is no int, and a `change` below 1.
    """

    def __init__(self, layers: Iterable[str], a: Mapping[str, float] | float, fraction: float = 0.01,
                 window: int = 1000, change: float = 2.0) -> None:
        layers = tuple(layers)
        self.a: dict[str, float] = dict(a) if isinstance(a, Mapping) else dict.fromkeys(layers, a)
        if missing := set(layers) - set(self.a):
            raise ValueError(f"a has no coefficient for {', '.join(map(str, missing))}")
        for name, value in (("fraction", fraction), ("window", window), *(("a", self.a[layer]) for layer in layers)):
            if not value > 0:
                raise ValueError(f"{name} is {value}, has to be positive")
        if type(window) is not int:
            raise ValueError(f"window is {window!r}, has to be an int")
        if not change >= 1:
            raise ValueError(f"change is {change}, has to be at least 1")
        self.fraction, self.window, self.change = fraction, window, change
        self.bounds = dict.fromkeys(layers)
        self.interval = self._next = window

    def state(self) -> dict[str, Any]:
        """What :meth:`load` needs to go on from here: plain numbers in dictionaries."""
        return {"a": dict(self.a), "bounds": dict(self.bounds), "interval": self.interval, "next": self._next}

    def load(self, state: Mapping[str, Any]) -> None:
        self.a, self.bounds = dict(state["a"]), dict(state["bounds"])
        self.interval, self._next = state["interval"], state["next"]

    def due(self, iteration: int) -> bool:
        """Whether statistics have to be taken in `iteration`."""
        return iteration >= self._next

    def update(self, iteration: int, momentum: Mapping[str, ArrayLike], loss: Mapping[str, ArrayLike], batch: int,
               density: Mapping[str, float]) -> dict[str, float | None]:
        """Sets the bounds by equations 1 and 3; returns them, {layer: bound or None}.

        `momentum`, `loss` and `density` have for each layer the momentum of its weights, the gradient of the loss at
        its output (arrays, or their mean magnitudes), and the share of its activations that is not zero; `batch` is N.
        A layer for which no finite bound comes out that `prequantise.step` takes keeps its last one. Raises ValueError
        if nothing is due.
        """
        if not self.due(iteration):
            raise ValueError(f"nothing is due in iteration {iteration}, but in {self._next}")
        changed = False
        for layer, last in self.bounds.items():
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                sigma = self.fraction * np.mean(np.abs(momentum[layer]), dtype=np.float64)
                average = np.mean(np.abs(loss[layer]), dtype=np.float64)
                eb = sigma / (self.a[layer] * average * np.sqrt(batch * density[layer]))
            if not prequantise.SMALLEST_STEP <= 2 * eb < math.inf:
                continue
            self.bounds[layer] = float(eb)
            changed |= last is not None and max(eb, last) > self.change * min(eb, last)
        self.interval = max(1, self.interval // 2) if changed else self.window
        self._next = iteration + self.interval
        return dict(self.bounds)
