"""What a host keeps of a layer from one iteration to the next, so that compression is one pass through the hardware:
the predictor, and a book made of the last tensor's histogram (COMET, section 3.4; cuSZ counts every tensor first, in a
pass of its own)."""

import operator

import numpy as np
from numpy.typing import NDArray

from actcodec.golden.comet import comet, lorenzo, prequantise
from actcodec.golden.comet.book import Book, build, histogram, spread
from actcodec.golden.comet.comet import Encoded
from actcodec.golden.comet.lorenzo import Config


class Layer:
    """Compresses a layer's tensors one after the other.

    The first one, one of every `again`, and one whose step or whose choice of predictors is another than before, are
    looked at with all predictors and counted in full. Every other one has the predictor of the one before, and the book
    that the histogram unit's 32 bins of that give. Attributes: `config` and `book`, those of the next tensor; `fresh`,
    whether the last one was looked at. Raises ValueError unless `again` is at least 1.
    """

    def __init__(self, again: int = 1000) -> None:
        self.again = operator.index(again)
        if self.again < 1:
            raise ValueError(f"again must be at least 1, not {again}")
        self.config: Config | None = None
        self.book: Book | None = None
        self.fresh: bool | None = None
        self._known: tuple[float, list[Config]] | None = None
        self._since = 0

    def compress(self, x: NDArray[np.float32], eb: float, cdus: int = 1) -> Encoded:
        """As `comet.compress`."""
        s = prequantise.step(eb)
        known = s, lorenzo.legal(x.shape)
        self.fresh = known != self._known or self._since == self.again
        if self.fresh:
            self.config, self.book = comet.choose(x, s)
            self._known, self._since = known, 0
        encoded = comet.compress(x, eb, self.config, self.book, cdus)
        self._since += 1
        self.book = build(spread(self._bins(x, s, encoded.config, cdus)))
        return encoded

    def _bins(self, x, s, config, cdus):
        """What the histogram units of all CDUs have counted."""
        q, _ = prequantise.quantize(x, s)
        u = lorenzo.residuals(q, q.shape, config)
        owner = lorenzo.groups(q.shape, config.tiled) % cdus
        return np.sum([histogram(u[owner == cdu], sampled=True) for cdu in range(cdus)], axis=0)
