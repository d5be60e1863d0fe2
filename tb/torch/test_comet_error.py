"""COMET's equation 3: the error of a weight's gradient that a bound of the activations is predicted to make, and the
one that it makes (golden/comet/adaptive.py; COMET, sections 3.1 to 3.3)."""

import pytest
import torch

from actcodec.golden.comet import adaptive, prequantise
from tb.torch import check

LAYERS = ("layers.0.conv1", "layers.0.conv2", "layers.1.conv1", "layers.1.conv2", "layers.2.conv1", "layers.2.conv2")


@pytest.fixture(scope="module")
def passed():
    """{layer: (its input, the gradient of the loss at its output)} of a network after 20 steps."""
    model, _ = check.trained()
    inputs, handles = {}, []
    for name in LAYERS:
        def save(module, args, output, name=name):
            output.retain_grad()
            inputs[name] = args[0].detach(), output
        handles.append(model.get_submodule(name).register_forward_hook(save))
    check.gradient(model)
    for handle in handles:
        handle.remove()
    return model, {name: (x, output.grad) for name, (x, output) in inputs.items()}


def measured(model, name, x, g, eb):
    """Standard deviation of the error of the gradients of a layer's weights, with its input within ``eb``."""
    module = model.get_submodule(name)
    s = prequantise.step(eb)
    decoded = torch.from_numpy(prequantise.dequantize(prequantise.quantize(x.numpy(), s)[0], s))
    error = torch.nn.grad.conv2d_weight(decoded - x, module.weight.shape, g, module.stride, module.padding)
    return float(error.double().std())


@pytest.mark.parametrize("name", LAYERS)
def test_the_error_of_a_gradient_is_the_predicted_one(passed, name):
    model, tensors = passed
    x, g = tensors[name]
    weight, positions = model.get_submodule(name).weight.grad, g.shape[2] * g.shape[3]
    control = adaptive.Adaptive([name], adaptive.calibrate(positions, g.numpy()), window=1)
    density = float((x != 0).double().mean())
    eb = control.update(1, {name: weight.numpy()}, {name: g.numpy()}, len(g), {name: density})[name]
    predicted = control.fraction * float(weight.abs().mean())  # equation 1
    assert 0.8 < measured(model, name, x, g, eb) / predicted < 1.2
    assert 1.6 < measured(model, name, x, g, 2 * eb) / predicted < 2.4
