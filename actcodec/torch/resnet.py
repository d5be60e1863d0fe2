"""ResNets of 8, 18 and 20 layers for pictures of CIFAR-10's size (He et al., CVPR 2016, section 4.2)."""

from typing import Any

import torch
from torch import nn

__all__ = ["Resnet", "resnet8", "resnet18", "resnet20"]


class Block(nn.Module):
    """Two convolutions with a shortcut: the input, subsampled and padded with zero channels if the shape changes."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.relu1 = nn.ReLU()
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.relu2 = nn.ReLU()
        self.stride, self.more = stride, outputs - inputs

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.bn2(self.conv2(self.relu1(self.bn1(self.conv1(x)))))
        if self.more:
            half = self.more // 2
            x = nn.functional.pad(x[:, :, ::self.stride, ::self.stride], (0, 0, 0, 0, half, self.more - half))
        return self.relu2(y + x)


class Resnet(nn.Module):
    """Two layers, and two for each of ``blocks`` blocks of each of ``stages`` stages, for pictures of 3 channels. The
    first stage has ``width`` channels, and each of the others twice as many as the one before."""

    def __init__(self, blocks: int, width: int = 16, classes: int = 10, stages: int = 3) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, width, 3, 1, 1, bias=False)
        self.bn = nn.BatchNorm2d(width)
        self.relu = nn.ReLU()
        layers, inputs = [], width
        for stage in range(stages):
            outputs = width << stage
            for i in range(blocks):
                layers.append(Block(inputs, outputs, 2 if stage and not i else 1))
                inputs = outputs
        self.layers = nn.Sequential(*layers)
        self.fc = nn.Linear(inputs, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.layers(self.relu(self.bn(self.conv(x))))
        return self.fc(torch.flatten(x.mean(dim=(2, 3)), 1))


def resnet8(**options: Any) -> Resnet:
    """Eight layers, 78,000 weights."""
    return Resnet(1, **options)


def resnet18(**options: Any) -> Resnet:
    """Eighteen layers, with the width of ImageNet's ResNet-18: 11 million weights."""
    return Resnet(2, 64, stages=4, **options)


def resnet20(**options: Any) -> Resnet:
    """Twenty layers, 270,000 weights."""
    return Resnet(3, **options)
