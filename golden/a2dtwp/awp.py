"""AWP, adaptive weight precision: how many bytes Bitpack keeps of a weight (A2DTWP, section II, Algorithm 1)."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

STEP = 8  # bits that a layer starts with, and that it gains at a time: N of section V-A
INTERVALS = {"alexnet": 4000, "vgg": 4000, "resnet": 2000}  # batches
THRESHOLDS = {"alexnet": -5e-2, "vgg": -2e-3, "resnet": -2e-5}


class Awp:
    """The precision of every layer's weights while a network is trained.

    Call :meth:`update` after each batch with the l2 norms of the layers' weights. A batch counts if the norm of a layer
    changed by less than `threshold`, relative to the batch before (thresholds are negative: the norm has to shrink).
    After `interval` such batches, which need not follow one another, the layer gains `step` bits.

    Parameters
    ----------
    layers : int
        Number of layers, 1 or more.
    threshold : float
        T; the paper's are in `THRESHOLDS`.
    interval : int
        Batches, 1 or more; the paper's are in `INTERVALS`.
    start, step : int
        Bits at first, 1 to 32, and those gained at a time, 1 or more.

    Attributes
    ----------
    bits : int array
        Of each layer, at most 32.
    roundto : int array
        Bytes that Bitpack keeps of each layer: bits, rounded up.

    Raises ValueError if a parameter is out of range.
    """

    def __init__(self, layers: int, threshold: float, interval: int, start: int = STEP, step: int = STEP) -> None:
        for name, value, most in (("layers", layers, None), ("interval", interval, None), ("start", start, 32),
                                  ("step", step, None)):
            if not isinstance(value, int) or value < 1 or (most and value > most):
                raise ValueError(f"{name} must be an integer from 1{f' to {most}' if most else ''}, not {value!r}")
        if not np.isfinite(threshold):
            raise ValueError(f"threshold must be a finite number, not {threshold!r}")
        self.threshold, self.interval, self.step = threshold, interval, step
        self.bits = np.full(layers, start)
        self._counts = np.zeros(layers, np.int64)
        self._norms: np.ndarray | None = None

    @property
    def roundto(self) -> NDArray[np.int64]:
        return -(-self.bits // 8)

    def update(self, norms: ArrayLike) -> NDArray[np.int64]:
        """Takes the l2 norm of each layer's weights after a batch, and returns `roundto` for the next one.

        The first batch has none before it and counts for nothing, nor does a change from a norm of zero. Raises
        ValueError if the number of norms is not that of the layers.
        """
        norms = np.array(norms, np.float64)  # not the caller's, who may change it
        if norms.shape != self.bits.shape:
            raise ValueError(f"norms have shape {norms.shape}, not {self.bits.shape}")
        if self._norms is not None:
            change = np.divide(norms - self._norms, self._norms, out=np.full(norms.shape, np.inf),
                               where=self._norms > 0)
            self._counts += change < self.threshold
            gains = self._counts >= self.interval
            self.bits = np.where(gains, np.minimum(self.bits + self.step, 32), self.bits)
            self._counts[gains] = 0
        self._norms = norms
        return self.roundto

    def state(self) -> dict[str, Any]:
        """What :meth:`load` needs to go on from here: plain numbers in lists."""
        return {"bits": self.bits.tolist(), "counts": self._counts.tolist(),
                "norms": None if self._norms is None else self._norms.tolist()}

    def load(self, state: dict[str, Any]) -> None:
        self.bits, self._counts = np.array(state["bits"]), np.array(state["counts"], np.int64)
        self._norms = None if state["norms"] is None else np.array(state["norms"], np.float64)


def norms(weights: Iterable[ArrayLike]) -> NDArray[np.float64]:
    """l2 norms of a list of arrays, one for each layer."""
    return np.array([np.linalg.norm(np.ravel(w).astype(np.float64)) for w in weights])
