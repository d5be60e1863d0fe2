"""Tensors that autograd saves: which are activations, what produced them, and which share memory."""

import sys
from collections.abc import Sequence
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from actcodec.codecs.compressed import MOST_DIMENSIONS

__all__ = ["FLOATS", "compiled_graph", "fills", "inside", "key", "kind", "kind_of_values", "memory", "of_leaf", "plain",
           "reference", "shape_of"]

FLOATS = (torch.float32, torch.float16, torch.bfloat16)
"""Types that are compressed. float64 is what checks of gradients ask for."""

# Operations that only change the view of memory or the type of values.
SAME_VALUES = ("Alias", "AsStrided", "Clone", "Expand", "Permute", "ReshapeAlias", "Select", "Slice", "Split",
               "Squeeze", "T", "ToCopy", "Transpose", "Truncate", "UnsafeView", "Unsqueeze", "View")
KINDS = {"Relu": "relu", "LogSoftmax": "softmax", "Softmax": "softmax", "NativeDropout": "dropout", "Mul": "dropout"}
APPLY = torch.autograd.Function.apply.__func__.__code__
FRAMES = 8  # between a hook and the function that saves, at the most
LOWEST = {"HardtanhBackward0": "_saved_min_val", "ClampBackward1": "_saved_min", "ClampMinBackward0": "_saved_min"}
"""Attributes that are numbers. Other operations of these names have tensors there, which no hook may be asked for."""


def _operation(node):
    """The name of a node of the graph without its suffix: "Relu" for "ReluBackward0"."""
    return node.name().partition("Backward")[0]


def _producer(tensor):
    """The node that computed the values of a tensor; views and casts are skipped."""
    node = tensor.grad_fn
    while node is not None and _operation(node) in SAME_VALUES:
        node = node.next_functions[0][0] if node.next_functions else None
    return node


def of_leaf(tensor: torch.Tensor) -> bool:
    """Whether a tensor is a leaf, or a view or a cast of one: a weight, a picture."""
    node = None if tensor.is_leaf else _producer(tensor)
    return node is None or hasattr(node, "variable")  # AccumulateGrad


def kind(tensor: torch.Tensor) -> str:
    """One of the kinds of :data:`actcodec.torch.rules.KINDS` except "mask", by the operation that made a tensor;
    "dense" for any other operation."""
    node = _producer(tensor)
    operation = _operation(node)
    if node.name() in LOWEST:  # all values below 0 become 0
        return "relu" if getattr(node, LOWEST[node.name()]) == 0 else "dense"
    return "pool" if "Pool" in operation else KINDS.get(operation, "dense")


def compiled_graph() -> Sequence[Any] | None:
    """The arguments of the graph of ``torch.compile`` that is saving tensors now, or None.

    Tensors of such a graph have no nodes of autograd. It runs as an autograd function named CompiledFunction, and only
    the stack shows what calls a hook."""
    frame = sys._getframe(1)
    for _ in range(FRAMES):
        if frame.f_code is APPLY:
            return frame.f_locals["args"] if frame.f_locals["cls"].__name__ == "CompiledFunction" else None
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return None


def inside(tensor: torch.Tensor, arguments: Sequence[Any]) -> bool:
    """Whether a tensor that a compiled graph saves was computed by it, and is no picture or weight. These may be saved
    in another type or order of dimensions, so shapes are compared; an activation of such a shape counts as one of
    them."""
    shape = sorted(tensor.shape)
    return not any(isinstance(one, torch.Tensor) and one.is_leaf and sorted(one.shape) == shape for one in arguments)


def kind_of_values(tensor: torch.Tensor) -> str:
    """The kind of a tensor that a compiled graph saves: "relu" without a negative value, else "dense"."""
    return "relu" if bool((tensor.amin() >= 0).all()) else "dense"


def plain(tensor: torch.Tensor) -> bool:
    """Whether a tensor is a strided view of values in memory: not sparse, nested, without data, or of a subclass."""
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


def memory(tensor: torch.Tensor) -> int:
    """Identifies a tensor's memory: an address, which is not used again while there is a :func:`reference` to it."""
    return tensor.untyped_storage()._cdata


def reference(tensor: torch.Tensor) -> Any:
    """A weak reference to a tensor's memory."""
    return StorageWeakRef(tensor.untyped_storage())


def key(tensor: torch.Tensor) -> Any:
    """Equal for tensors of the same values in the same memory, whatever their shape, while there is a
    :func:`reference` to it. An operation in place changes the version, and so the key. A view may also mark values as
    conjugate or negative."""
    place = (memory(tensor), tensor._version, tensor.storage_offset(), tensor.dtype, tensor.is_conj(), tensor.is_neg())
    if tensor.is_contiguous() or fills(tensor.shape, tensor.stride()):
        return *place, tensor.numel()
    return *place, tuple(tensor.shape), tensor.stride()


def shape_of(shape: torch.Size) -> torch.Size:
    """A shape that codecs accept: a scalar becomes a row, and too many dimensions are merged before the last one."""
    if not shape:
        return torch.Size((1,))
    if len(shape) <= MOST_DIMENSIONS:
        return shape
    return torch.Size((*shape[:3], shape[3:-1].numel(), shape[-1]))
