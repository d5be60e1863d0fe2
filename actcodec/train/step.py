"""A step of training: the forward and the backward pass of a batch."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn import functional as F

__all__ = ["step"]

TRIALS = 3  # before a step is captured, as CUDA's libraries choose and allocate at first


def step(model: Any, compress: Any, shape: Sequence[int] | None) -> Callable[..., Any]:
    """A function of a batch of ``shape`` and its classes: it leaves gradients in the model, and returns the loss.

    On CUDA it is captured once as a graph, and played back from then on: the thousands of launches of a small network
    take longer than what they start. What ``compress`` does is captured, too; so a step is for its rules of now, and
    what it counts is that of the last step. Codecs that make the CPU wait cannot be captured, nor can batches of any
    shape (None): their step is launched each time.
    """
    device = next(model.parameters()).device

    def passes(x, y):
        for one in model.parameters():
            one.grad = None
        with compress:
            loss = F.cross_entropy(model(x), y)
        loss.backward()
        return loss.detach()

    if device.type == "cpu" or compress.waits or shape is None:
        return passes
    x, y = torch.zeros(shape, device=device), torch.zeros(shape[0], dtype=torch.int64, device=device)
    state = {key: value.clone() for key, value in model.state_dict().items()}  # statistics of batch norm are collected
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(TRIALS):
            passes(x, y)
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = passes(x, y)
    with torch.no_grad():
        for key, value in model.state_dict().items():
            value.copy_(state[key])

    def played(pictures, classes):
        x.copy_(pictures)
        y.copy_(classes)
        graph.replay()
        return loss

    return played
