"""Networks for pictures of CIFAR-10's size: those of the papers' tables, and users' own by their names."""

import os
import sys
from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from actcodec.codecs.mode import import_object
from actcodec.torch.resnet import resnet8, resnet20

__all__ = ["NETWORKS", "named", "resnet50", "vgg16", "wrn28_10"]

VGG16 = (64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0)  # channels; 0: pooling


def vgg16(classes: int = 10) -> nn.Module:
    """VGG-16 with batch norm and one linear layer (Simonyan and Zisserman, ICLR 2015, configuration D), 14.7 million
    weights."""
    layers: list[nn.Module] = []
    inputs = 3
    for outputs in VGG16:
        if outputs:
            layers += [nn.Conv2d(inputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]
            inputs = outputs
        else:
            layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(inputs, classes))


class Bottleneck(nn.Module):
    """A residual block of three convolutions; where the shape changes, the shortcut is a convolution of 1 x 1."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = 4 * width
        self.body = nn.Sequential(
            nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, outputs, 1, bias=False), nn.BatchNorm2d(outputs))
        self.around = nn.Identity() if inputs == outputs else nn.Sequential(
            nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))
        self.relu = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.relu(self.body(x) + self.around(x))
        return y


def resnet50(classes: int = 10) -> nn.Module:
    """ResNet-50 (He et al., CVPR 2016) whose first convolution is 3 x 3 and not followed by pooling, 23.5 million
    weights."""
    layers: list[nn.Module] = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    inputs = 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for block in range(blocks):
            layers.append(Bottleneck(inputs, 64 << stage, 2 if stage and not block else 1))
            inputs = 256 << stage
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))


class Wide(nn.Module):
    """A residual block with pre-activation: norm, ReLU and convolution, twice. Where the shape changes, the shortcut is
    a convolution of 1 x 1 of what the first norm and ReLU give."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.BatchNorm2d(inputs), nn.ReLU())
        self.body = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False))
        self.around = None if inputs == outputs else nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        first = self.first(x)
        y: Tensor = self.body(first) + (x if self.around is None else self.around(first))
        return y


def wrn28_10(classes: int = 10, depth: int = 28, factor: int = 10) -> nn.Module:
    """WRN-28-10 (Zagoruyko and Komodakis, BMVC 2016), 36.5 million weights."""
    layers: list[nn.Module] = [nn.Conv2d(3, 16, 3, 1, 1, bias=False)]
    inputs = 16
    for stage in range(3):
        for block in range((depth - 4) // 6):
            outputs = (16 << stage) * factor
            layers.append(Wide(inputs, outputs, 2 if stage and not block else 1))
            inputs = outputs
    return nn.Sequential(*layers, nn.BatchNorm2d(inputs), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(inputs, classes))


NETWORKS: dict[str, Callable[..., nn.Module]] = {
    "resnet8": resnet8, "resnet20": resnet20, "vgg16": vgg16, "resnet50": resnet50, "wrn28_10": wrn28_10}


def named(key: str, name: Any, known: dict[str, Any]) -> Any:
    """What the ``name`` under the ``key`` of a configuration stands for: one of those ``known``, or MODULE:FUNCTION of
    a module in the current folder or of an installed one. Raises ValueError."""
    if name in known:
        return known[name]
    what = f"{key} is {name!r}, must be one of {', '.join(known)} or MODULE:FUNCTION"
    if not isinstance(name, str) or not all(name.partition(":")):
        raise ValueError(what)
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        function = import_object(name)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"{what}: {error}") from error
    if not callable(function):
        raise ValueError(f"{what}: it cannot be called")
    return function
