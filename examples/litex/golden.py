"""What the firmware has to print, by the golden model: everything but cycles."""

import numpy as np

import actcodec
from actcodec import codecs
from actcodec.demo import sample

CASES = [("jpeg-act", 0), ("mx", 0), ("dpr-fp8", 0), ("sfpr-zvc", 1), ("brc", 1)]
"""Modes in the firmware's order, and the number of their tensor."""


def tensors():
    """Two feature maps of a ResNet-20, float32 [1, 4, 32, 32]: of a convolution and of a ReLU."""
    maps = sample()
    return [np.ascontiguousarray(maps[name][:1, :4]) for name in ("conv0", "ReLU_layers_0_relu1")]


def digest(data):
    """Of bytes: little-endian words, then what is left, as coefficients of a polynomial modulo 2^32."""
    whole = len(data) // 4 * 4
    total = len(data)
    for number in (*np.frombuffer(data[:whole], "<u4").tolist(), *data[whole:]):
        total = (31 * total + number) % (1 << 32)
    return total


def rows():
    """Of each mode: (mode, bytes, ratio, error, digests of payload and values) as text."""
    for mode, number in CASES:
        x = tensors()[number]
        compressed = actcodec.compress(x, mode)
        payload = codecs.find(compressed.mode).model.unpack(compressed).payload
        y = actcodec.decompress(compressed)
        expected = (x > 0).astype(np.float32) if mode == "brc" else x
        yield (mode, f"{len(payload)}", f"{100 * x.nbytes // len(payload) / 100:.2f}",
               f"{float(np.abs(y - expected).max()):.6f}", f"{digest(payload):08x}", f"{digest(y.tobytes()):08x}")


def differences(text):
    """What a printed ``text`` has that it should not, as lines; none if all is right."""
    lines = text.splitlines()
    golden = list(rows())
    printed = [line.split() for line in lines[2 : 2 + len(golden)]]
    wrong = [f"expected {expected}, got {line}" for expected, line in zip(golden, printed, strict=False)
             if expected != (*line[:3], *line[5:])]
    last = golden[-1][1]
    rest = ["compressed from where no memory is: memory answered a read with an error",
            "compressed into half the room: the payload is longer than the space in memory; `BYTES_OUT` has its true "
            f"length; it takes {last} bytes", "no error"]
    if lines[:1] != ["1 lane, payloads in memory"] or lines[2 + len(golden) :] != rest:
        wrong.append(f"expected around the table {rest}, got {lines}")
    return wrong
