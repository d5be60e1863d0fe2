"""Models to which a subnormal number is a number like all others: they give the same where the processor takes it for a
zero."""

import subprocess
import sys

import pytest

pytest.importorskip("torch")

WORDS = [0, 1 << 31, 1, 0x8000_0001, 2, 0x7F_FFFF, 0x807F_FFFF, 0x80_0000, 0x3F80_0000, 0x7F80_0000, 0x7FC0_0000]
PROGRAM = f"""
import sys
import numpy as np
import torch
import actcodec
from actcodec.golden.gist import binarize, ssdc
if sys.argv[1] == "flush":
    assert torch.set_flush_denormal(True) and np.float32(1e-40) == 0
x = np.random.default_rng(0).choice(np.array({WORDS}, np.uint32), (2, 16, 16)).view(np.float32)
for array in (binarize.forward(x), *ssdc.encode(x), *ssdc.encode(x, "fp16")):
    print(array.tobytes().hex())
print(actcodec.compress(x.reshape(2, 1, 16, 16), "ssdc-fp16").payload.hex())
print(actcodec.compress(x.reshape(2, 1, 16, 16), "brc").payload.hex())
"""


def output(how):
    return subprocess.run([sys.executable, "-c", PROGRAM, how], check=True, capture_output=True, text=True).stdout


def test_subnormal_numbers_are_no_zeros():
    assert output("flush") == output("plain")
