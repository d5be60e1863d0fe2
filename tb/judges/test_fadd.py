"""The golden adder against Berkeley SoftFloat, with subnormal numbers flushed by hand."""

import numpy as np
import pytest
import softfloatpy

from actcodec.golden.common import fadd

PAIRS = 10_000_000
CHUNK = 500_000


def softfloat(a, b):
    """SoftFloat's sums of words of which none is subnormal."""
    number = softfloatpy.Float32.from_bytes
    words = [[number(text[i : i + 4]) for i in range(0, len(text), 4)]
             for text in (a.astype(">u4").tobytes(), b.astype(">u4").tobytes())]
    return np.frombuffer(b"".join([total.to_bytes() for total in map(softfloatpy.f32_add, *words)]), ">u4")


def flushed(words):
    return np.where(words & 0x7F80_0000, words, words & 0x8000_0000).astype(np.uint32)


def agree(a, b):
    a, b = a.astype(np.uint32), b.astype(np.uint32)
    got = fadd.add(a.view(np.float32), b.view(np.float32)).view(np.uint32)
    expected = flushed(softfloat(flushed(a), flushed(b)))
    nan = (expected & 0x7FFF_FFFF) > 0x7F80_0000
    assert np.array_equal(got[nan], np.full(nan.sum(), fadd.QUIET_NAN))
    wrong = np.flatnonzero((got != expected) & ~nan)
    assert not wrong.size, [f"{words[wrong[0]]:08x}" for words in (a, b, got, expected)]


@pytest.mark.parametrize("kind", ["any bits", "near exponents"])
def test_ten_million_random_sums_are_softfloats(kind):
    random = np.random.default_rng(len(kind))
    assert softfloatpy.get_rounding_mode() == softfloatpy.RoundingMode.NEAR_EVEN
    for _ in range(PAIRS // 2 // CHUNK):
        a, b = random.integers(0, 2**32, (2, CHUNK), np.uint32)
        if kind == "near exponents":
            exponent = np.clip((a >> 23 & 0xFF).astype(int) + random.integers(-26, 27, CHUNK), 0, 255)
            b = b & 0x807F_FFFF | (exponent << 23).astype(np.uint32)
        agree(a, b)


def test_every_pair_of_corners_is_softfloats():
    corners = [0, 1, 2, 0x40_0000, 0x7F_FFFF, 0x80_0000, 0x80_0001, 0xC0_0000, 0xFF_FFFF, 0x100_0000, 0x100_0001,
               0x3F7F_FFFF, 0x3F80_0000, 0x3F80_0001, 0x4B7F_FFFF, 0x4B80_0000, 0x7E80_0000, 0x72FF_FFFF, 0x7300_0000,
               0x7380_0000, 0x7F00_0000, 0x7F7F_FFFE, 0x7F7F_FFFF, 0x7F80_0000, 0x7F80_0001, 0x7FBF_FFFF, 0x7FC0_0000,
               0x7FFF_FFFF]  # fmt: skip
    corners = np.array(corners + [word | 1 << 31 for word in corners])
    agree(*np.stack(np.meshgrid(corners, corners)).reshape(2, -1))
