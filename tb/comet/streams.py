"""What an accelerator with COMET makes of tensors and of streams, good ones and bad ones."""

from dataclasses import replace

import numpy as np

from actcodec.golden.comet import comet, lorenzo, prequantise
from actcodec.golden.comet.book import histogram
from actcodec.golden.comet.huffman import Error
from actcodec.golden.offload.wire import stream
from actcodec.rtl.offload.control.register_map import ErrorCode

__all__ = ["counts", "restored"]


def restored(one, shape, payload, lengths):
    """The tensor and the error code of a ``payload``, any bytes, in place of that of golden's ``Encoded``, with any
    ``lengths``; of a shape or a view. Those of lanes without a group do not count."""
    cdus = len(one.streams)
    used = [np.any(lorenzo.groups(shape, one.config.tiled) % cdus == c) for c in range(cdus)]
    dealt = [length if use else 0 for use, length in zip(used, lengths, strict=True)]
    streams = stream.unweave(payload, dealt)
    x, error = comet.decompress(replace(one, streams=tuple(streams)), shape)
    lacks = any(len(data) < length for data, length in zip(streams, dealt, strict=True))
    goes_on = len(payload) > sum(-(-length // 8) * 8 for length in dealt)
    return x, (ErrorCode.SHORT if lacks or Error.SHORT in error else
               ErrorCode.EXCESS if goes_on or Error.EXCESS in error else ErrorCode.NONE)


def counts(one, x, view=None):
    """The histogram that its lanes make of a tensor, or of a view's rows: of every lane one value of each round, all of
    them together."""
    cdus, shape = len(one.streams), view or x.shape
    u = lorenzo.residuals(prequantise.quantize(x, one.s)[0], shape, one.config)
    owner = lorenzo.groups(shape, one.config.tiled) % cdus
    return sum(histogram(u[owner == c], sampled=True) for c in range(cdus) if np.any(owner == c)).tolist()
