"""Counted blocks, whose first byte says how long they are, through whole accelerators: with the benches' own codec."""

from dataclasses import replace

import numpy as np
import pytest

from actcodec import codecs
from actcodec.codecs.codec import LanePayload
from actcodec.golden.jpegact import sfpr
from actcodec.golden.offload import blocks
from actcodec.golden.offload.wire import stream
from actcodec.sim.rtl_engine import SimulatedHost
from tb.harness import SEED
from tb.offload import trim

SHAPES = [(1, 1, 8, 8), (2, 3, 7, 13), (1, 5, 16, 40), (3, 9), (1, 2, 30, 56)]


pytestmark = pytest.mark.regress


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setitem(codecs.MODES, trim.TRIM.name, trim.TRIM)


def expected(x, cdus, key):
    """What the accelerator makes of a tensor, and the tensor that comes back."""
    view = blocks.view(x.shape)
    k = sfpr.scales(x).k
    y = sfpr.quantize(x.reshape(view.rows, view.width), k[view.channel, None])
    payload, sizes = trim.encode(blocks.split(y, view, False).view(np.uint8), key)
    payload, _ = stream.interleave(payload, sizes, cdus)
    back = sfpr.dequantize(y, sfpr.reciprocal(k[view.channel, None])).reshape(x.shape)
    return LanePayload(trim.TRIM, x.shape, payload.tobytes(), k, {"key": key}, cdus), back


def tensor(random, shape):
    """Some blocks empty, some full, most in between."""
    x = random.normal(0, 1, shape).astype(np.float32)
    flat = x.reshape(-1)
    for start in range(0, flat.size, 64):
        flat[start + int(random.choice([0, 1, 30, 63, 64])) : start + 64] = 0
    return x


@pytest.mark.parametrize("cdus", [1, 2, 4])
def test_tensors_there_and_back(cdus):
    random = np.random.default_rng(SEED)
    for shape in SHAPES:
        x, key = tensor(random, shape), int(random.integers(1 << 40))
        compressed, back = expected(x, cdus, key)
        result, payload = SimulatedHost(shape, "trim", cdus).compress(x, "trim", settings={"key": key})
        assert payload == compressed.payload and result.settings == {"key": key}, f"SEED={SEED} {shape}"
        _, tensor_ = SimulatedHost(shape, "trim", cdus).decompress(compressed)
        np.testing.assert_array_equal(tensor_, back, f"SEED={SEED} {shape}")


@pytest.mark.parametrize("cdus", [1, 4])
def test_whatever_the_stream_says_it_ends(cdus):
    """First bytes that are too large, some of them larger than a packet; a stream that is cut, and one that goes on."""
    random = np.random.default_rng(SEED)
    ends = set()
    for turn in range(40):
        x = tensor(random, (1, 5, 16, 40))
        compressed, _ = expected(x, cdus, 0)
        payload = bytearray(compressed.payload)
        if turn % 4 == 0:
            payload = payload[: random.integers(1, len(payload))]
        elif turn % 4 == 1:
            payload += random.bytes(int(random.integers(1, 200)))
        else:
            for at in random.integers(len(payload), size=3):
                payload[at] = random.choice([255, 127, 128, 65, 200])
        host = SimulatedHost(x.shape, "trim", cdus)
        try:
            host.decompress(replace(compressed, payload=bytes(payload)))
            ends.add("well")
        except ValueError as error:
            ends.add(str(error).split()[-1])
        x = tensor(random, (1, 5, 16, 40))  # and the next tensor is right
        assert host.compress(x, "trim", settings={"key": 7})[1] == expected(x, cdus, 7)[0].payload
    assert {"SHORT", "EXCESS"} <= ends, f"SEED={SEED}: {ends}"
