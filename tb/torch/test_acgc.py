"""AC-GC: the bound, judged by PyTorch's own gradient of weights, and what is chosen by it."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import actcodec.torch as at
from actcodec.golden.common import acgc
from actcodec.torch import acgc_layers
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
    with pytest.raises(ValueError, match="choices has a rule without a mode"):
        at.AcGc(at.Compress(small(), "none"), [at.rule(None)])
    with pytest.raises(ValueError, match="has no layer"):
        at.AcGc(at.Compress(nn.ReLU(), "none"), CHOICES)


def layers():
    """Norms and activation layers, and shapes of their inputs."""
    for training in True, False:
        yield nn.BatchNorm2d(6).train(training), (4, 6, 5, 7)
    yield nn.BatchNorm1d(6), (16, 6)
    yield nn.BatchNorm2d(6, affine=False), (4, 6, 5, 7)
    yield nn.BatchNorm2d(6, track_running_stats=False).eval(), (4, 6, 5, 7)
    yield nn.InstanceNorm2d(6, affine=True), (4, 6, 5, 7)
    yield nn.GroupNorm(3, 6), (4, 6, 5, 7)
    yield nn.LayerNorm(12), (4, 9, 12)
    yield nn.LayerNorm((4, 3)), (5, 4, 3)
    yield from ((one, (6, 20)) for one in (nn.GELU(), nn.GELU("tanh"), nn.SiLU()))


def inside(module, x, error, output):
    """Gradients of a layer's input and weights, and those if what it saved of x is off by an error."""
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        weight = getattr(module, "weight", None)
        wanted = [x] if weight is None else [x, weight]
        grads = []
        for wrong in torch.zeros_like(error), error:
            def packed(saved, wrong=wrong):
                same = saved.data_ptr() == x.data_ptr()
                return saved.detach() + wrong.view(saved.shape) if same else saved

            with torch.autograd.graph.saved_tensors_hooks(packed, lambda saved: saved):
                y = module(x)
            grads.append(torch.autograd.grad(y, wanted, output))
    return [(float((b - a).square().sum()), float(a.square().sum())) for a, b in zip(*grads, strict=True)]


@pytest.mark.parametrize("module, shape", list(layers()), ids=str)
def test_norms_and_activation_layers_keep_their_bounds(module, shape):
    """PyTorch's own backward pass, with what it saved off by random errors, and by ones along the gradient, in a group
    or in all."""
    torch.manual_seed(1)
    module, e2 = module.double(), 0.5
    if getattr(module, "weight", None) is not None:
        module.weight.data.uniform_(0.2, 2)
    if getattr(module, "running_mean", None) is not None:
        module.running_mean.uniform_(-2, 2)
        module.running_var.uniform_(0.5, 2)
    x, output = 1.5 * torch.randn(shape, dtype=torch.float64) + 0.5, torch.randn(shape, dtype=torch.float64)
    limit = acgc_layers.limit(module, x, output, e2)
    assert 0 < limit < float("inf")
    largest = 0.0
    errors = [torch.randn(shape, dtype=torch.float64) for _ in range(5)]
    errors += [output * mask for mask in (1, *(torch.arange(x.shape[i]).view(-1, *[1] * (x.ndim - 1 - i)) == k
                                               for i in range(min(x.ndim, 2)) for k in range(x.shape[i])))]
    errors += [(output.abs() == output.abs().max()) * x.abs().max()]
    for error in errors:
        for sign in 1, -1:
            changes = inside(module, x, sign * error * limit**0.5 / error.norm(), output)
            largest = max([largest, *(wrong / exact for wrong, exact in changes if exact)])
    assert 0.02 * e2 / 2 < largest <= e2 / 2 * (1 + 1e-9)
    if not module.training and module.running_mean is not None:  # a sum of products alone
        assert largest == pytest.approx(e2 / 2, rel=1e-6)


@pytest.mark.parametrize("module", [nn.GELU(), nn.GELU("tanh"), nn.SiLU()], ids=str)
def test_the_bound_of_an_activation_layer_is_reached(module):
    """By a value at which the curve bends most."""
    x, output, e2 = torch.zeros(4, dtype=torch.float64), torch.tensor([0.0, 1, 0, 0], dtype=torch.float64), 1e-6
    error = output * acgc_layers.limit(module, x, output, e2) ** 0.5
    (wrong, exact), = inside(module, x, error, output)
    assert wrong / exact == pytest.approx(e2 / 2, rel=1e-3)


def test_a_layer_s_weights_may_be_fixed():
    norm, x = nn.LayerNorm(8), torch.randn(4, 8)
    free = acgc_layers.limit(norm, x, torch.randn(4, 8), 0.5)
    assert acgc_layers.limit(norm, x, torch.zeros(4, 8), 0.5) == float("inf")
    norm.weight.requires_grad_(False)
    assert acgc_layers.limit(norm.eval(), x, torch.randn(4, 8), 0.5) > 0 < free


def test_gradients_of_a_transformer_stay_within_the_bound():
    """All weights of linear layers and norms, by what at.AcGc chose for the inputs of each layer."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 32), nn.LayerNorm(32), nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32),
                          nn.LayerNorm(32), nn.SiLU(), nn.Linear(32, 10))
    x, y = torch.randn(256, 3), torch.randint(0, 10, (256,))
    compress = at.Compress(model, "none", min_values=1)
    control = at.AcGc(compress, [*CHOICES, at.rule("sfpr-zvc"), at.rule("comet")], e2=0.5)
    gradients = []
    for _ in range(2):
        model.zero_grad()
        with compress:
            loss = F.cross_entropy(model(x), y)
        loss.backward()
        gradients.append([one.grad.clone() for one in model.parameters()])
        if not control.history:
            control.update()
    layers = control.history[0]["layers"]
    assert set(layers) == {str(i) for i in range(1, 8)} and all(one["ratio"] > 1 for one in layers.values())
    errors = [float((b - a).norm() / a.norm()) for a, b in zip(*gradients, strict=True)]
    assert 0 < max(errors) < 0.5
