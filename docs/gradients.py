"""Measures the table of ``docs/ratios.md`` of ratios at equal error of the gradient: of the ResNet-8 of ``make
train-check``, whose dense maps alone are compressed.

``python -m docs.gradients`` records it as ``gradients`` of ``docs/records/measured.json``, from which
:mod:`docs.measured` writes the table. It needs PyTorch and the package ``pysz``.
"""

import warnings
from functools import partial

import numpy as np
import torch

import actcodec
import actcodec.torch as at
from actcodec.golden.mx.element import FORMATS
from docs import measured
from docs.beside import sz3, views
from tb.torch import check
from tb.torch.models import relative

__all__ = ["rows"]

ERRORS = (0.012, 0.02, 0.03, 0.04)
STEPS = (8.0, 11.0, 16.0, 23.0, 32.0, 45.0)
BOUNDS = 2.0 ** np.arange(-6, 1.1)  # over the root mean square of a tensor
ALGORITHMS = ("ALGO_INTERP_LORENZO", "ALGO_LORENZO_REG")


def file(x, mode, **options):
    """Bytes of the file of a tensor, and what comes back."""
    c = actcodec.compress(x, mode, **options)
    return c.nbytes, actcodec.decompress(c)


def divided(step, **options):
    return partial(file, mode="jpeg-act", quantizer="div", coder="rice", dqt=step, **options)


def peer(bound):
    """SZ3's smallest stream by its default or Lorenzo, in any view."""
    def smallest(x):
        limit = bound * float(np.sqrt(np.mean(np.square(x))))
        return min((sz3(x, limit, algorithm, shape) for algorithm in ALGORITHMS for shape in views(x)),
                   key=lambda candidate: candidate[0])
    return smallest


CODECS = {
    "`rice`, `sh`": [partial(file, mode="jpeg-act", coder="rice", dqt=name) for name in ("optL", "optH", "jpeg60")],
    "`rice`, `div`, dead zone 0": [divided(step, dead_zone=0) for step in STEPS],
    "dead zone 1": [divided(step, dead_zone=1) for step in STEPS],
    "dead zone 2": [divided(step, dead_zone=2) for step in STEPS],
    "dead zone 0, one scale": [divided(step, dead_zone=0, scaling="tensor") for step in (4.0, 5.5, *STEPS)],
    "`comet`": [partial(file, mode="comet", l2=float(l2)) for l2 in np.geomspace(0.02, 0.3, 8)],
    "SZ3": [peer(float(bound)) for bound in BOUNDS],
    "MX": [partial(file, mode="mx", format=name) for name in FORMATS],
}
"""What is compared, with the settings that are tried."""


class Measured(at.Codec):
    """Any of these functions, with the bytes of all tensors before and after."""

    def __init__(self, function):
        self.function, self.before, self.after = function, 0, 0

    def encode(self, x):
        size, y = self.function(x.numpy())
        self.before, self.after = self.before + x.nbytes, self.after + size
        return torch.from_numpy(np.array(y, np.float32))

    def decode(self, data):
        return data

    def nbytes(self, data):
        return data.nbytes


def measure(function):
    """Error of the gradient, and the ratio of files."""
    model, exact = check.trained()
    codec = Measured(function)
    compress = at.Compress(model, rules=[at.rule(codec, kind="dense", min_width=8)])
    error = relative(check.gradient(model, compress), exact)
    return error, codec.before / codec.after


def ratio(points, error):
    """That of a curve at an error, between two of its points along logarithms; None beyond its ends."""
    errors, ratios = np.log(sorted(points)).T
    best = np.maximum.accumulate(ratios)
    at = np.interp(np.log(error), errors, best, left=np.nan, right=np.nan)
    return float(np.exp(at)) if np.isfinite(at) else "-"


def largest(points, error):
    """That of the best of a few formats within an error."""
    return max((ratio for other, ratio in points if other <= error), default="-")


def rows():
    """Those of the table: words, and ratios."""
    warnings.simplefilter("ignore")  # that modes are slow
    curves = {name: [measure(function) for function in functions] for name, functions in CODECS.items()}
    for error in ERRORS:
        yield [f"{error}", *((largest if name == "MX" else ratio)(points, error) for name, points in curves.items())]


if __name__ == "__main__":
    measured.record("gradients", rows())
