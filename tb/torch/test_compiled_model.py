"""``torch.compile`` beside ``Compress``: what a graph saves is compressed, and gradients are the graph's own."""

import pytest
import torch
from torch import nn
from torch._dynamo.utils import counters
from torch.nn import functional as F

import actcodec.torch as at
from tb.torch.memory import measured
from tb.torch.models import gradients, pictures, relative, small
from tb.torch.networks import fresh, gradient


def later(model, backend):
    """What Compress is given, and what is called."""
    return model, torch.compile(model, backend=backend)


def first(model, backend):
    compiled = torch.compile(model, backend=backend)
    return compiled, compiled


def in_place(model, backend):
    model.compile(backend=backend)
    return model, model




@pytest.fixture(autouse=True)
def no_graphs_of_other_tests():
    torch._dynamo.reset()
    counters.clear()


def run(name, preset, way, backend):
    """Gradients of two passes with Compress, of a compiled model without it, and the context."""
    exact = gradient(torch.compile(fresh(name), backend=backend), name, torch.enable_grad())
    torch._dynamo.reset()
    counters.clear()
    given, called = way(fresh(name), backend)
    compress = at.Compress(given, preset, min_values=64)
    return [gradient(called, name, compress) for _ in range(2)], exact, compress


@pytest.mark.parametrize("name, preset, way, backend", [
    ("resnet", "zvc", later, "aot_eager"), ("vgg", "gist", first, "aot_eager"),
    ("preactivated", "zvc", in_place, "aot_eager"), ("resnet", "zvc", later, "inductor"),
])
def test_gradients_without_loss_are_those_of_the_graph(name, preset, way, backend):
    result, exact, compress = run(name, preset, way, backend)
    assert torch.equal(result[0], exact) and exact.norm() > 0
    assert not counters["graph_break"] and counters["stats"]["unique_graphs"] == 1  # for both passes
    assert any(row.mode != "-" for row in compress.report().rows)


@pytest.mark.parametrize("name, preset, way, backend, error", [
    ("vgg", "sfpr", later, "aot_eager", 0.1), ("u-net", "gist-fp16", first, "aot_eager", 0.01),
    ("mobilenet v2", "jpeg-act", in_place, "inductor", 0.35), ("vision transformer", "sfpr", later, "inductor", 0.1),
])
def test_gradients_with_loss_are_near(name, preset, way, backend, error):
    result, exact, compress = run(name, preset, way, backend)
    assert 0 < relative(result[0], exact) < error
    report = compress.report()
    assert report.total["ratio"] > 1.5 and report.total["peak"] < report.total["peak_without"]


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_weights_pictures_and_statistics_of_the_graph_are_left_as_they_are(backend):
    """Which Inductor saves in another order of dimensions, as copies."""
    model = nn.Sequential(nn.Conv2d(16, 64, 3, bias=False), nn.Tanh(), nn.Conv2d(64, 32, 3))
    x = torch.randn(4, 16, 12, 12)
    compress = at.Compress(model, "sfpr", min_values=1)
    with compress:
        loss = torch.compile(model, backend=backend)(x).square().mean()
    loss.backward()
    assert [(row.kind, row.mode, row.shape) for row in compress.report().rows] in (
        [("dense", "sfpr", (4, 64, 10, 10))], [("dense", "sfpr", (4, 64, 10, 10)), ("dense", "sfpr", (4, 32, 8, 8))])


@pytest.mark.parametrize("preset", ["sfpr", "jpeg-act"])
def test_masks_of_the_graph_are_exact(preset):
    """Whether it saves the bools or takes them from a ReLU's values."""
    model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Conv2d(16, 16, 3), nn.ReLU(), nn.Flatten())
    x, compiled = torch.randn(4, 3, 24, 24), torch.compile(model, backend="aot_eager")

    def bias(compress=None):
        for one in model.parameters():
            one.grad = None
        with compress or torch.enable_grad():
            loss = compiled(x).sum()
        loss.backward()
        return model[0].bias.grad.clone(), model[2].bias.grad.clone()

    exact = bias()
    compress = at.Compress(model, preset)
    for result, same in zip(bias(compress), exact, strict=True):  # which depend on masks and weights alone
        assert torch.equal(result, same)
    assert {(row.kind, row.mask or row.mode) for row in compress.report().rows} == {("relu", "brc")}


def test_memory_is_what_the_allocator_says():
    model = small()
    x, y = pictures()
    compress = at.Compress(model, "sfpr", min_values=1)
    compiled = torch.compile(model, backend="aot_eager")

    def forward():
        with compress:
            return F.cross_entropy(compiled(x), y)

    forward().backward()
    compress.reset()
    memory = measured(forward)
    assert compress._meter.now[1] - x.nbytes - y.nbytes == pytest.approx(memory.left, rel=0.05)
    memory.result.backward()


def test_a_part_of_a_model_that_is_compiled():
    model = small()
    exact = gradients(model)[0]
    model.layers[1].compile(backend="aot_eager")
    compress = at.Compress(model, "sfpr", min_values=64)
    result = gradients(model, compress)[0]
    assert 0 < relative(result, exact) < 0.1
    layers = {row.layer for row in compress.report().rows}
    assert "layers.0.bn1" in layers and "layers.1.bn1" not in layers
