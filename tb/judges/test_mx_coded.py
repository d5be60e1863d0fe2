"""MX behind a coder against plain loops: elements as ml_dtypes casts them, each coder bit by bit as its own judge has
it, and scales put in by hand."""

import ml_dtypes
import numpy as np
import pytest

import actcodec
from actcodec.codecs import find, lane_modes
from actcodec.golden.jpegact import nibble, rice
from actcodec.golden.mx import coded
from actcodec.golden.offload import blocks
from actcodec.golden.offload.wire import stream
from tb.harness import SEED
from tb.judges import blockcodes, test_nibble, test_rice
from tb.judges.test_mx import MOST, SPECIAL, TYPES, exact_scale

WAYS = [(form, "zvc") for form in ("int8", *TYPES)] + [("int8", "nibble"), ("int8", "rice")]
PLAIN = {"nibble": test_nibble, "rice": test_rice}
GOLDEN = {"nibble": coded.Nibble(), "rice": coded.Rice()}
NAMES = {"nibble": ("nibble_table", nibble), "rice": ("rice_table", rice)}

each_way = pytest.mark.parametrize("form, coder", WAYS)
each_coder = pytest.mark.parametrize("coder", PLAIN)


def name_of(form, coder):
    return "-".join(("mx", *[form] * (form != "int8"), coder))


def values(n, sparse=True):
    """[n, 64], with the zeros of a ReLU or none, whole halves of zeros, and, rarely, what is no number."""
    random = np.random.default_rng(SEED)
    x = random.standard_normal((n, 64)) * np.exp2(random.integers(-12, 12, (n, 64)) * (random.random((n, 1)) < 0.3))
    x = (np.maximum(x, 0) if sparse else x).astype(np.float32)
    x.reshape(-1, 32)[random.random(2 * n) < 0.1] = 0
    some = (random.random(x.shape) < 0.02) & (random.random((n, 1)) < 0.2)
    x[some] = random.choice(SPECIAL, some.sum())
    return x


def plain_codes(row, form, scale):
    """Elements of 32 values, one at a time."""
    codes = []
    for value in row.astype(np.float64):
        if scale == 255:
            codes.append(0)
            continue
        value = value if abs(value) >= 2.0**-126 or not np.isfinite(value) else np.copysign(0, value)
        s = value / 2.0 ** (scale - 127)
        if form == "int8":
            codes.append(int(np.clip(np.rint(s * 64), -127, 127)) % 256)
        elif np.isnan(s):
            codes.append({"e4m3": 0x7F, "e5m2": 0x7E}[form])
        else:
            most = float(MOST[form])
            s = s if np.isinf(s) and form == "e5m2" else np.clip(s, -most, most)
            codes.append(int(np.float32(s).astype(TYPES[form]).view(np.uint8)))
    return codes


def plain_block(x, form, coder, word, rule):
    """The bytes of a block of 64 values."""
    scales = [exact_scale(half, form, rule) for half in x.reshape(2, 32)]
    codes = [code for half, scale in zip(x.reshape(2, 32), scales, strict=True)
             for code in plain_codes(half, form, scale)]
    if coder == "zvc":
        mask = sum((code != 0) << place for place, code in enumerate(codes))
        return bytes(scales) + mask.to_bytes(8, "little") + bytes(code for code in codes if code)
    block = PLAIN[coder].encoded([(code + 128) % 256 - 128 for code in codes], word)
    first = block[0] + 2 if coder == "nibble" else (block[0] & 0xC0) + (block[0] + 2) % 64
    return bytes([first, *scales]) + block[1:]


@pytest.mark.parametrize("rule", ["rceil", "floor", "even"])
@each_way
def test_bytes_are_those_of_plain_loops(form, coder, rule):
    mode, = lane_modes(name_of(form, coder))
    for sparse in (True, False):
        x = values(40, sparse)
        settings = mode.model.fit(x, rule=rule)[1]
        payload, _ = mode.model.encode(x, blocks.view(x.shape), None, settings, 1)
        word = settings.get(f"{coder}_table")
        expected = [plain_block(row, form, coder, word, rule) for row in x]
        assert payload == b"".join(expected)
        assert mode.model.path.coder.sizes(payload, len(x)).tolist() == [len(block) for block in expected]
        assert all(mode.format.shortest <= len(block) <= mode.format.longest for block in expected)


@each_coder
def test_blocks_of_every_length_and_the_longest(coder):
    """The first byte of each; of `rice`, those at which its six bits begin anew."""
    golden, (name, module) = GOLDEN[coder], NAMES[coder]
    x = np.zeros((400, 66), np.uint8)
    x[:, :2] = np.random.default_rng(SEED).integers(0, 256, (400, 2))
    x[:, 2:] = blockcodes.of_every_kind(5, 400).view(np.uint8)
    table = module.fit(x[:, 2:].view(np.int8))
    seen = set()
    for straight in (False, True):
        settings = {name: module.fit(x[:, 2:].view(np.int8), straight).word if straight else table.word}
        payload, sizes = golden.encode(x, settings)
        starts = np.cumsum(sizes) - sizes
        for block, start, size in zip(x, starts, sizes, strict=True):
            inner = PLAIN[coder].encoded(block[2:].view(np.int8).tolist(), settings[name])
            first, low = int(payload[start]), int(payload[start]) & 63
            assert size == len(inner) + 2
            assert size - 1 == (first if coder == "nibble" else {0: 64, 1: 66}.get(low, low))
            seen.add(int(size))
        back = golden.decode(payload, golden.sizes(payload, len(x)), (len(x), 64), settings)
        np.testing.assert_array_equal(back, x)
    assert {3, 67} < seen and len(seen) > 40


