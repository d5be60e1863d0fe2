"""Twenty-two small networks that nobody here made anything for, and some of full size."""

import torch
from torch import nn
from torch.nn import functional as F

import actcodec.torch as at
from actcodec.torch.resnet import resnet20
from actcodec.train.networks import resnet50, vgg16, wrn28_10
from tb.torch.models import Attention, gradients, small

__all__ = ["LARGE", "NETWORKS", "batch", "compressed", "fresh", "gradient"]


def conv(i, o, k=3, stride=1, groups=1, act=nn.ReLU):
    return nn.Sequential(nn.Conv2d(i, o, k, stride, k // 2, groups=groups, bias=False), nn.BatchNorm2d(o), act())


class Residual(nn.Module):
    """x + inner(x), and what comes after."""

    def __init__(self, inner, after=None):
        super().__init__()
        self.inner, self.after = inner, after or nn.Identity()

    def forward(self, x):
        return self.after(x + self.inner(x))


class Joined(nn.Module):
    """Branches side by side, joined along channels, and the input too if ``dense``."""

    def __init__(self, *branches, dense=False):
        super().__init__()
        self.branches, self.dense = nn.ModuleList(branches), dense

    def forward(self, x):
        return torch.cat([*([x] if self.dense else []), *(branch(x) for branch in self.branches)], 1)


class Excite(nn.Module):
    """Squeeze and excitation."""

    def __init__(self, n):
        super().__init__()
        self.gate = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(n, n // 4, 1), nn.SiLU(), nn.Conv2d(n // 4, n, 1),
                                  nn.Sigmoid())

    def forward(self, x):
        return x * self.gate(x)


class Shuffle(nn.Module):
    """Channels of two groups, one after another, of which one half passes by."""

    def __init__(self, n):
        super().__init__()
        self.other = nn.Sequential(conv(n // 2, n // 2, 1), nn.Conv2d(n // 2, n // 2, 3, 1, 1, groups=n // 2))

    def forward(self, x):
        a, b = x.chunk(2, 1)
        return torch.cat([a, self.other(b)], 1).unflatten(1, (2, -1)).transpose(1, 2).flatten(1, 2)


class Last(nn.Module):
    """A norm over channels, which are moved to the end for it."""

    def __init__(self, n):
        super().__init__()
        self.norm = nn.LayerNorm(n)

    def forward(self, x):
        return self.norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.deep = conv(3, 8), nn.Sequential(nn.MaxPool2d(2), conv(8, 16))
        self.up, self.out = nn.ConvTranspose2d(16, 8, 2, 2), conv(16, 8)

    def forward(self, x):
        x = self.down(x)
        return self.out(torch.cat([x, self.up(self.deep(x))], 1))


class Windows(nn.Module):
    """Attention within windows that are shifted (Swin)."""

    def __init__(self, n, shift):
        super().__init__()
        self.attention, self.shift = nn.MultiheadAttention(n, 2, batch_first=True), shift

    def forward(self, x):
        b, c, h, w = x.shape
        x = x.roll((self.shift, self.shift), (2, 3)).view(b, c, h // 4, 4, w // 4, 4).permute(0, 2, 4, 3, 5, 1)
        x = x.reshape(-1, 16, c)
        x = self.attention(x, x, x, need_weights=False)[0].view(b, h // 4, w // 4, 4, 4, c)
        return x.permute(0, 5, 1, 3, 2, 4).reshape(b, c, h, w).roll((-self.shift, -self.shift), (2, 3))


class Mixer(nn.Module):
    def __init__(self, n, length):
        super().__init__()
        self.tokens = nn.Sequential(nn.Linear(length, 32), nn.GELU(), nn.Linear(32, length))
        self.channels = nn.Sequential(nn.LayerNorm(n), nn.Linear(n, 32), nn.GELU(), nn.Linear(32, n))

    def forward(self, x):
        x = x.flatten(2)
        x = x + self.tokens(x)
        return (x.transpose(1, 2) + self.channels(x.transpose(1, 2))).transpose(1, 2).unflatten(2, (16, 16))


class Language(nn.Module):
    """A causal transformer on tokens that are made of the picture."""

    def __init__(self):
        super().__init__()
        self.embedding, self.fc = nn.Embedding(64, 32), nn.Linear(32, 10)
        layer = nn.TransformerEncoderLayer(32, 2, 64, 0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, x):
        tokens = (x[:, 0].flatten(1).sigmoid() * 64).long()[:, :64]
        mask = nn.Transformer.generate_square_subsequent_mask(64)
        return self.fc(self.layers(self.embedding(tokens), mask=mask).mean(1))


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.inner, self.fc = kind(48, 32, batch_first=True), nn.Linear(32, 10)

    def forward(self, x):
        return self.fc(F.relu(self.inner(x.transpose(1, 2).flatten(2))[0].mean(1)))


class Weighted(nn.Module):
    """Functional calls alone, of weights that are standardized on the way."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Parameter(torch.randn(8, 3, 3, 3)), nn.Parameter(torch.randn(8, 8, 3, 3) / 8)

    def forward(self, x):
        weight = (self.a - self.a.mean((1, 2, 3), keepdim=True)) / self.a.std((1, 2, 3), keepdim=True)
        x = F.max_pool2d(F.relu(F.conv2d(x, weight, padding=1)), 3, 2, 1)
        return F.leaky_relu(F.group_norm(F.conv2d(x, self.b, padding=1), 2), 0.2)


def headed(*layers, n):
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(n, 10))


def bottleneck(n):
    inner = nn.Sequential(conv(n, n // 2, 1), conv(n // 2, n // 2), conv(n // 2, n, 1, act=nn.Identity))
    return Residual(inner, nn.ReLU())


def inverted(n, act, *more):
    return Residual(nn.Sequential(conv(n, 4 * n, 1, act=act), conv(4 * n, 4 * n, groups=4 * n, act=act), *more,
                                  conv(4 * n, n, 1, act=nn.Identity)))


NETWORKS = {
    "resnet": small,
    "resnet, in place": lambda: headed(conv(3, 16, act=lambda: nn.ReLU(inplace=True)), nn.MaxPool2d(3, 2, 1),
                                       bottleneck(16), bottleneck(16), n=16),
    "preactivated": lambda: headed(nn.Conv2d(3, 16, 3), Residual(nn.Sequential(
        nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1))), nn.BatchNorm2d(16), nn.ReLU(), n=16),
    "vgg": lambda: nn.Sequential(conv(3, 16), nn.MaxPool2d(2), conv(16, 32), nn.MaxPool2d(2), nn.Flatten(),
                                 nn.Linear(512, 64), nn.ReLU(), nn.Dropout(0.5), nn.Linear(64, 10)),
    "alexnet": lambda: nn.Sequential(nn.Conv2d(3, 16, 5, 2, 2), nn.ReLU(), nn.LocalResponseNorm(5), nn.MaxPool2d(3, 2),
                                     nn.Flatten(), nn.Dropout(), nn.Linear(144, 10)),
    "mobilenet v2": lambda: headed(conv(3, 8, act=nn.ReLU6), inverted(8, nn.ReLU6), inverted(8, nn.ReLU6), n=8),
    "mobilenet v3": lambda: headed(conv(3, 8, act=nn.Hardswish), inverted(8, nn.Hardswish), nn.Hardsigmoid(), n=8),
    "efficientnet": lambda: headed(conv(3, 8, act=nn.SiLU), inverted(8, nn.SiLU, Excite(32)), n=8),
    "densenet": lambda: headed(conv(3, 8), *(Joined(conv(n, 8), dense=True) for n in (8, 16, 24)), nn.AvgPool2d(2),
                               n=32),
    "inception": lambda: headed(conv(3, 16), Joined(conv(16, 8, 1), conv(16, 8), conv(16, 8, 5), nn.Sequential(
        nn.MaxPool2d(3, 1, 1), conv(16, 8, 1))), n=32),
    "shufflenet": lambda: headed(conv(3, 16), Shuffle(16), nn.BatchNorm2d(16), nn.ReLU(), Shuffle(16), n=16),
    "convnext": lambda: headed(nn.Conv2d(3, 16, 2, 2), Residual(nn.Sequential(
        nn.Conv2d(16, 16, 7, 1, 3, groups=16), Last(16), nn.Conv2d(16, 64, 1), nn.GELU(), nn.Conv2d(64, 16, 1))), n=16),
    "u-net": lambda: headed(UNet(), n=8),
    "autoencoder": lambda: headed(conv(3, 8, stride=2), nn.ConvTranspose2d(8, 8, 4, 2, 1), nn.Tanh(), nn.Upsample(
        scale_factor=2, mode="bilinear"), nn.PReLU(), n=8),
    "discriminator": lambda: headed(nn.utils.parametrizations.spectral_norm(nn.Conv2d(3, 16, 4, 2, 1)),
                                    nn.LeakyReLU(0.2), nn.Conv2d(16, 16, 4, 2, 1), nn.InstanceNorm2d(16),
                                    nn.LeakyReLU(0.2), n=16),
    "vision transformer": Attention,
    "swin": lambda: headed(nn.Conv2d(3, 16, 1), Residual(Windows(16, 0)), Residual(Windows(16, 2)), Last(16), n=16),
    "mixer": lambda: headed(nn.Conv2d(3, 16, 1), Mixer(16, 256), n=16),
    "language model": Language,
    "lstm": lambda: Recurrent(nn.LSTM),
    "gru": lambda: Recurrent(nn.GRU),
    "functional": lambda: headed(Weighted(), n=8),
}
"""Small ones, by name."""

LARGE = {"resnet-20": resnet20, "resnet-50": resnet50, "vgg-16": vgg16, "wrn-16-4": lambda: wrn28_10(10, 16, 4)}
"""Of full depth."""


def fresh(name):
    """One of them, the same each time."""
    torch.manual_seed(0)
    return (NETWORKS | LARGE)[name]()


def batch(name):
    """Pictures, the same ones on every device, and their classes."""
    generator, size = torch.Generator().manual_seed(0), 32 if name in LARGE else 16
    x = torch.randn(4, 3, size, size, generator=generator, device="cpu").to(torch.get_default_device())
    return x, torch.arange(4)


def gradient(model, name, context, **options):
    """All gradients of a model by the batch of a network, as one vector; with the same dropout each time."""
    torch.manual_seed(3)
    return gradients(model, context, batch(name), **options)[0]


def compressed(name, preset, **options):
    """The gradient of a new network with compression, and the report of that."""
    model = fresh(name)
    compress = at.Compress(model, preset, min_values=64)
    return gradient(model, name, compress, **options), compress.report()
