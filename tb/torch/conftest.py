"""One thread, as benches run side by side; and the device that tests run on."""

import pytest
import torch

from actcodec.torch import kernels


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    torch.set_num_threads(1)
    torch.backends.cudnn.deterministic = True


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
