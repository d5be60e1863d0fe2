"""AC-GC: the bound, judged by PyTorch's own gradient of weights, and what is chosen by it."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import actcodec.torch as at
from actcodec.golden.common import acgc
from tb.torch.models import pictures, small

CHOICES = [at.rule("division", bits=2), at.rule("division", bits=4), at.rule("sfpr"), at.rule("dpr-fp16")]


@pytest.mark.parametrize("kernel, stride, padding", [(3, 1, 1), (1, 1, 0), (5, 1, 0), (4, 2, 1), (3, 1, 0)])
@pytest.mark.parametrize("kind", ["random", "aligned"])
def test_an_error_within_the_limit_changes_the_gradient_within_the_bound(kernel, stride, padding, kind):
    torch.manual_seed(kernel)
    conv = nn.Conv2d(6, 8, kernel, stride, padding)
    x = torch.randn(4, 6, 16, 16, dtype=torch.float64)
    output = torch.randn_like(conv.double()(x))
    shape = conv.weight.shape
    exact = torch.nn.grad.conv2d_weight(x, shape, output, stride, padding)
    limit = acgc.limit(0.5, [float(exact.square().sum())], [float(output.square().sum())],
                       [acgc.reuse(conv.kernel_size, conv.stride)])
    # the worst that there is: the direction of the error that changes it most
    error = torch.randn_like(x)
    for _ in range(8 if kind == "aligned" else 0):
        wrong = torch.nn.grad.conv2d_weight(error, shape, output, stride, padding)
        error = torch.nn.grad.conv2d_input(x.shape, wrong, output, stride, padding)  # the adjoint
    error *= limit**0.5 / error.norm()
    wrong = torch.nn.grad.conv2d_weight(error, shape, output, stride, padding)
    ratio = float(wrong.square().sum() / exact.square().sum())
    assert 0 < ratio <= 0.25 * (1 + 1e-9)


def test_the_bound_is_reached_where_no_sum_can_cancel():
    """One output channel, a kernel of one value: the worst error changes the gradient by all that the bound allows."""
    x, output = torch.randn(4, 6, 8, 8, dtype=torch.float64), torch.randn(4, 1, 8, 8, dtype=torch.float64)
    exact = torch.nn.grad.conv2d_weight(x, (1, 6, 1, 1), output)
    limit = acgc.limit(0.5, [float(exact.square().sum())], [float(output.square().sum())], [acgc.reuse((1, 1), (1, 1))])
    error = output * (limit / 6)**0.5 / output.norm()
    wrong = torch.nn.grad.conv2d_weight(error.expand_as(x).contiguous(), (1, 6, 1, 1), output)
    assert float(wrong.square().sum() / exact.square().sum()) == pytest.approx(0.25, rel=1e-9)


def test_convolutions_that_read_one_tensor_share_its_limit():
    assert acgc.reuse((3, 5), (2, 1)) == 7.5
    assert acgc.limit(0.5, [2.0, 6.0], [1.0, 3.0], [9.0, 1.0]) == pytest.approx(0.5 * 8 / (2 * 12))
    assert acgc.limit(0.5, [1.0], [0.0], [9.0]) == float("inf")
    assert acgc.bound(0.36, 4) == pytest.approx(0.3)


def train(compress, control, steps=3):
    model, (x, y) = compress.model, pictures()
    for _ in range(steps):
        model.zero_grad()
        with compress:
            loss = F.cross_entropy(model(x), y)
        loss.backward()
        control.update()


def test_the_smallest_choice_within_the_limit_is_taken():
    compress = at.Compress(small(), "none", min_values=1)
    control = at.AcGc(compress, CHOICES, window=2, e2=0.05)
    train(compress, control)
    assert [one["step"] for one in control.history] == [0, 2]
    layers = control.history[-1]["layers"]
    assert len(layers) >= 6 and all(one["error"] <= one["limit"] and one["ratio"] >= 1 for one in layers.values())
    modes = {row.layer: row.mode for row in compress.report().rows}
    assert any(one["mode"] for one in layers.values())
    for layer, one in control.history[0]["layers"].items():  # which the last pass had
        assert one["mode"] is None or one["mode"] in modes[layer]


def test_a_tighter_bound_chooses_finer_quantizers():
    ratios = []
    for e2 in (1e-6, 1e-3, 1.0):
        compress = at.Compress(small(), "none", min_values=1)
        control = at.AcGc(compress, CHOICES, e2=e2)
        train(compress, control, 2)
        layers = control.history[0]["layers"].values()
        ratios.append(sum(one["ratio"] for one in layers) / len(layers))
    assert 1 <= ratios[0] < ratios[1] < ratios[2]


def test_comet_gets_the_bound_itself():
    compress = at.Compress(small(), "none", min_values=1)
    control = at.AcGc(compress, [at.rule("comet")])
    train(compress, control, 2)
    for one in control.history[0]["layers"].values():
        assert one["mode"] == "comet" and 0.01 * one["limit"] < one["error"] <= one["limit"]


@pytest.mark.parametrize("options, what", [({"e2": 0}, "e2 is 0"), ({"window": 0}, "window is 0")])
def test_parameters_are_checked(options, what):
    with pytest.raises(ValueError, match=what):
        at.AcGc(at.Compress(small(), "none"), CHOICES, **options)
    with pytest.raises(ValueError, match="a choice has no mode"):
        at.AcGc(at.Compress(small(), "none"), [at.rule(None)])
    with pytest.raises(ValueError, match="has no convolution"):
        at.AcGc(at.Compress(nn.Linear(2, 2), "none"), CHOICES)
