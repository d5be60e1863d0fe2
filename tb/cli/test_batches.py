"""Many tensors by one call: both engines make the same files, and a simulated ring has all of them done."""

from dataclasses import replace

import numpy as np
import pytest

import actcodec
from actcodec import codecs, container
from actcodec.files import UserError
from actcodec.sim import rtl_engine
from tb.soak import chance

SHAPES = [(2, 3, 7, 13), (1, 1, 8, 8), (5,), (2, 40, 1, 1), (1, 5, 16, 24), (3, 9)]


@pytest.fixture
def simulators(monkeypatch):
    """All are of one accelerator; how many have been made."""
    made, simulator = [], rtl_engine.Simulator

    def counted(*arguments, **hardware):
        made.append(hardware)
        return simulator(*arguments, **hardware)

    monkeypatch.setattr("actcodec.sim.simulator.Accelerator", lambda *_, **__: chance.EQUIPPED)
    monkeypatch.setattr(rtl_engine, "configuration", lambda mode: chance.EQUIPPED.modes)
    monkeypatch.setattr(rtl_engine, "Simulator", counted)
    return made


def arrays(random):
    """More than the ring has room for, with zeros and NaN, of float32 and of 16 bits."""
    for k, shape in enumerate(SHAPES * 2):
        x = np.maximum(random.normal(size=shape), -0.3).astype(np.float32)
        x.flat[k % x.size] = np.nan
        yield x.astype(np.float16) if k >= len(SHAPES) else x


@pytest.mark.regress
def test_engines_make_the_same_of_many_tensors(simulators, random):
    accelerator = chance.EQUIPPED
    x = [*arrays(random)]
    modes = [mode.name for mode in codecs.lane_modes(*accelerator.modes) if mode.name in codecs.MODES]
    together = []
    for mode in modes:
        golden, rtl = (actcodec.compress_many(x, mode, engine=engine, cdus=accelerator.cdus)
                       for engine in ("golden", "rtl"))
        assert [container.pack(one) for one in rtl] == [container.pack(one) for one in golden], mode
        assert container.pack(golden[0]) == container.pack(actcodec.compress(x[0], mode, cdus=accelerator.cdus))
        together += golden
    assert len(simulators) == 2 * len(modes)  # float32, and 16 bits
    simulators.clear()
    golden, rtl = (actcodec.decompress_many(together, engine=engine) for engine in ("golden", "rtl"))
    for one, y, z in zip(together, golden, rtl, strict=True):
        assert (y.shape, y.dtype, y.tobytes()) == (z.shape, z.dtype, z.tobytes()), one.mode
    assert len(simulators) == 2


def test_a_payload_that_is_wrong_is_refused(simulators, random):
    some = actcodec.compress_many([*arrays(random)][:3], "sfpr-zvc", cdus=chance.EQUIPPED.cdus)
    some[1] = replace(some[1], payload=some[1].payload[:-1])
    for engine in ("golden", "rtl"):
        with pytest.raises(ValueError):
            actcodec.decompress_many(some, engine=engine)


def test_what_cannot_be_is_refused():
    x = np.ones((2, 8, 8), np.float32)
    assert actcodec.compress_many([], "brc") == actcodec.decompress_many([]) == []
    with pytest.raises(ValueError, match="engine is 'fast'"):
        actcodec.compress_many([x], "brc", engine="fast")
    with pytest.raises(TypeError, match="compressed is ndarray"):
        actcodec.decompress_many([x])
    with pytest.raises(UserError, match="mode ssdc has no hardware"):
        actcodec.compress_many([x], "ssdc", engine="rtl")
    with pytest.raises(UserError, match="mode ssdc has no hardware"):
        actcodec.decompress_many(actcodec.compress_many([x], "ssdc"), engine="rtl")
    with pytest.warns(UserWarning, match="float64"):
        actcodec.compress_many([np.full(9, 0.1)] * 2, "brc")
