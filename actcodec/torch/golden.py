"""Any mode of the registry for torch tensors, by its NumPy model: its real payload, slowly."""

import warnings

import torch

from actcodec import codecs, engines
from actcodec.torch.lane import Lane, Packed, is_here

__all__ = ["Golden", "codec"]

_said = set()


class Golden:
    """A mode with its options, as ``actcodec.compress`` takes them. Raises ValueError."""

    def __init__(self, mode, **options):
        self.mode, self.options = codecs.find(mode), codecs.find(mode).settings(options)

    def encode(self, x):
        """:class:`~actcodec.torch.lane.Packed` of a contiguous float32 tensor of 1 to 5 dimensions."""
        compressed, _ = engines.compress("golden", x.cpu().numpy(), self.mode.name, **self.options)
        side, data = len(compressed.side), (compressed, x.device)
        return Packed(compressed.mode, tuple(x.shape), data, compressed.payload_bytes, side,
                      compressed.payload_bytes + side)

    def decode(self, packed):
        """The float32 tensor of a :class:`~actcodec.torch.lane.Packed`."""
        compressed, device = packed.data
        values = engines.decompress("golden", compressed)[0]
        return torch.from_numpy(values if values.flags.writeable else values.copy()).to(device)


def codec(mode, options, engine="torch"):
    """What encodes and decodes in a mode: :class:`~actcodec.torch.lane.Lane` where there is one, otherwise, and with
    the ``engine`` "golden", :class:`Golden`. That a mode is slow is said once."""
    if engine == "torch" and is_here(mode, options):
        return Lane(mode, **options)
    found = Golden(mode, **options)
    name = found.mode.variant(found.options).name
    if engine == "torch" and name not in _said:
        _said.add(name)
        warnings.warn(f"mode {name} has no torch version: its NumPy model does the work, on the CPU", stacklevel=3)
    return found
