"""The .act file: what is written is read back, and anything else is refused."""

import struct
import zlib

import numpy as np
import pytest

from actcodec import container
from actcodec.container import MODES, ContainerError, pack, unpack
from golden.jpegact import cdu


def tensor(shape, seed=0):
    x = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
    return np.where(np.arange(x.size).reshape(shape) % 3 == 0, np.float32(0), x)


def compressed(shape=(2, 2, 4, 9), mode="jpeg-act", cdus=3):
    return cdu.compress(tensor(shape), mode, "optH", cdus)


def sealed(data):
    """A file with the right CRC-32 behind ``data``."""
    return data + struct.pack("<I", zlib.crc32(data))


@pytest.mark.parametrize("shape", [(2, 3, 7, 13), (4, 5, 2, 6), (3, 2, 1, 3), (1, 1, 1, 1), (5, 7), (300, 1)])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("cdus", [1, 8])
def test_reading_gives_what_was_written(tmp_path, shape, mode, cdus):
    before = compressed(shape, mode, cdus)
    size = container.write(tmp_path / "x.act", before)
    after = container.read(tmp_path / "x.act")
    assert size == (tmp_path / "x.act").stat().st_size
    assert (after.mode, after.shape, after.dqt, after.cdus) == (before.mode, before.shape, before.dqt, before.cdus)
    assert after.payload == before.payload
    np.testing.assert_array_equal(after.table, before.table)
    np.testing.assert_array_equal(after.scales, before.scales)
    assert pack(after) == pack(before)


def test_layout_is_the_documented_one():
    c = compressed((2, 2, 4, 9), cdus=3)
    data = pack(c)
    shifts = sum(int(s) << 3 * i for i, s in enumerate(c.table.ravel()))
    words = [struct.unpack("<I", struct.pack("<f", k))[0] >> 16 for k in c.scales]
    assert data == sealed(b"\x89ACT" + bytes([1, 3, 3, 4]) + len(c.payload).to_bytes(8, "little")
                          + struct.pack("<4I", 2, 2, 4, 9) + b"\x04optH" + shifts.to_bytes(24, "little")
                          + struct.pack("<2H", *words) + c.payload)


@pytest.mark.parametrize("mode", MODES)
def test_every_changed_byte_is_refused(mode):
    data = bytearray(pack(compressed((1, 1, 8, 8), mode)))
    for position in range(len(data)):
        for change in (0x01, 0x80, 0xFF):
            data[position] ^= change
            with pytest.raises(ContainerError):
                unpack(bytes(data))
            data[position] ^= change


@pytest.mark.parametrize("mode", MODES)
def test_every_truncation_is_refused(mode):
    data = pack(compressed((1, 1, 8, 8), mode))
    for size in range(len(data)):
        with pytest.raises(ContainerError):
            unpack(data[:size])


@pytest.mark.parametrize("tail", [b"\0", b"garbage", bytes(128)])
def test_bytes_after_the_end_are_refused(tail):
    data = pack(compressed())
    with pytest.raises(ContainerError):
        unpack(data + tail)
    with pytest.raises(ContainerError, match="more than its header says"):
        unpack(sealed(data[:-4] + tail))


@pytest.mark.parametrize("data", [b"", b"\x93NUMPY", b"PK\3\4" * 10, bytes(100), b"\x89PNG\r\n\x1a\n"])
def test_foreign_files_are_named_so(data):
    with pytest.raises(ContainerError, match=r"not an \.act file"):
        unpack(data)


def test_later_versions_are_named_so():
    data = bytearray(pack(compressed()))
    data[4] = 2
    with pytest.raises(ContainerError, match="version 2; this actcodec reads version 1"):
        unpack(sealed(bytes(data[:-4])))


def header(mode=1, cdus=1, dimensions=4, payload=64, shape=(1, 1, 8, 8), rest=bytes(2 + 64)):
    return sealed(struct.pack("<4sBBBBQ", b"\x89ACT", 1, mode, cdus, dimensions, payload)
                  + struct.pack(f"<{len(shape)}I", *shape) + rest)


def test_the_header_that_the_next_tests_break_is_right():
    assert unpack(header()).shape == (1, 1, 8, 8)


@pytest.mark.parametrize("broken", [
    {"mode": 6}, {"mode": 255}, {"cdus": 0}, {"cdus": 9}, {"dimensions": 3}, {"dimensions": 0},
    {"shape": (1, 1, 0, 8)}, {"shape": (1, 1, 8, 9)}, {"shape": (1, 2, 8, 8)},
    {"shape": (2**32 - 1,) * 4}, {"mode": 4, "shape": (2**32 - 1,) * 4, "payload": 2**64 - 1},
    {"mode": 1, "shape": (1, 2**31, 1, 8), "payload": 2**34}, {"payload": 63}, {"payload": 65}, {"payload": 2**63},
    {"rest": b"\x80\xff" + bytes(64)}, {"rest": b"\xc0\x7f" + bytes(64)}, {"rest": b"\x00\x7f" + bytes(64)},
    {"mode": 3, "shape": (1, 1, 4, 8), "rest": bytes(1 + 24 + 2 + 64)},
    {"mode": 3, "payload": 8, "rest": b"\x01\xff" + bytes(24 + 2 + 8)},
    {"mode": 3, "payload": 8, "rest": b"\x01\x1b" + bytes(24 + 2 + 8)},
    {"mode": 3, "payload": 8, "rest": b"\xff" + bytes(24 + 2 + 8)},
], ids=str)
def test_contradictions_behind_a_right_crc_are_refused_without_allocating(broken):
    with pytest.raises(ContainerError):
        unpack(header(**broken))


def test_masks_that_contradict_the_payload_are_refused():
    c = unpack(header(mode=2, payload=8, rest=bytes(2) + b"\xff" + bytes(7)))
    with pytest.raises(ValueError, match="masks"):
        cdu.decompress(c)
