"""The networks' graphs against what was published about them."""

import pytest

from actcodec.golden.common import networks

GRAPHS = {name: make() for name, make in networks.NETWORKS.items()}



@pytest.mark.parametrize(("name", "weights"), [
    ("alexnet", 60965224), ("nin", 7595176), ("overfeat", 145920872), ("vgg16", 138357544), ("inception-v1", 6998552),
    ("resnet-50", 25557032)])
def test_weights_are_the_published_number(name, weights):
    assert GRAPHS[name].weights == weights


@pytest.mark.parametrize(("name", "shapes"), [
    ("alexnet", {"conv1": (96, 55, 55), "pool1": (96, 27, 27), "conv2": (256, 27, 27), "conv5": (256, 13, 13),
                 "pool5": (256, 6, 6)}),
    ("nin", {"conv1": (96, 54, 54), "conv2": (256, 27, 27), "conv3": (384, 13, 13), "conv4": (1024, 6, 6),
             "pool4": (1000, 1, 1)}),
    ("overfeat", {"conv1": (96, 54, 54), "conv2": (256, 23, 23), "conv5": (1024, 12, 12), "pool5": (1024, 6, 6)}),
    ("vgg16", {f"conv{i}_2": (min(32 << i, 512), 448 >> i, 448 >> i) for i in range(1, 6)} | {"pool5": (512, 7, 7)}),
    ("inception-v1", {"conv1": (64, 112, 112), "pool1": (64, 56, 56), "conv2": (192, 56, 56), "pool2": (192, 28, 28),
                      "concat3a": (256, 28, 28), "concat3b": (480, 28, 28), "pool3": (480, 14, 14),
                      "concat4a": (512, 14, 14), "concat4d": (528, 14, 14), "concat4e": (832, 14, 14),
                      "pool4": (832, 7, 7), "concat5b": (1024, 7, 7), "fc": (1000, 1, 1)}),
    ("resnet-50", {"conv1": (64, 112, 112), "pool1": (64, 56, 56), "relu2c": (256, 56, 56), "relu3d": (512, 28, 28),
                   "relu4f": (1024, 14, 14), "relu5c": (2048, 7, 7), "conv5c_2": (512, 7, 7)})])
def test_shapes_are_the_published_ones(name, shapes):
    assert {layer: GRAPHS[name].shape(layer) for layer in shapes} == shapes


def test_layers_of_vgg16_and_resnet_50():
    ops = [node.op for node in GRAPHS["vgg16"]]
    assert (ops.count("conv"), ops.count("fc"), ops.count("maxpool")) == (13, 3, 5)
    ops = [node.op for node in GRAPHS["resnet-50"]]
    assert (ops.count("conv"), ops.count("bn"), ops.count("sum"), ops.count("fc")) == (53, 53, 16, 1)


@pytest.mark.parametrize(("call", "text"), [
    (lambda g: g.relu("input", "wide"), "two layers called 'wide'"),
    (lambda g: g.relu("nowhere", "x"), "no layer 'nowhere' in g"),
    (lambda g: g.sum(["wide", "lost"], "x"), "no layer 'lost' in g"),
    (lambda g: g.conv("input", "x", 4, 9), "'x' would have the shape"),
    (lambda g: g.conv("input", "x", 4, 1, groups=3), "'x' cannot split 4 to 4 channels into 3 groups"),
    (lambda g: g.concat(["wide", "narrow"], "x"), "'x' cannot join"),
    (lambda g: g.sum(["wide", "narrow"], "x"), "'x' cannot add"),
    (lambda g: g.add("x", "tanh", ["input"], (1, 1, 1)), "op of 'x' is 'tanh'")], ids=range(8))
def test_wrong_graphs_are_refused(call, text):
    g = networks.Graph("g", (4, 8, 8))
    g.conv("input", "wide", 4, 3, pad=1)
    g.conv("input", "narrow", 4, 3)
    with pytest.raises(ValueError, match=text):
        call(g)
    assert list(g.nodes) == ["input", "wide", "narrow"]


@pytest.mark.parametrize(("kernel", "stride", "pad", "ceil", "edge"), [
    (2, 2, 0, True, 3), (2, 2, 0, False, 3), (3, 2, 0, True, 3), (3, 2, 0, False, 2), (3, 1, 1, True, 6),
    (3, 2, 1, False, 3)])
def test_pooling_keeps_a_last_window_that_is_not_full_if_asked(kernel, stride, pad, ceil, edge):
    g = networks.Graph("g", (4, 6, 6))
    g.maxpool("input", "pool", kernel, stride, pad, ceil)
    assert g.shape("pool") == (4, edge, edge)
