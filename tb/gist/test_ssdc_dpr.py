"""Bench of SSDC with values reduced by DPR, in both directions."""

import cocotb
import numpy as np

from actcodec.golden.gist import dpr, ssdc
from actcodec.rtl.common.minifloat import Format
from actcodec.rtl.gist.ssdc_dpr import SsdcDprDecode, SsdcDprEncode
from tb.gist.ssdc import ROW
from tb.harness import Bench, chunks, rng, sectors, simulate


def test_ssdc_dpr_encode():
    simulate(SsdcDprEncode(), __file__, [encodes_as_golden])


def test_ssdc_dpr_decode():
    simulate(SsdcDprDecode(), __file__, [decodes_as_golden])


def tensors(random):
    """Tensors, their formats, golden's arrays, and these as chunks of the ports of those names. FP8 makes zeros of
    some values that are none, and those stay in the arrays."""
    for length in (1, 100, 2 * ROW, 1500):
        for density in (0, 0.5, 1):
            for form in Format:
                name = form.name.lower()
                x = np.where(random.random(length) < density,
                             np.ldexp(random.normal(0, 1, length), random.integers(-15, 8, length)), 0)
                x = x.astype(np.float32)
                assert density == 0 or length < 100 or name != "fp8" or (dpr.quantize(x[x != 0], name) & 127 == 0).any()
                arrays = ssdc.encode(x, name)
                yield x, form, arrays, {port: chunks(getattr(arrays, port).tobytes(), 32) for port in arrays._fields}


@cocotb.test
@cocotb.parametrize(pace=["never", "half"])
async def encodes_as_golden(dut, pace):
    random = rng()
    bench = await Bench.started(dut)
    for x, form, _, ports in tensors(random):
        dut.format.value = form.value
        run = await bench.run({"i": sectors(x.view(np.uint32))}, {port: len(beats) for port, beats in ports.items()},
                              random, pace, pace)
        for port, beats in ports.items():
            bench.equal(run[port], beats, f"{port} of {len(x)} as {form.name}")


@cocotb.test
@cocotb.parametrize(pace=["never", "half"])
async def decodes_as_golden(dut, pace):
    random = rng()
    bench = await Bench.started(dut)
    for x, form, arrays, ports in tensors(random):
        dut.format.value = form.value
        run = await bench.run({"length": [len(x)], "nonzero": [len(arrays.columns)], **ports}, {"o": -(-len(x) // 8)},
                              random, pace, pace)
        restored = ssdc.decode(arrays, len(x), form.name.lower())
        bench.equal(run["o"], sectors(restored.view(np.uint32)), f"{len(x)} values as {form.name}")
        assert dut.error.value == 0
