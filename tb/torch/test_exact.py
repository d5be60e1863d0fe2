"""Operations whose backward pass divides by what they saved, or compares with it: that is kept without a loss."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import actcodec.torch as at

pytestmark = pytest.mark.usefixtures("device")
OPERATIONS = {
    "amax": lambda x: x.amax((2, 3)), "amin": lambda x: torch.amin(x, 1), "aminmax": lambda x: sum(x.aminmax(dim=3)),
    "max": torch.max, "min": lambda x: x.min(), "maximum": lambda x: torch.maximum(x, x.flip(0)),
    "fmin": lambda x: torch.fmin(x, x.flip(3)), "prod": lambda x: x.prod(3), "log": torch.log,
    "log2": lambda x: x.log2(), "log1p": torch.log1p, "sqrt": lambda x: x.sqrt(), "rsqrt": torch.rsqrt,
    "reciprocal": torch.reciprocal,
    "one over": lambda x: 1 / x, "divisor": lambda x: torch.ones_like(x) / x,
    "method": lambda x: torch.ones_like(x).div(x),
    "root": lambda x: x ** 0.5, "float_power": lambda x: torch.float_power(x, 1.5).float(),
    "power": lambda x: x.pow(torch.full_like(x, 0.75)), "norm": lambda x: x.norm(math.inf, 1),
    "vector norm": lambda x: torch.linalg.vector_norm(x, ord=math.inf, dim=1),
    "by name": lambda x: torch.linalg.norm(input=x.flatten(1), ord=math.inf, dim=1),
    "asin": lambda x: (x / 20).asin(),
    "logit": lambda x: torch.logit(x / 20), "xlogy": lambda x: torch.xlogy(x.flip(1), x)}


def values():
    """From 0.0004 to 10; in a channel, below half a step of 8 bits are most of them."""
    torch.manual_seed(0)
    count = 4 * 8 * 16 * 16
    return torch.exp(torch.linspace(-8, math.log(10), count))[torch.randperm(count)].view(4, 8, 16, 16)


def gradient(function, context):
    x = values().requires_grad_()
    with context:
        loss = function(x * 1).sum()  # which saves nothing
    loss.backward()
    return x.grad


@pytest.mark.parametrize("preset", ["sfpr", "jpeg-act", "comet", "bitpack-1"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_gradients_are_exact(name, preset):
    exact = gradient(OPERATIONS[name], torch.enable_grad())
    assert exact.any() and torch.equal(gradient(OPERATIONS[name], at.Compress(nn.Identity(), preset)), exact)


@pytest.mark.parametrize("first", [True, False])
def test_other_users_of_the_same_tensor_have_it_exactly_as_well(first):
    def function(x):
        one, two = (torch.sin, torch.log) if first else (torch.log, torch.sin)
        return one(x) + two(x)

    compress = at.Compress(nn.Identity(), "sfpr")
    assert torch.equal(gradient(function, compress), gradient(function, torch.enable_grad()))
    row, = compress.report().rows
    assert (row.mode, row.ratio) == ("-", 1)


def test_a_mode_without_a_loss_compresses_it():
    compress = at.Compress(nn.Identity(), rules=[at.rule("zvc", kind="relu")])
    x = torch.randn(4, 8, 16, 16, requires_grad=True)
    with compress:
        y = 1 / (F.relu(x * 1) + 0).add(1)
        z = F.relu(x * 1).amax(1)
    (y.sum() + z.sum()).backward()
    assert "zvc" in {row.mode for row in compress.report().rows}


def test_a_number_or_a_numerator_keeps_its_loss():
    compress = at.Compress(nn.Identity(), "sfpr")
    x, y = values().requires_grad_(), (values() + 1).requires_grad_()
    with compress:
        z = (x * 1) / (y * 1) + (x * 2) / 3 + (x * 3) ** 2
    z.sum().backward()
    assert sorted(row.mode for row in compress.report().rows) == ["-", "sfpr", "sfpr"]


def test_an_infinite_power_is_no_error():
    x = values().requires_grad_()
    with at.Compress(nn.Identity(), "sfpr"):
        y = (x * 1) ** math.inf
    assert y.shape == x.shape
