"""What autograd saves: which tensors are activations, what made them, and which of them are the same memory."""

import sys
from collections.abc import Sequence
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from actcodec.codecs.compressed import MOST_DIMENSIONS

__all__ = ["FLOATS", "compiled_graph", "fills", "inside", "key", "kind", "kind_of_values", "of_leaf", "plain",
           "shape_of", "storage"]

FLOATS = (torch.float32, torch.float16, torch.bfloat16)
"""Types that are compressed. float64 is what checks of gradients ask for."""

# Operations that only look at memory in another way, or in another type.
SAME_VALUES = ("Alias", "AsStrided", "Clone", "Expand", "Permute", "ReshapeAlias", "Select", "Slice", "Split",
               "Squeeze", "T", "ToCopy", "Transpose", "Truncate", "UnsafeView", "Unsqueeze", "View")
KINDS = {"Relu": "relu", "LogSoftmax": "softmax", "Softmax": "softmax", "NativeDropout": "dropout", "Mul": "dropout"}
APPLY = torch.autograd.Function.apply.__func__.__code__
FRAMES = 8  # between a hook and the function that saves, at the most
LOWEST = {"Hardtanh": "_saved_min_val", "Clamp": "_saved_min", "ClampMin": "_saved_min"}  # numbers, no tensors


def _operation(node):
    """The name of a node of the graph without its ending: "Relu" of "ReluBackward0"."""
    return node.name().partition("Backward")[0]


def _producer(tensor):
    """The node that made the values of a tensor: views and casts are passed over."""
    node = tensor.grad_fn
    while node is not None and _operation(node) in SAME_VALUES:
        node = node.next_functions[0][0] if node.next_functions else None
    return node


def of_leaf(tensor: torch.Tensor) -> bool:
    """Whether a tensor is a leaf, or a view or a cast of one: a weight, a picture."""
    node = None if tensor.is_leaf else _producer(tensor)
    return node is None or hasattr(node, "variable")  # the node that adds up the gradient of a leaf


def kind(tensor: torch.Tensor) -> str:
    """One of the kinds of :data:`actcodec.torch.rules.KINDS`, but "mask", by the operation that made a tensor. An
    operation that is not known makes "dense"."""
    node = _producer(tensor)
    operation = _operation(node)
    if operation in LOWEST:  # all below 0 became 0
        return "relu" if getattr(node, LOWEST[operation]) == 0 else "dense"
    return "pool" if "Pool" in operation else KINDS.get(operation, "dense")


def compiled_graph() -> Sequence[Any] | None:
    """The arguments of the graph of ``torch.compile`` that saves tensors at this moment; None if none does.

    What such a graph saves is no part of autograd's. It is an autograd function of this name, and who calls hooks is
    known from the stack alone."""
    frame = sys._getframe(1)
    for _ in range(FRAMES):
        if frame.f_code is APPLY:
            return frame.f_locals["args"] if frame.f_locals["cls"].__name__ == "CompiledFunction" else None
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return None


def inside(tensor: torch.Tensor, arguments: Sequence[Any]) -> bool:
    """Whether a tensor that a compiled graph saves was made by it, and is no picture or weight. These are saved in
    another type or order of dimensions, so shapes are compared; an activation of the same shape is taken for one."""
    shape = sorted(tensor.shape)
    return not any(isinstance(one, torch.Tensor) and one.is_leaf and sorted(one.shape) == shape for one in arguments)


def kind_of_values(tensor: torch.Tensor) -> str:
    """Of a tensor that a compiled graph saves."""
    return "relu" if bool((tensor.amin() >= 0).all()) else "dense"


def plain(tensor: torch.Tensor) -> bool:
    """Whether a tensor is values in memory, seen through a shape and strides: neither sparse, nested nor without data,
    nor of a class of its own."""
    return (type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.layout is torch.strided
            and not tensor.is_nested and not tensor.is_meta)


def fills(shape: Sequence[int], stride: Sequence[int]) -> bool:
    """Whether the values of a tensor fill its memory, in any order of dimensions."""
    expected = 1
    for step, size in sorted(zip(stride, shape, strict=True)):
        if size != 1:
            if step != expected:
                return False
            expected *= size
    return True


def storage(tensor: torch.Tensor) -> Any:
    """What stands for a tensor's memory. While this lives, no other memory is taken for it, as an address would be."""
    return StorageWeakRef(tensor.untyped_storage())


def key(tensor: torch.Tensor) -> Any:
    """Equal for tensors of the same values in the same memory, whatever shape they are seen in. An operation in place
    makes another version, and so another key. A view may also say that values are conjugate or negative."""
    place = (storage(tensor), tensor._version, tensor.storage_offset(), tensor.dtype, tensor.is_conj(), tensor.is_neg())
    if tensor.is_contiguous() or fills(tensor.shape, tensor.stride()):
        return *place, tensor.numel()
    return *place, tuple(tensor.shape), tensor.stride()


def shape_of(shape: torch.Size) -> torch.Size:
    """A shape that codecs take: those of more dimensions lose the ones in the middle, a single number is a row."""
    if not shape:
        return torch.Size((1,))
    if len(shape) <= MOST_DIMENSIONS:
        return shape
    return torch.Size((*shape[:3], shape[3:-1].numel(), shape[-1]))
