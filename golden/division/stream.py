"""Collector and splitter: the payload as the streams of several CDUs make it (JPEG-ACT, section III-G, figure 15)."""

import numpy as np

from actcodec.golden.division import codec
from actcodec.golden.division.view import View
from actcodec.golden.offload.wire import stream


def interleave(payload: bytes, view: View, bits: int, cdus: int) -> bytes:
    """The payload (bytes) of a View's tensor in the order in which `cdus` CDUs give it: their blocks in turn.

    Raises ValueError unless `cdus` is an int, 1 to 8.
    """
    data = np.frombuffer(payload, np.uint8)
    return stream.interleave(data, codec.block_sizes(view, bits), cdus)[0].tobytes()


def deinterleave(payload: bytes, view: View, bits: int, cdus: int) -> bytes:
    """The reverse of `interleave`."""
    sizes = codec.block_sizes(view, bits)[stream.order(view.blocks, cdus)]
    return stream.deinterleave(np.frombuffer(payload, np.uint8), sizes, cdus)[0].tobytes()