@each_coder
def test_any_bytes_are_read_as_plain_loops_read_them(coder):
    """Random streams, cut ones, and ones with a flipped bit: values, faults, and what is left."""
    golden, (name, module) = GOLDEN[coder], NAMES[coder]
    random = np.random.default_rng(SEED)
    x = np.zeros((16, 66), np.uint8)
    x[:, :2], x[:, 2:] = random.integers(0, 256, (16, 2)), blockcodes.of_every_kind(3, 16).view(np.uint8)
    settings = {name: module.fit(x[:, 2:].view(np.int8)).word}
    payload = golden.encode(x, settings)[0].tobytes()
    streams = [bytes(random.integers(0, high, 500, np.uint8)) for high in (4, 60, 256)] + [b"", payload + b"\2\1\2"]
    streams += [payload[: random.integers(len(payload))] for _ in range(4)]
    for _ in range(12):
        flipped = bytearray(payload)
        flipped[random.integers(len(payload))] ^= 1 << random.integers(8)
        streams.append(bytes(flipped))
    for one in streams:
        expected, at = [], 0
        for _ in range(16):
            if at >= len(one):
                expected.append(([0] * 66, 8))
                at = max(at + 1, len(one))
                continue
            first = one[at]
            follow = first if coder == "nibble" else {0: 64, 1: 66}.get(first % 64, first % 64)
            block, cut = one[at : at + 1 + follow].ljust(1 + follow, b"\0"), at + 1 + follow > len(one)
            at += 1 + follow
            if follow < 2:
                expected.append(([0] * 66, 1 | 8 * cut))
                continue
            own = first - 2 if coder == "nibble" else (first & 0xC0) | (first - 2) % 64
            codes, faults = PLAIN[coder].decoded((bytes([own]) + block[3:])[:65], settings[name])
            expected.append(([*block[1:3], *(code % 256 for code in codes)], faults | 8 * cut))
        result = golden.recover(one, 16, settings)
        assert result.blocks.tolist() == [block for block, _ in expected]
        assert result.faults.tolist() == [faults for _, faults in expected]
        assert result.excess == max(len(one) - at, 0)
        if result.faults.any() or result.excess:
            with pytest.raises(ValueError, match=r"malformed|follow|do not add up|which is not legal"):
                golden.decode(np.frombuffer(one, np.uint8), golden.sizes(one, 16), (16, 64), settings)


@each_way
@pytest.mark.parametrize("shape", [(2, 3, 7, 13), (1, 5, 8, 9), (4, 40), (70,), (1, 1), (5, 96)], ids=str)
def test_files_give_what_mx_gives_without_a_coder(form, coder, shape):
    """Ragged tensors, any number of CDUs; and in the order of the wire."""
    x = np.maximum(np.random.default_rng(SEED).standard_normal(shape), 0).astype(np.float32)
    plain = actcodec.decompress(actcodec.compress(x, "mx", format=form))
    one = actcodec.compress(x, "mx", format=form, coder=coder)
    for cdus in (1, 3, 8):
        file = actcodec.compress(x, "mx", format=form, coder=coder, cdus=cdus)
        np.testing.assert_array_equal(actcodec.decompress(file).view(np.uint32), plain.view(np.uint32))
        coder_ = find("mx").variant(file.options).model.path.coder
        count = blocks.view(one.seen.shape).blocks(False)
        sizes = coder_.sizes(one.payload, count)
        assert file.payload == stream.interleave(np.frombuffer(one.payload, np.uint8), sizes, cdus)[0].tobytes()
        assert file.side == one.side and actcodec.evaluate(x, "mx", format=form, coder=coder, cdus=cdus).saturated == 0


def test_bits_above_a_code_do_not_count():
    """A byte that ZVC brings may have any."""
    mode, = lane_modes("mx-e2m1-zvc")
    codes = np.arange(256, dtype=np.uint8).reshape(4, 64)
    x = np.concatenate([np.full((4, 2), 127, np.uint8), codes], axis=1)
    back = mode.model.path.stages[0].backward(x, {})
    expected = np.tile(np.arange(16, dtype=np.uint8).view(ml_dtypes.float4_e2m1fn).astype(np.float32), 16)
    np.testing.assert_array_equal(back.reshape(-1), expected)


def test_what_no_coder_can_have_is_an_error():
    x = np.zeros((4, 40), np.float32)
    for options, words in (({"format": "e4m3", "coder": "rice"}, "mode mx has no format e4m3 with coder rice"),
                           ({"format": "e2m1", "coder": "nibble"}, "mode mx has no format e2m1 with coder nibble"),
                           ({"coder": "zvc", "scales": "apart"}, "scales is 'apart', must be inline"),
                           ({"coder": "rle"}, "coder is 'rle', must be none, zvc, nibble, rice")):
        with pytest.raises(ValueError, match=words):
            actcodec.compress(x, "mx", **options)


@each_way
def test_a_file_that_is_cut_or_spoilt_is_an_error(form, coder):
    x = np.maximum(np.random.default_rng(SEED).standard_normal((3, 256)), 0).astype(np.float32)
    file = actcodec.compress(x, "mx", format=form, coder=coder)
    for payload in (file.payload[:-1], file.payload + b"\0", b"", b"\0" * len(file.payload)):
        broken = actcodec.Compressed("mx", file.shape, payload, file.options, file.side)
        with pytest.raises(ValueError, match=r"payload|block"):
            actcodec.decompress(broken)


def test_torchao_takes_no_elements_behind_a_coder():
    pytest.importorskip("torch")
    from actcodec import mx

    with pytest.raises(ValueError, match="coder is zvc, must be none"):
        mx.to_torchao(actcodec.compress(np.ones((4, 64), np.float32), "mx", format="e4m3", coder="zvc"))
