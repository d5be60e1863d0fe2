"""Any mode of the registry for torch tensors: by what is here for it, or by its NumPy model, which makes the real
payload, slowly."""

import warnings

import torch

from actcodec import codecs, engines
from actcodec.torch.packed import Packed

__all__ = ["ENGINES", "Golden", "codec", "is_here"]

ENGINES = ("torch", "compiled", "golden")

_said = set()


class Golden:
    """A mode with its options, as ``actcodec.compress`` takes them. Raises ValueError."""

    def __init__(self, mode, **options):
        self.mode, self.options = codecs.find(mode), codecs.find(mode).settings(options)

    def encode(self, x):
        """:class:`~actcodec.torch.packed.Packed` of a contiguous float32 tensor of 1 to 5 dimensions."""
        compressed, _ = engines.compress("golden", x.cpu().numpy(), self.mode.name, **self.options)
        side, data = len(compressed.side), (compressed, x.device)
        return Packed(compressed.mode, tuple(x.shape), data, compressed.payload_bytes, side,
                      compressed.payload_bytes + side)

    def decode(self, packed):
        """The float32 tensor of a :class:`~actcodec.torch.packed.Packed`."""
        compressed, device = packed.data
        values = engines.decompress("golden", compressed)[0]
        return torch.from_numpy(values if values.flags.writeable else values.copy()).to(device)


def is_here(mode, options):
    """Whether a mode with these options has a torch version. Raises ValueError."""
    found = codecs.find(mode)
    return bool(found.torch) and found.variant(found.settings(options)) is found


def codec(mode, options, engine="torch"):
    """What encodes and decodes in a mode: with the ``engine`` "torch", or "compiled", its torch version if it has
    one for these options; otherwise, and with "golden", :class:`Golden`. That a mode is slow is said once."""
    if engine != "golden" and is_here(mode, options):
        return codecs.found(codecs.find(mode).torch)(mode, engine == "compiled", **options)
    name = codecs.find(mode).variant(codecs.find(mode).settings(options)).name
    if engine != "golden" and name not in _said:
        _said.add(name)
        warnings.warn(f"mode {name} has no torch version: its NumPy model does the work, on the CPU",
                      stacklevel=3)
    return Golden(mode, **options)
