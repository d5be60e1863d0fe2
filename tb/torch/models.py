"""Small networks and their gradients."""

import torch
from torch import nn
from torch.nn import functional as F

from actcodec import codecs
from actcodec.torch import rules
from actcodec.torch.resnet import resnet8


def lossless(name):
    """Whether a preset gives the very same gradients: its modes are lossless, or keep the one bit that is asked for."""
    return all(one.mode is None or not codecs.find(one.mode).lossy or one.mode in rules.ONE_BIT
               for one in rules.preset(name))


def pictures(count=8, size=16, seed=0):
    """The same ones on every device."""
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(count, 3, size, size, generator=generator, device="cpu").to(torch.get_default_device()),
            torch.randint(0, 10, (count,), generator=generator, device="cpu").to(torch.get_default_device()))


def small(seed=0):
    """A ResNet of 8 layers, 8 channels wide at first."""
    torch.manual_seed(seed)
    return resnet8(width=8)


def gradients(model, context=None, data=None, inside=False, run=lambda model, x: model(x)):
    """All gradients of a model, as one vector, and the loss. ``run`` has it work on a batch."""
    x, y = data or pictures()
    model.zero_grad()
    if context is None:
        loss = F.cross_entropy(run(model, x).float(), y)
        loss.backward()
    else:
        with context:
            loss = F.cross_entropy(run(model, x).float(), y)
            if inside:
                loss.backward()
        if not inside:
            loss.backward()
    return torch.cat([one.grad.reshape(-1) for one in model.parameters() if one.grad is not None]), loss.detach()


def relative(result, exact):
    return float((result.double() - exact.double()).norm() / exact.double().norm())


class Attention(nn.Module):
    """Two heads, layer norm and GELU: views of one memory, tensors of three dimensions."""

    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(3, 32, 4, 4)
        self.norm = nn.LayerNorm(32)
        self.qkv = nn.Linear(32, 96)
        self.mlp = nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Dropout(0.1), nn.Linear(64, 32))
        self.fc = nn.Linear(32, 10)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        n, length, _ = x.shape
        q, k, v = self.qkv(self.norm(x)).view(n, length, 3, 2, 16).permute(2, 0, 3, 1, 4).unbind(0)
        weights = torch.softmax(q @ k.transpose(-1, -2) / 4, dim=-1)
        x = x + (weights @ v).transpose(1, 2).reshape(n, length, 32)
        return self.fc((x + self.mlp(x)).mean(dim=1))


def kinds(compress):
    return [(row.layer, row.kind, row.mode) for row in compress.report().rows]
