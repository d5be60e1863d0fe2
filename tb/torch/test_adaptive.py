"""COMET's control of the error bounds: it is golden's, by the statistics of the network."""

import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import actcodec.torch as at
from actcodec.golden.comet import adaptive, prequantise
from tb.torch.models import gradients, pictures, small

WINDOW = 3


def steps(model, compress, control, optimizer, count, after=lambda step: None):
    for step in range(count):
        x, y = pictures(seed=step)
        optimizer.zero_grad()
        with compress:
            loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        control.update()
        after(step)


def made(model=None, name="none", **options):
    model = model or small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    compress = at.Compress(model, name, min_values=1, error_every=0)
    return model, compress, at.Adaptive(compress, optimizer, window=WINDOW, **options), optimizer


def decoded(x, eb):
    s = prequantise.step(eb)
    return prequantise.dequantize(prequantise.quantize(x, s)[0], s)


def test_bounds_are_goldens_and_errors_are_what_they_make(device):
    model, compress, control, optimizer = made(measure=True)
    inputs = {}
    for name, module in model.named_modules():
        if isinstance(module, nn.Conv2d) and name != "conv":
            module.register_forward_hook(lambda module, args, output, name=name: inputs.update(
                {name: (args[0].detach(), output)}) or output.retain_grad())
    mirror = None

    def after(step):
        nonlocal mirror
        values = {name: (x.cpu().numpy(), output.grad.cpu().numpy()) for name, (x, output) in inputs.items()}
        if step + 1 < WINDOW:
            assert not control.history and {row.mode for row in compress.report().rows} == {"-"}
            return
        if mirror is None:
            mirror = adaptive.Adaptive(values, {name: adaptive.calibrate(g[0, 0].size, g)
                                                for name, (x, g) in values.items()}, window=WINDOW)
        if not mirror.due(step + 1):
            assert control.history[-1]["step"] <= step
            return
        before = dict(mirror.bounds)
        kept = {name: decoded(x, before[name]) if before[name] else x for name, (x, g) in values.items()}
        momentum = {name: optimizer.state[model.get_submodule(name).weight]["momentum_buffer"].cpu().numpy()
                    for name in values}
        expected = mirror.update(step + 1, momentum, {name: g for name, (x, g) in values.items()}, 8,
                                 {name: np.count_nonzero(x) / x.size for name, x in kept.items()})
        last = control.history[-1]
        assert (last["step"], last["window"]) == (step + 1, mirror.interval) and control.bounds["conv"] is None
        for name, (x, g) in values.items():
            layer = last["layers"][name]
            assert layer["bound"] == control.bounds[name] == pytest.approx(expected[name], rel=1e-5)
            assert layer["target"] == pytest.approx(0.01 * np.abs(momentum[name]).mean(), rel=1e-5)
            if before[name]:
                density = np.count_nonzero(kept[name]) / x.size
                assert layer["predicted"] == pytest.approx(
                    mirror.a[name] * np.abs(g).mean() * before[name] * math.sqrt(8 * density), rel=1e-4)
                module = model.get_submodule(name)
                error = torch.nn.grad.conv2d_weight(torch.from_numpy(kept[name] - x).double(), module.weight.shape,
                                                    torch.from_numpy(g).double(), module.stride, module.padding)
                assert layer["measured"] == pytest.approx(float(error.std()), rel=1e-2)
        mirror.bounds = {name: control.bounds[name] for name in mirror.bounds}  # rounding is not to add up

    steps(model, compress, control, optimizer, 10, after)
    assert len(control.history) >= 3 and set(control.bounds) == {*inputs, "conv"}
    modes = {row.layer: row.mode for row in compress.report().rows}
    assert [modes[name] for name in ("relu", "layers.0.relu1", "layers.1.relu2")] == ["comet"] * 3
    assert modes["layers.0.bn1"] == "-"


def test_the_rules_before_are_for_all_others(device):
    model, compress, control, optimizer = made(name="sfpr")
    steps(model, compress, control, optimizer, WINDOW + 1)
    rows = compress.report().rows
    assert {row.mode for row in rows if row.kind == "relu"} == {"comet"}
    assert {row.mode for row in rows if row.kind in ("dense", "mask")} == {"sfpr", "brc"}
    assert not any(hook for module in model.modules() for hook in (module._forward_hooks, module._backward_hooks))


