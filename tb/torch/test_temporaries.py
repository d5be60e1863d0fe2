"""What a codec needs beside its input and its payload, by the events of PyTorch's allocator: it works in parts."""

import pytest
import torch
from torch.nn import functional as F

from actcodec.torch.golden import codec
from tb.torch.memory import measured
from tb.torch.test_packing import WAYS

MODES = [way for way in WAYS if way[0] in (
    "sfpr", "sfpr-zvc", "jpeg-act", "jpeg-base", "brc", "zvc", "ssdc", "ssdc-fp8", "dpr-fp16", "dpr-fp10", "dpr-fp8",
    "division", "comet", "mx", "bitpack-2") and not way[1].get("quantizer")]


def peaks(mode, options, dense=True, shape=(16, 32, 64, 64)):
    """Of encoding and of decoding, in times of the input's bytes; what they give counts."""
    torch.manual_seed(0)
    x = F.interpolate(torch.randn(*shape[:2], shape[2] // 8, shape[3] // 8), size=shape[2:], mode="bicubic")
    x = x if dense else x.relu_()
    one = codec(mode, options)
    one.decode(one.encode(x))  # what is allocated at first
    encoded = measured(lambda: one.encode(x))
    decoded = measured(lambda: one.decode(encoded.result))
    return encoded.peak / x.nbytes, decoded.peak / x.nbytes


@pytest.mark.parametrize("mode, options", MODES, ids=str)
def test_temporaries_are_bounded(mode, options, native):
    encode, decode = peaks(mode, options, dense=False)
    assert encode < 2
    assert decode < 2.6  # the tensor itself is one of them
