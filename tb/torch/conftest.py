"""One thread, as benches run side by side; the device that tests run on; and what runs of kernels in Triton."""

import gc

import pytest
import torch

from actcodec.torch import kernels

IN_TRITON = [
    ("sfpr", {}), ("sfpr", {"signs": True}), ("sfpr", {"scaling": "tensor", "clip": 1.0}),
    ("sfpr-zvc", {"scaling": "cap", "cap": 2.7, "signs": True}), ("sfpr-zvc", {"coder": "nibble"}),
    ("sfpr-zvc", {"coder": "rice"}), ("jpeg-act", {"coder": "nibble"}), ("jpeg-act", {"coder": "rice"}),
    ("jpeg-act", {"dqt": "optL"}), ("jpeg-act", {"dqt": "optH"}), ("jpeg-act", {"quantizer": "div", "dqt": 3.25}),
    ("jpeg-act", {"quantizer": "div", "dqt": "optH-div", "dead_zone": 3}), ("jpeg-base", {}), ("brc", {}), ("zvc", {}),
    ("ssdc", {}), ("ssdc-fp16", {}), ("ssdc-fp10", {}), ("ssdc-fp8", {}), ("dpr-fp16", {}), ("dpr-fp10", {}),
    ("dpr-fp8", {}), ("bitpack-1", {}), ("bitpack-2", {}), ("bitpack-3", {}), ("mx", {}),
    ("mx", {"rule": "even"}), ("mx", {"format": "e4m3"}),
    ("mx", {"format": "e5m2", "rule": "floor"}), ("mx", {"format": "e3m2", "rule": "even"}),
    ("mx", {"format": "e2m3"}), ("mx", {"format": "e2m1", "rule": "floor"}), ("mx", {"coder": "zvc", "format": "e4m3"}),
    ("mx", {"coder": "nibble"}), ("mx", {"coder": "rice"}), ("division", {}),
    ("division", {"bits": 1, "seed": 5, "lfc": "on"}),
    ("division", {"bits": 4, "rounding": "nearest", "lfc": "on"}), ("division", {"lfc": "off"}),
    ("division", {"offset": "min", "lfc": "on", "seed": 2**32 - 1}), ("comet", {}),
    ("comet", {"relative_bound": 0.1, "cdus": 3}), ("comet", {"error_bound": 1e-4, "predictor": "line"}),
]
"""What is enough of the modes, with options, as Triton's interpreter is slow: every branch of a kernel."""


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    torch.set_num_threads(1)
    torch.backends.cudnn.deterministic = True
    gc.freeze()  # else what counts bytes spends most of its time looking for garbage in all that is imported


@pytest.fixture(params=["cpu", "cuda"])
def device(request):
    """Both, one after another; tensors and networks are made there. Without a GPU ``tb/conftest.py`` leaves out the
    second one, and says so."""
    if request.param == "cpu":
        yield "cpu"
    else:
        torch.set_default_device("cuda")
        yield "cuda"
        torch.set_default_device(None)


@pytest.fixture(params=[True, False], ids=["native", "operations"])
def native(request, monkeypatch):
    """With the native kernels, and without. A machine that tests has a compiler."""
    monkeypatch.setattr(kernels, "enabled", request.param)
    assert not request.param or kernels.library("packing") is not None


@pytest.fixture
def triton(monkeypatch):
    """Kernels in Triton do all that they can: on a GPU, or by Triton's interpreter. The device of the tensors."""
    if torch.cuda.is_available():
        return "cuda"
    monkeypatch.setattr(kernels, "interpreted", True)
    return "cpu"
