"""Models in ``DistributedDataParallel`` and in FSDP2: two processes, which add up gradients with gloo."""

import os
from contextlib import nullcontext

import pytest
import torch
from torch import distributed, multiprocessing, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

import actcodec.torch as at

PROCESSES = 2
PRESETS = (None, "gist", "jpeg-act")


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
                         nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 256, 10))


def replicated(model):
    return DistributedDataParallel(model)


def sharded(model):
    mesh = init_device_mesh("cpu", (PROCESSES,))
    for layer in model:
        if [*layer.parameters()]:
            fully_shard(layer, mesh=mesh)
    return fully_shard(model, mesh=mesh)


WAYS = {"replicated": replicated, "sharded": sharded}


def gradients(model, preset, x):
    """Of the second of two steps, and how many tensors were compressed in it; nothing is without a preset."""
    compress = at.Compress(model, preset, min_values=1) if preset else nullcontext()
    for _ in range(2):
        model.zero_grad()
        with compress:
            loss = model(x).square().mean()
        loss.backward()
    whole = [one.grad.full_tensor() if hasattr(one.grad, "full_tensor") else one.grad for one in model.parameters()]
    return torch.cat([one.flatten() for one in whole]), len(compress.report().rows) if preset else 0


def work(rank, way, folder):
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"file://{folder}/group", rank=rank, world_size=PROCESSES)
    results = {}
    for preset in PRESETS:
        model = WAYS[way](network())
        torch.manual_seed(1 + rank)  # each has a batch of its own
        results[preset] = gradients(model, preset, torch.randn(8, 3, 16, 16))
    torch.save(results, folder / f"{rank}.pt")
    distributed.barrier()
    distributed.destroy_process_group()
    os._exit(0)  # a thread of PyTorch's that is still there at the regular end aborts the process now and then


@pytest.mark.parametrize("way", WAYS)
def test_gradients_are_those_without_compression(way, tmp_path):
    multiprocessing.spawn(work, (way, tmp_path), PROCESSES)
    first, other = (torch.load(tmp_path / f"{rank}.pt") for rank in range(PROCESSES))
    exact, _ = first[None]
    for preset in PRESETS:
        assert torch.equal(first[preset][0], other[preset][0])  # each process has the sum of both
    same, tensors = first["gist"]
    assert tensors and torch.equal(same, exact)
    near, tensors = first["jpeg-act"]
    assert tensors and 0 < (near - exact).norm() < 0.05 * exact.norm()
