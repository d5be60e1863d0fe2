"""The .act file: what is written is read back, and anything else is refused."""

import struct
import zlib

import numpy as np
import pytest

import actcodec
from actcodec import codecs, container, engines, tensors
from actcodec.codecs.compressed import Compressed
from actcodec.container import ContainerError, pack, unpack
from actcodec.golden.jpegact import sfpr

MODES = tuple(codecs.MODES)
CODES = {"raw": 0, "sfpr": 1, "sfpr-zvc": 2, "jpeg-act": 3, "brc": 4, "zvc": 5, "ssdc": 7,
         "ssdc-fp16": 8, "ssdc-fp10": 9, "ssdc-fp8": 10, "dpr-fp16": 11, "dpr-fp10": 12, "dpr-fp8": 13,
         "bitpack-1": 14, "bitpack-2": 15, "bitpack-3": 16, "jpeg-base": 20, "comet": 21, "division": 22,
         "mx": 56}
FLAT = [mode for mode in CODES if 6 <= CODES[mode] < 20]


def tensor(shape, seed=0):
    x = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
    return np.where(np.arange(x.size).reshape(shape) % 3 == 0, np.float32(0), x)


def compressed(shape=(2, 2, 4, 9), mode="jpeg-act", cdus=3):
    options = codecs.find(mode).options
    given = {"dqt": "optH", "cdus": min(cdus, codecs.find(mode).option("cdus").range[1])}
    chosen = {option.name: given[option.name] for option in options if option.name in given}
    return engines.compress("golden", tensor(shape), mode, **chosen)[0]


def sealed(data):
    """A file with the right CRC-32 behind ``data``."""
    return data + struct.pack("<I", zlib.crc32(data))


@pytest.mark.parametrize("shape", [(2, 3, 7, 13), (4, 5, 2, 6), (3, 2, 1, 3), (1, 1, 1, 1), (5, 7), (300, 1), (70,),
                                   (2, 9, 9), (2, 3, 2, 5, 9)])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("cdus", [1, 8])
def test_reading_gives_what_was_written(tmp_path, shape, mode, cdus):
    before = compressed(shape, mode, cdus)
    size = container.write(tmp_path / "x.act", before)
    after = container.read(tmp_path / "x.act")
    assert size == (tmp_path / "x.act").stat().st_size
    for name in ("mode", "shape", "dtype", "options", "side", "payload"):
        assert getattr(after, name) == getattr(before, name)
    assert size == before.nbytes
    assert pack(after) == pack(before)


def test_layout_is_the_documented_one():
    c = compressed((2, 2, 4, 9), cdus=3)
    data = pack(c)
    shifts = sum(int(s) << 3 * i for i, s in enumerate(c.options["dqt"].shifts.ravel()))
    k = sfpr.scales(tensor((2, 2, 4, 9))).k
    words = [struct.unpack("<I", struct.pack("<f", scale))[0] >> 16 for scale in k]
    assert data == sealed(b"\x89ACT" + bytes([1, 3, 3, 4]) + len(c.payload).to_bytes(8, "little")
                          + struct.pack("<4I", 2, 2, 4, 9) + b"\x04optH" + shifts.to_bytes(24, "little")
                          + struct.pack("<2H", *words) + c.payload)


@pytest.mark.parametrize("mode", ["raw", "zvc"])
@pytest.mark.parametrize("dtype, old, new", [("float16", 1, 4), ("bfloat16", 2, 5)])
def test_words_of_16_bits_have_a_type_of_their_own_and_files_of_before_stay_readable(mode, dtype, old, new):
    """Earlier versions wrote these tensors in words of float32, which a file may have still."""
    x = tensors.restore(tensor((2, 3, 7, 13)), (2, 3, 7, 13), dtype)
    c = actcodec.compress(x, mode, cdus=3)
    data = pack(c)
    assert data[7] == new << 4 | 4
    assert pack(unpack(data)) == data
    wide = pack(actcodec.compress(tensors.as_float32(x)[0], mode, cdus=3))
    wide = sealed(wide[:7] + bytes([old << 4 | 4]) + wide[8:-4])
    before = unpack(wide)
    assert pack(before) == wide
    assert (before.dtype, before.length) == (dtype, c.length)
    for one in (c, before, unpack(data)):
        np.testing.assert_array_equal(actcodec.decompress(one).view(np.uint16), x.view(np.uint16))
    if mode == "raw":  # the lengths of the one are wrong in the other
        for kind, other in ((old, data), (new, wide)):
            with pytest.raises(ContainerError, match="invalid: payload has"):
                unpack(sealed(other[:7] + bytes([kind << 4 | 4]) + other[8:-4]))


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode not in ("raw", "zvc")])
def test_other_modes_have_no_words_of_16_bits_and_few_have_codes(mode):
    data = pack(compressed((1, 1, 8, 8), mode))
    for kind in (4, 5, *([] if codecs.find(mode).codes else [6]), 7, 15):
        with pytest.raises(ContainerError, match=f"invalid header: mode {CODES[mode]}, type {kind}"):
            unpack(sealed(data[:7] + bytes([kind << 4 | 4]) + data[8:-4]))


