"""The layers of a traced model beside those of a graph that is written by hand, and what the model itself knows."""

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from actcodec.files import UserError
from actcodec.golden.common import networks, overlap
from actcodec.torch.graph import load, trace
from actcodec.torch.resnet import resnet8, resnet20


class Mixed(nn.Module):
    """What a graph by hand cannot have: one layer used twice, work in place, attention, slices, a product by random
    numbers, a convolution the other way round."""

    def __init__(self):
        super().__init__()
        self.conv, self.bn, self.relu = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(inplace=True)
        self.pool, self.drop, self.up = nn.MaxPool2d(2), nn.Dropout(0.5), nn.ConvTranspose2d(8, 8, 2, 2)
        self.block, self.fc = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), nn.Linear(8, 5)

    def forward(self, x):
        y = self.pool(self.relu(self.bn(self.conv(x))))
        z = torch.cat([self.up(y), self.relu(self.conv(x))], 1)[:, :8]
        z = self.drop(nn.functional.gelu(z)) * 0.5
        return self.fc(self.block(z.flatten(2).transpose(1, 2)[:, :16]).mean(1))


def bottlenecks():
    """Two blocks of a ResNet-50, by hand and in PyTorch; convolutions have no biases."""
    g = networks.Graph("g", (8, 20, 20))

    def conv_bn(x, name, channels, kernel, **more):
        return g.bn(g.conv(x, f"{name}.0", channels, kernel, bias=False, **more), f"{name}.1")

    x = "input"
    for block, stride in (("0", 2), ("1", 1)):
        y = g.relu(conv_bn(x, f"{block}.a", 4, 1), f"{block}.r1")
        y = g.relu(conv_bn(y, f"{block}.b", 4, 3, stride=stride, pad=1), f"{block}.r2")
        y = conv_bn(y, f"{block}.c", 16, 1)
        side = conv_bn(x, f"{block}.s", 16, 1, stride=stride) if stride > 1 else x
        x = g.relu(g.sum([y, side], f"{block}.add"), f"{block}.r3")
    g.fc(g.avgpool(x, "2"), "4", 10)

    class Block(nn.Module):
        def __init__(self, depth, stride):
            super().__init__()
            self.a, self.b = pair(depth, 4, 1), pair(4, 4, 3, stride, 1)
            self.c, self.s = pair(4, 16, 1), pair(depth, 16, 1, stride) if stride > 1 else nn.Identity()
            self.r1, self.r2, self.r3 = nn.ReLU(), nn.ReLU(inplace=True), nn.ReLU(inplace=True)

        def forward(self, x):
            return self.r3(self.c(self.r2(self.b(self.r1(self.a(x))))) + self.s(x))

    def pair(*arguments):
        return nn.Sequential(nn.Conv2d(*arguments, bias=False), nn.BatchNorm2d(arguments[1]))

    model = nn.Sequential(Block(8, 2), Block(16, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10))
    return g, model


def test_a_traced_model_is_the_graph_by_hand():
    by_hand, model = bottlenecks()
    traced = trace(model, 4, (8, 20, 20))
    assert {node.name: (node.op, set(node.inputs), node.weights, node.products, node.size) for node in traced} == {
        node.name: (node.op, set(node.inputs), node.weights, node.products, node.size) for node in by_hand}
    assert sum(one.bytes for one in overlap.tensors(traced, 4)) == sum(one.bytes for one in overlap.tensors(by_hand, 4))
    spatial = [node for node in traced if node.op in ("conv", "bn", "relu", "sum")]
    assert [node.shape for node in spatial] == [by_hand.shape(node.name) for node in spatial]


@pytest.mark.parametrize(("make", "shape"), [(resnet8, (3, 32, 32)), (resnet20, (3, 32, 32))])
def test_weights_and_operations_are_those_that_pytorch_counts(make, shape):
    model = make()
    weights = sum(p.numel() for p in model.parameters())
    with FlopCounterMode(display=False) as counter:
        model(torch.zeros(2, *shape))
    graph = trace(model, 2, shape)
    assert graph.weights == weights
    assert sum(layer.forward.flops for layer in overlap.layers(graph, 2)) == counter.get_total_flops()


def test_models_that_no_graph_by_hand_has():
    model = Mixed()
    with FlopCounterMode(display=False) as counter:
        model.train()(torch.zeros(4, 3, 16, 16))
    graph = trace(model, 4, (3, 16, 16), "mixed")
    ops = {node.name: node.op for node in graph}
    assert graph.name == "mixed"
    assert [ops[name] for name in ("conv", "bn", "relu", "pool", "up", "conv.convolution", "cat", "gelu", "drop", "mul",
                                   "block.norm1", "block.linear1", "mean", "fc")] == [
        "conv", "bn", "relu", "maxpool", "conv", "conv", "concat", "act", "dropout", "move", "bn", "fc", "avgpool",
        "fc"]
    assert graph.nodes["gelu"].inputs == ("cat",) and graph.shape("up") == (8, 16, 16)
    assert sum(op == "matmul" for op in ops.values()) == 2
    flops = sum(layer.forward.flops for layer in overlap.layers(graph, 4))
    assert flops == pytest.approx(counter.get_total_flops(), rel=0.01)
    overlap.tensors(graph, 4)


def test_what_needs_values_is_refused():
    class Peeks(nn.Module):
        def forward(self, x):
            return x if x.sum().item() > 0 else -x

    with pytest.raises(Exception, match="meta"):
        trace(Peeks(), 1, (3, 8, 8))
    with pytest.raises(ValueError, match="no operation of the model"):
        trace(nn.Identity(), 1, (3, 8, 8))


@pytest.mark.parametrize(("text", "message"), [
    ("model", "must be MODULE:FUNCTION"), (":x", "must be MODULE:FUNCTION"), ("no_such_module:x", "No module named"),
    ("actcodec.torch.resnet:resnet9", "has no attribute 'resnet9'"), ("builtins:int", "returns int"),
    ("torch.nn:Identity", "no operation of the model")])
def test_wrong_models_are_one_line(text, message):
    with pytest.raises(UserError, match=message):
        load(text, 2, 32)


def test_a_model_by_its_name():
    assert load("actcodec.torch.resnet:resnet8", 2, 32).weights == sum(p.numel() for p in resnet8().parameters())
