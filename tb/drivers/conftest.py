"""The driver in C, compiled."""

import ctypes
import os
import subprocess

import pytest

from actcodec.codecs import lane_modes
from drivers import registers
from tb.drivers.world import ROOT, SOURCES, WARNINGS, Mode, job_type, pointer, u32, u64

UNDEFINED = ("-fsanitize=undefined", "-fno-sanitize-recover=all")


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """What ``make registers`` writes."""
    place = tmp_path_factory.mktemp("registers")
    registers.write(place)
    return place


@pytest.fixture(scope="session")
def c(folder):
    """The driver and its world, compiled."""
    options = UNDEFINED + (("-fsanitize=address",) if "libasan" in os.environ.get("LD_PRELOAD", "") else ())
    compiled = folder / "driver.so"
    subprocess.run(["gcc", *WARNINGS, *options, "-g", "-O1", "-shared", "-fPIC", f"-I{folder}", f"-I{ROOT}/drivers/c",
                    *SOURCES, "-o", compiled], check=True)
    library = ctypes.CDLL(str(compiled))
    library.actcodec_text.restype = ctypes.c_char_p
    for name in ("scale", "reciprocal", "step"):
        getattr(library, f"actcodec_{name}").restype = u32
    library.actcodec_step.argtypes = [ctypes.c_float]
    library.actcodec_set.argtypes = [pointer, ctypes.c_char_p, u64]
    library.actcodec_mode_coded.restype = library.actcodec_mode_named.restype = ctypes.POINTER(Mode)
    width = max(one.low + one.width for mode in lane_modes() for one in mode.settings)
    library.Job = job_type(-(-width // 32))
    assert ctypes.sizeof(library.Job) == ctypes.c_size_t.in_dll(library, "job_size").value
    library.Pointer = ctypes.POINTER(library.Job)
    for name in ("poll", "collect"):
        getattr(library, f"actcodec_ring_{name}").restype = library.Pointer
    return library