@pytest.mark.parametrize("mode", CODES)
def test_the_code_of_a_mode_stays(mode):
    """Files that are out there have it."""
    assert codecs.find(mode).code == CODES[mode]
    assert pack(compressed((1, 1, 8, 8), mode))[5] == CODES[mode]


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


@pytest.mark.parametrize("cdus", [1, 3])
@pytest.mark.parametrize("mode", FLAT)
def test_layout_of_the_modes_of_gist_is_the_documented_one(mode, cdus):
    """The number of CDUs changes nothing but the byte that tells it."""
    x = tensor((2, 3, 7, 13))  # 546 values
    c = compressed(x.shape, mode, cdus)
    cdus = 1 if mode.startswith("ssdc") else cdus
    nonzero = struct.pack("<Q", 364) if mode.startswith("ssdc") else b""
    assert pack(c) == sealed(b"\x89ACT" + bytes([1, 7 + FLAT.index(mode), cdus, 4])
                             + len(c.payload).to_bytes(8, "little") + struct.pack("<4I", 2, 3, 7, 13) + nonzero
                             + c.payload)
    rows = [np.flatnonzero(row) for row in np.split(x.reshape(-1), [256, 512])]
    arrays = {"ssdc": x[x != 0].tobytes(), "ssdc-fp16": x[x != 0].astype("<f2").tobytes()}
    tail = bytes(np.concatenate(rows).astype(np.uint8)) + struct.pack("<3H", *map(len, rows))
    if mode in arrays:
        assert c.payload == arrays[mode] + tail
    elif mode.startswith("ssdc"):
        assert len(c.payload) == {"ssdc-fp10": 488, "ssdc-fp8": 364}[mode] + len(tail)
    else:
        size = {"dpr-fp16": 1092, "dpr-fp10": 728, "dpr-fp8": 548, "bitpack-1": 546,
                "bitpack-2": 1092, "bitpack-3": 1638}
        assert len(c.payload) == size[mode]


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
    {"mode": 17}, {"mode": 255}, {"cdus": 0}, {"cdus": 9}, {"dimensions": 6}, {"dimensions": 0}, {"dimensions": 0x44},
    {"shape": (1, 1, 0, 8)}, {"shape": (1, 1, 8, 9)}, {"shape": (1, 2, 8, 8)},
    {"shape": (2**32 - 1,) * 4}, {"mode": 4, "shape": (2**32 - 1,) * 4, "payload": 2**64 - 1},
    {"mode": 1, "shape": (1, 2**31, 1, 8), "payload": 2**34}, {"payload": 63}, {"payload": 65}, {"payload": 2**63},
    {"rest": b"\x80\xff" + bytes(64)}, {"rest": b"\xc0\x7f" + bytes(64)}, {"rest": b"\x00\x7f" + bytes(64)},
    {"mode": 3, "shape": (1, 1, 4, 8), "rest": bytes(1 + 24 + 2 + 64)},
    {"mode": 3, "payload": 8, "rest": b"\x01\xff" + bytes(24 + 2 + 8)},
    {"mode": 3, "payload": 8, "rest": b"\x01\x1b" + bytes(24 + 2 + 8)},
    {"mode": 3, "payload": 8, "rest": b"\xff" + bytes(24 + 2 + 8)},
    *({"mode": mode, "cdus": 2, "shape": (1, 1, 1, 8), "payload": size, "rest": bytes(size)}
      for mode, size in ((6, 1),)),
    *({"mode": mode, "shape": (1, 1, 0, 8), "payload": 0, "rest": b""} for mode in (6, 11, 14)),
    *({"mode": mode, "shape": (1, 1, 1, 9), "payload": size + change, "rest": bytes(size + change)}
      for mode, size in ((6, 2), (11, 20), (12, 12), (13, 12), (14, 9), (15, 18), (16, 27)) for change in (-1, 1)),
    *({"mode": mode, "shape": (2**32 - 1,) * 4, "payload": size, "rest": bytes(size)}
      for mode, size in ((6, 64), (7, 72), (11, 64), (14, 64))),
], ids=str)
def test_contradictions_behind_a_right_crc_are_refused_without_allocating(broken):
    with pytest.raises(ContainerError):
        unpack(header(**broken))


