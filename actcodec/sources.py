"""Reads tensors from files: .npy, .npz, and .pt where PyTorch is installed."""

import os
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from actcodec.files import UserError, checked, is_standard, read_tensor

__all__ = ["split", "tensor", "tensors"]


def tensors(text: str, say: Callable[[str], None]) -> list[tuple[str, np.ndarray]]:
    """``[(name, array)]`` for a file, or for the one array of ``file:name``. Of a file with several arrays, those that
    are not tensors are left out, and ``say`` is called with a note for each. Raises :class:`UserError`, or OSError as
    ``open`` does."""
    path, member = split(text)
    kind = os.path.splitext(path)[1]
    if is_standard(path, 0) or kind not in READERS:
        if member:
            raise UserError(f"{text}: only .npz and .pt files have names in them")
        return [(os.path.splitext(os.path.basename(path))[0], read_tensor(path))]
    arrays = READERS[kind](path)
    if member is not None:
        if member not in arrays:
            raise UserError(f"{path}: has no {member!r}; there are {', '.join(arrays) or 'none'}")
        return [(member, array_of(text, arrays[member]))]
    result, notes = [], []
    for name, read in arrays.items():
        try:
            result.append((name or os.path.basename(path), array_of(f"{path}:{name}", read)))
        except UserError as error:
            notes.append(f"note: left out {error}")
    if not result:
        raise UserError(f"{path}: has no tensor that a mode can take")
    for note in notes:
        say(note)
    return result


def array_of(name: str, read: Callable[[], Any]) -> np.ndarray:
    """What ``read`` reads, if modes accept it. Raises :class:`UserError`, beginning with ``name``, otherwise."""
    try:
        x = read()
    except Exception as error:  # a damaged member, or a type that NumPy does not have
        raise UserError(f"{name}: {first_line(error)}") from error
    if not isinstance(x, np.ndarray):
        raise UserError(f"{name}: is no array")
    return checked(name, x)


def first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def tensor(text: str, say: Callable[[str], None]) -> np.ndarray:
    """The array of a file that has only one, or of ``file:name``. Raises as :func:`tensors` does, and
    :class:`UserError` for a file with several."""
    arrays = tensors(text, say)
    if len(arrays) > 1:
        raise UserError(f"{text}: has {len(arrays)} tensors; give one, as {text}:{arrays[0][0]}; there are "
                        f"{', '.join(name for name, _ in arrays)}")
    return arrays[0][1]


def split(text: str) -> tuple[str, str | None]:
    """``(file, name)`` of ``file:name``. The name is None if there is none, or if ``text`` as a whole is a file."""
    if os.path.exists(text) or is_standard(text, 0):
        return text, None
    for kind in READERS:
        path, colon, name = text.partition(f"{kind}:")
        if colon:
            return path + kind, name
    return text, None


def npz(path: str | Path) -> dict[str, Callable[[], Any]]:
    with open(path, "rb") as file:  # for an error that has its name
        if not zipfile.is_zipfile(file):
            raise UserError(f"{path}: not a .npz file")
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return {name: partial(member_of, path, name) for name in arrays.files}
    except Exception as error:
        raise UserError(f"{path}: not a readable .npz file: {error}") from error


def member_of(path: str | Path, name: str) -> Any:
    with np.load(path, allow_pickle=False) as arrays:
        return arrays[name]


def pt(path: str | Path) -> dict[str, Callable[[], Any]]:
    with open(path, "rb"):
        pass
    import torch

    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise UserError(f"{path}: not a readable .pt file: {first_line(error)}") from error
    tensors: dict[str, Callable[[], Any]] = {}
    for name, read in flat("", content, torch):
        if name in tensors:
            raise UserError(f"{path}: two tensors have the name {name}")
        tensors[name] = read
    return tensors


def flat(name: str, content: Any, torch: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """The tensors inside dictionaries and lists, with names such as ``layers.0.weight``, by functions that return
    arrays."""
    if isinstance(content, torch.Tensor):
        x = content.detach()
        # Its bits: NumPy has no bfloat16 of its own.
        yield name, lambda: x.view(torch.int16).numpy().view("V2") if x.dtype == torch.bfloat16 else x.numpy()
        return
    items = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(
        content, list | tuple) else ()
    for key, value in items:
        yield from flat(f"{name}.{key}" if name else str(key), value, torch)


READERS = {".npz": npz, ".pt": pt, ".pth": pt}
