"""Weights that are sent in fewer bytes."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import actcodec.torch as at
from actcodec.golden.a2dtwp import awp as golden
from actcodec.golden.a2dtwp import bitpack
from actcodec.torch.awp import truncated
from tb.torch.models import gradients, pictures, small

pytestmark = pytest.mark.usefixtures("device")


@pytest.mark.parametrize("roundto", [1, 2, 3, 4])
def test_truncation_is_bitpack_and_back(roundto):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 1 << 32, (50, 41), np.uint32).view(np.float32)
    expected = bitpack.unpack(bitpack.pack(x, roundto), roundto, x.size).reshape(x.shape)
    result = truncated(torch.from_numpy(x).to(torch.get_default_device()), roundto).cpu().numpy()
    np.testing.assert_array_equal(result.view(np.uint32), expected.view(np.uint32))


def test_the_forward_pass_sees_truncated_weights_and_the_parameters_stay():
    model = small()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    order = [name for name, _ in model.named_parameters()]
    compared = small()
    with torch.no_grad():
        for module in compared.modules():
            if isinstance(module, nn.Conv2d | nn.Linear):
                module.weight.copy_(truncated(module.weight, 2))
    weights = at.Awp(model, start=16)
    expected, loss = gradients(compared)
    gradient, same = gradients(model, weights)
    assert loss == same and torch.equal(gradient, expected)
    assert order == [name for name, _ in model.named_parameters()]
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items()
               if "running" not in name and "batches" not in name)
    assert not torch.equal(gradients(model)[0], expected)


def test_precision_is_that_of_algorithm_1():
    model = small()
    weights = at.Awp(model, threshold=-1e-4, interval=2)
    mirror = golden.Awp(len(weights.layers), -1e-4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, weight_decay=0.05)
    seen = []
    for seed in range(8):
        x, y = pictures(seed=seed)
        with weights:
            loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        norms = golden.norms([module.weight.detach().cpu().numpy() for module in weights.layers.values()])
        expected = mirror.update(norms)
        assert weights.update() == dict(zip(weights.layers, expected.tolist(), strict=True))
        seen.append(weights.ratio)
    assert seen[0] == 4 and 1 <= seen[-1] < 3


@pytest.mark.parametrize("name", ["zvc", "gist"])
def test_it_works_beside_compression(name):
    model = small()
    weights, compress = at.Awp(model, start=16), at.Compress(model, name, min_values=1)
    exact, _ = gradients(model, weights)

    @weights
    @compress
    def loss(x, y):
        with weights:
            return F.cross_entropy(model(x), y)

    model.zero_grad()
    loss(*pictures()).backward()
    assert torch.equal(torch.cat([one.grad.reshape(-1) for one in model.parameters()]), exact)
    assert all(len(row.shape) != 4 or (row.shape[0] == 8 and row.shape[-1] > 3) for row in compress.report().rows)


@pytest.mark.parametrize("options, what", [
    ({"network": "lenet"}, "network is 'lenet'"), ({"interval": 0}, "interval must be"),
    ({"start": 33}, "start must be"),
])
def test_parameters_are_checked(options, what):
    with pytest.raises(ValueError, match=what):
        at.Awp(small(), **options)
    with pytest.raises(ValueError, match="roundto is 5"):
        truncated(torch.ones(1), 5)
    with pytest.raises(ValueError, match="must be float32"):
        at.Awp(small().double())
    with pytest.raises(ValueError, match="no layer with weights"):
        at.Awp(nn.Sequential(nn.BatchNorm2d(8)))