def test_masks_that_contradict_the_payload_are_refused():
    c = unpack(header(mode=2, payload=8, rest=bytes(2) + b"\xff" + bytes(7)))
    with pytest.raises(ValueError, match="masks"):
        engines.decompress("golden", c)


def ssdc(nonzero=3, shape=(1, 1, 2, 150), values=bytes(12), columns=(0, 255, 43), counts=(2, 1), mode=7, cdus=1):
    content = values + bytes(columns) + struct.pack(f"<{len(counts)}H", *counts)
    return header(mode, cdus, 4, len(content), shape, struct.pack("<Q", nonzero) + content)


def test_the_arrays_of_ssdc_that_the_next_tests_break_are_right():
    for mode, words in ((7, 3), (8, 2), (9, 1), (10, 1)):
        assert unpack(ssdc(mode=mode, values=bytes(4 * words))).side == struct.pack("<Q", 3)
    assert unpack(ssdc(0, values=b"", columns=(), counts=(0, 0))).ratio == 300


@pytest.mark.parametrize(("broken", "what"), [
    ({"cdus": 2}, "2 CDUs in mode ssdc"),
    ({"counts": (257, 1)}, "row 0 counts 257 values and has room for 256"),
    ({"counts": (2, 45)}, "row 1 counts 45 values and has room for 44"),
    ({"counts": (1, 1)}, "3 columns, the row counts ask for 2"),
    ({"counts": (2, 2)}, "3 columns, the row counts ask for 4"),
    ({"columns": (255, 255, 43)}, "columns do not ascend"), ({"columns": (9, 8, 43)}, "columns do not ascend"),
    ({"columns": (0, 255, 44)}, "columns do not ascend, or lie beyond"),
    ({"nonzero": 2}, "payload has 19 bytes, mode ssdc needs 14"),
    ({"nonzero": 4}, "needs 24"), ({"nonzero": 2**64 - 1}, "needs"), ({"nonzero": 0}, "needs"),
    ({"counts": (2, 1, 0)}, "payload has 21 bytes, mode ssdc needs 19"), ({"counts": (2,)}, "payload has 17 bytes"),
    ({"columns": (0, 255)}, "payload has 18 bytes"), ({"columns": (0, 255, 43, 44)}, "payload has 20 bytes"),
    ({"values": bytes(8)}, "payload has 15 bytes"), ({"values": bytes(16)}, "payload has 23 bytes"),
    ({"mode": 8}, "mode ssdc-fp16 needs 15"), ({"mode": 9}, "mode ssdc-fp10 needs 11"),
    ({"mode": 10}, "mode ssdc-fp8 needs 11"), ({"shape": (1, 1, 0, 8)}, "empty"),
    ({"shape": (2**32 - 1,) * 4}, "payload has 19 bytes"),
], ids=str)
def test_arrays_of_ssdc_that_contradict_each_other_are_refused(broken, what):
    with pytest.raises(ContainerError, match=what):
        unpack(ssdc(**broken))


def test_a_file_of_ssdc_that_ends_in_its_number_of_values_is_refused():
    with pytest.raises(ContainerError, match="ends within its side information"):
        unpack(header(mode=7, payload=0, shape=(1, 1, 1, 1), rest=bytes(7)))


@pytest.mark.parametrize("broken", [
    {"shape": (1, 0)}, {"shape": ()}, {"shape": (1,) * 6}, {"shape": (2**32, 1)}, {"mode": "gif"}, {"dtype": "int8"},
    {"options": {"cdus": 9}}, {"options": {"dqt": "optL"}}, {"side": bytes(3)}, {"side": b"\xff\xff"},
    {"payload": bytes(63)}], ids=str)
def test_what_would_not_be_read_is_not_written(tmp_path, broken):
    parts = {"mode": "sfpr", "shape": (1, 64), "payload": bytes(64), "side": bytes(2)}
    container.write(tmp_path / "right.act", Compressed(**parts))
    with pytest.raises(ValueError):
        container.write(tmp_path / "wrong.act", Compressed(**parts | broken))
    assert [path.name for path in tmp_path.iterdir()] == ["right.act"]
