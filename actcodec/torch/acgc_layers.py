"""AC-GC's limit on the error of a layer's input: no gradient that depends on it may change by more than e^2 / 2 of its
squared norm (Evans, Aamodt, NeurIPS 2021). The rule of convolutions is in ``golden/common/acgc.py``.

**Norms.** Groups of m values (a channel of a batch, a token) share a mean and s = 1 / deviation, both of which are kept
exact. Let x^ = (x - mean) s, gz the gradient of the output, and h = gamma gz. Then

    g_gamma = sum gz x^,    g_x = s (h - mean(h) - x^ q / m)    with    q = sum h x^.

With x + dX in place of x, x^ becomes x^ + s dX, and q becomes q + d, where d = s sum h dX. In each group

    dg_x = -s / m (s dX (q + d) + x^ d)    as the mean of h does not change,

so that by Cauchy and Schwarz, as |x^|^2 is at most m,

    |dg_x| <= s^2 / m |dX| (|q| + sqrt(m) |h| + s |h| |dX|).

The limit is the greatest |dX| for which no group exceeds its share, however the error is distributed. The first of
the three terms is the authors' (github.com/rdevans0/acgc), whose last one has an estimate of gz in place of its norm;
they leave out the second one, which comes from x^ d, and is the largest. For the weights,
|dg_gamma|^2 <= max over them of sum s^2 gz^2, times |dX|^2. If statistics are not those of the batch, g_x does not
depend on x, and only this bound remains.

**Activation layers** f that save their input: g_x = gz f'(x), so that |dg_x| <= max |f''| max |gz| |dX|. ReLU and its
like only need exact bits. The paper covers only those; this bound is derived here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

__all__ = ["ACTIVATIONS", "LAYERS", "NORMS", "limit"]

BATCH = nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d
INSTANCE = nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d
NORMS = *BATCH, *INSTANCE, nn.LayerNorm, nn.GroupNorm
ACTIVATIONS: dict[type[nn.Module], float] = {nn.GELU: math.sqrt(2 / math.pi), nn.SiLU: 0.5}
"""Layers that save their input, with the maximum of |f''|, which is at 0."""
LAYERS = *NORMS, *ACTIVATIONS


def limit(module: nn.Module, x: torch.Tensor, gradient: torch.Tensor, e2: float) -> float:
    """The greatest |dX|^2 of the input ``x`` of one of :data:`LAYERS`, from the ``gradient`` of its output. Infinite if
    no gradient depends on it."""
    x, gradient = x.double(), gradient.double()
    if isinstance(module, NORMS):
        return normed(module, x, gradient, e2 / 2)
    with torch.enable_grad():
        y = x.detach().requires_grad_()
        exact, = torch.autograd.grad(module(y), y, gradient)
    largest = ACTIVATIONS[type(module)] * float(gradient.abs().max())
    return e2 / 2 * float(exact.square().sum()) / largest**2 if largest else math.inf


def dimensions(module: Any, shape: Sequence[int]) -> Any:
    """Of a norm: a shape for its input, and the dimensions that share statistics; a shape for its weights, and the
    dimensions that share a weight."""
    if isinstance(module, nn.LayerNorm):
        size = math.prod(module.normalized_shape)
        return (-1, size), (1,), (1, size), (0,)
    n, channels = shape[:2]
    if isinstance(module, nn.GroupNorm):
        groups = module.num_groups
        return (n, groups, channels // groups, -1), (2, 3), (1, groups, -1, 1), (0, 3)
    return (n, channels, -1), (0, 2) if isinstance(module, BATCH) else (2,), (1, -1, 1), (0, 2)


def normed(module: Any, x: torch.Tensor, gradient: torch.Tensor, share: float) -> float:
    """The limit of a norm whose gradients may change by a ``share`` of their squared norm."""
    shape, over, weights, along = dimensions(module, x.shape)
    x, gradient = x.reshape(shape), gradient.reshape(shape)
    own = module.training or getattr(module, "running_mean", None) is None  # statistics of this batch
    mean = x.mean(over, keepdim=True) if own else module.running_mean.double().view(weights)
    variance = x.var(over, correction=0, keepdim=True) if own else module.running_var.double().view(weights)
    s = (variance + module.eps).rsqrt()
    normal, allowed = (x - mean) * s, [math.inf]
    if own:
        h = gradient if module.weight is None else gradient * module.weight.detach().double().view(weights)
        m, q, size = x.numel() / s.numel(), (h * normal).sum(over, keepdim=True), norm(h, over)
        exact = s * (h - h.mean(over, keepdim=True) - normal * q / m)
        a, b, c = q.abs() + math.sqrt(m) * size, s * size, math.sqrt(share) * exact.norm() * m / s.square()
        root = 2 * c / (a + (a.square() + 4 * b * c).sqrt())  # of b r^2 + a r = c
        allowed += root[size > 0].square().tolist()
    if module.weight is not None and module.weight.requires_grad:
        exact, most = (gradient * normal).sum(along), norm(gradient * s, along).max()
        allowed += [float(share * exact.square().sum() / most.square())] if most else []
    return min(allowed)


def norm(x: torch.Tensor, over: tuple[int, ...]) -> torch.Tensor:
    """L2 norm over some dimensions, which stay as 1."""
    return x.square().sum(over, keepdim=True).sqrt()
