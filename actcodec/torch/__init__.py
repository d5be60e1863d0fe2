"""The codecs in PyTorch: activations are kept compressed between the forward and the backward pass of a model.

>>> import torch
>>> import actcodec.torch as at
>>> model = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3), torch.nn.ReLU(), torch.nn.Conv2d(16, 16, 3))
>>> compress = at.Compress(model, "jpeg-act", dqt="optH")
>>> with compress:
...     loss = model(torch.ones(4, 3, 34, 34)).mean()
>>> loss.backward()
>>> [(row.layer, row.kind, row.mode) for row in compress.report().rows]
[('1', 'relu', 'sfpr-zvc')]

docs/pytorch.md has the rest. Needs PyTorch (the extra ``torch``).
"""

from actcodec.torch import kernels
from actcodec.torch.acgc import AcGc
from actcodec.torch.adaptive import Adaptive
from actcodec.torch.awp import Awp
from actcodec.torch.compress import Compress
from actcodec.torch.own import Codec
from actcodec.torch.report import Report
from actcodec.torch.rules import KINDS, preset, rule
from actcodec.torch.schedule import Schedule, optl5h

__all__ = ["KINDS", "AcGc", "Adaptive", "Awp", "Codec", "Compress", "Report", "Schedule", "kernels", "optl5h", "preset",
           "rule"]