class Twice(nn.Module):
    """Two convolutions of one tensor, the other of which has smaller gradients."""

    def __init__(self):
        super().__init__()
        self.first, self.act = nn.Conv2d(3, 8, 3), nn.ReLU()
        self.one, self.two = nn.Conv2d(8, 8, 3), nn.Conv2d(8, 8, 3)

    def forward(self, x):
        x = self.act(self.first(x))
        return torch.cat([self.one(x), self.two(x).tanh()], 1).mean((2, 3))


def test_of_two_bounds_for_a_tensor_the_smaller_one_counts(device):
    torch.manual_seed(0)
    model, compress, control, optimizer = made(Twice())
    steps(model, compress, control, optimizer, WINDOW)
    bounds = control.bounds
    rule, = compress.rules
    assert rule.layer == "act" and bounds["one"] != bounds["two"] and bounds["first"] is None
    assert rule.options["error_bound"] == min(bounds["one"], bounds["two"])


def test_without_momentum_gradients_take_its_place(device):
    model = small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    compress = at.Compress(model, "none", min_values=1)
    control = at.Adaptive(compress, optimizer, window=1)
    gradients(model, compress)
    control.update()
    layer = control.history[0]["layers"]["layers.0.conv1"]
    weight = model.layers[0].conv1.weight
    assert layer["target"] == pytest.approx(0.01 * float(weight.grad.abs().mean()), rel=1e-5)


@pytest.mark.parametrize("options, what", [({"window": 0}, "window is 0"), ({"fraction": -1}, "fraction is -1"),
                                           ({"change": 0.5}, "change is 0.5")])
def test_parameters_are_checked(options, what):
    model = small()
    with pytest.raises(ValueError, match=what):
        at.Adaptive(at.Compress(model, "none"), None, **options)
    with pytest.raises(ValueError, match="the model has no convolution"):
        at.Adaptive(at.Compress(nn.Linear(3, 3), "none"), None)


class Odd(nn.Module):
    """Convolutions that learn, that do not, that another optimizer has, and that are not there from the beginning."""

    def __init__(self):
        super().__init__()
        self.first, self.plain, self.frozen, self.foreign, self.late = (
            nn.Conv2d(channels, 8, 3, padding=1) for channels in (3, 8, 8, 8, 8))
        self.frozen.weight.requires_grad_(False)
        self.linear, self.grown = nn.Linear(8, 10), False

    def forward(self, x):
        x = self.foreign(self.frozen(self.plain(self.first(x)).tanh()).tanh()).tanh()
        return self.linear((self.late(x).tanh() if self.grown else x).mean((2, 3)))


def test_convolutions_that_do_not_learn_or_come_late(device):
    torch.manual_seed(1)
    model = Odd()
    optimizer = torch.optim.SGD([*model.plain.parameters(), *model.late.parameters()], lr=0.05, momentum=0.9)
    compress = at.Compress(model, "none", min_values=1, error_every=0)
    control = at.Adaptive(compress, optimizer, window=WINDOW)
    steps(model, compress, control, optimizer, WINDOW)
    assert control.bounds["frozen"] is None and control.bounds["late"] is None
    assert control.bounds["plain"] and control.bounds["foreign"]
    model.grown = True
    steps(model, compress, control, optimizer, 4 * WINDOW)
    assert control.bounds["late"] and control._control.a["late"] != 1
    rules = len(compress.rules)
    model.grown = False
    steps(model, compress, control, optimizer, 4 * WINDOW)
    assert len(compress.rules) == rules  # who is not met keeps its bound
    optimizer.state_dict()  # and no optimizer has what is not its own


def test_padding_may_be_a_word(device):
    torch.manual_seed(0)
    results = []
    for padding in "same", 1:
        torch.manual_seed(1)
        model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3, padding=padding))
        optimizer, compress = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9), at.Compress(model, "none")
        adaptive = at.Adaptive(compress, optimizer, window=2, measure=True)
        for step in range(6):
            x = torch.randn(4, 3, 32, 32, generator=torch.Generator().manual_seed(step), device="cpu").to(device)
            with compress:
                loss = model(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            adaptive.update()
        results.append([one["layers"]["1"]["measured"] for one in adaptive.history[1:]])
    assert results[0] and results[0] == results[1]
