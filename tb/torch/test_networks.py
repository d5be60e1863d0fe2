"""Networks of all kinds: without loss their gradients are bit for bit what they are without compression, under whatever
they run; with loss they are near. ``make sim`` runs the small ones, ``make regress`` all."""

from functools import partial

import pytest
import torch
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import checkpoint

import actcodec.torch as at
from tb.torch.models import relative
from tb.torch.networks import LARGE, NETWORKS, batch, compressed, fresh, gradient

pytestmark = [pytest.mark.usefixtures("device"), pytest.mark.filterwarnings("ignore:no tensor was compressed")]
ALL = [*NETWORKS, *(pytest.param(name, marks=pytest.mark.regress) for name in LARGE)]
LIMITS = {"sfpr": 0.1, "jpeg-act": 0.35, "gist-fp16": 0.01}


def both(name, preset, **options):
    """The exact gradient, that with compression, and its report."""
    exact = gradient(fresh(name), name, torch.enable_grad(), **options)
    return exact, *compressed(name, preset, **options)


@pytest.mark.parametrize("preset", ["none", "zvc", "gist", "cdma"])
@pytest.mark.parametrize("name", ALL)
def test_gradients_without_loss_are_identical(name, preset):
    exact, same, report = both(name, preset)
    assert torch.equal(same, exact)
    assert report.rows and exact.norm() > 0


def autocast(model, x):
    with torch.autocast(x.device.type, torch.bfloat16):
        return model(x)


def checkpointed(model, x):
    model.forward = partial(checkpoint, model.forward, use_reentrant=False)
    return model(x.requires_grad_() * 1)  # an activation, not a picture


def channels_last(model, x):
    return model.to(memory_format=torch.channels_last)(x.to(memory_format=torch.channels_last))


WAYS = {"autocast": autocast, "checkpoint": checkpointed, "channels last": channels_last}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ALL)
def test_gradients_without_loss_are_identical_under(name, way):
    exact, same, report = both(name, "gist", run=WAYS[way])
    assert torch.equal(same, exact)
    assert report.rows and exact.norm() > 0


def penalty(name, context):
    """The gradient of a gradient's norm: what a penalty on it has."""
    model, (x, y) = fresh(name).eval(), batch(name)  # else dropout would need the same values twice
    model.train(not any(isinstance(one, torch.nn.Dropout) for one in model.modules()))
    with context(model), sdpa_kernel(SDPBackend.MATH):
        first = torch.autograd.grad(F.cross_entropy(model(x), y), list(model.parameters()), create_graph=True,
                                    allow_unused=True)
        sum(one.square().sum() for one in first if one is not None).backward()
    return torch.cat([one.grad.reshape(-1) for one in model.parameters() if one.grad is not None])


@pytest.mark.parametrize("name", [one for one in ALL if one != "mobilenet v3"])  # whose Hardsigmoid has no second one
def test_gradients_of_gradients_without_loss_are_identical(name):
    exact = penalty(name, lambda model: torch.enable_grad())
    same = penalty(name, partial(at.Compress, preset="gist", min_values=64))
    assert torch.equal(same, exact) and exact.norm() > 0


@pytest.mark.parametrize("preset", LIMITS)
@pytest.mark.parametrize("name", ALL)
def test_gradients_with_loss_are_near(name, preset):
    exact, near, report = both(name, preset)
    assert relative(near, exact) < LIMITS[preset]
    assert report.total["peak"] < report.total["peak_without"]
