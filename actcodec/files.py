"""Files of the command line: reads tensors and DQTs, and writes results atomically."""

import io
import math
import os
import secrets
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from actcodec.codecs.compressed import view
from actcodec.tensors import dtype_name

__all__ = ["NAME_LIMIT", "UserError", "array_in", "check_folder", "checked", "is_standard", "read_dqt", "read_tensor",
           "reading", "replacing", "write_array"]

NAME_LIMIT = 60
"""Maximum length of a DQT's name in an .act file, in characters."""

DQT_OPTIONS = {"quantizer": str, "dead_zone": int, "scaling": str, "cap": float, "clip": float}
"""Options that a DQT file may set, and their types."""


class UserError(Exception):
    """An error that the user can fix. The command line prints it as one line and exits with code 2."""


def is_standard(path: str | Path, number: int) -> bool:
    """Whether ``path`` is the standard input (``number`` 0) or output (1)."""
    names = ("stdin", "stdout")
    return str(path) in ("-", f"/dev/{names[number]}", f"/dev/fd/{number}", f"/proc/self/fd/{number}")


@contextmanager
def reading(path: str | Path) -> Iterator[BinaryIO]:
    """A binary file open for reading; ``-`` is the standard input. Raises OSError as ``open`` does."""
    if is_standard(path, 0):
        yield sys.stdin.buffer
    else:
        with open(path, "rb") as file:
            yield file


def array_in(data: bytes) -> np.ndarray:
    """The array in the bytes of a .npy file, without a copy. Damaged data may raise almost any exception."""
    file = io.BytesIO(data)
    header = np.lib.format
    read = header.read_array_header_1_0 if header.read_magic(file) == (1, 0) else header.read_array_header_2_0
    shape, fortran, dtype = read(file)
    if dtype.hasobject:
        raise ValueError("it contains Python objects")
    # A header that claims more data than there is fails here, before memory is allocated for it.
    flat = np.frombuffer(data, dtype, math.prod(shape), file.tell())
    return flat.reshape(shape, order="F" if fortran else "C")


def read_array(path: str | Path) -> np.ndarray:
    """The array in the .npy file ``path``. Raises :class:`UserError` if it is not one, OSError as ``open`` does."""
    with reading(path) as file:
        magic = file.read(6)
        if magic != np.lib.format.MAGIC_PREFIX:
            raise UserError(f"{path}: not a .npy file")
        data = magic + file.read()
    try:
        return array_in(data)
    except Exception as error:  # a damaged header raises one of a dozen exceptions
        raise UserError(f"{path}: not a readable .npy file: {error}") from error


def read_tensor(path: str | Path) -> np.ndarray:
    """The tensor in a .npy file. Raises :class:`UserError` for an array that no mode accepts."""
    return checked(path, read_array(path))


def checked(name: str | Path, x: np.ndarray) -> np.ndarray:
    """``x``, if modes accept its dtype and shape. Raises :class:`UserError`, beginning with ``name``, otherwise."""
    try:
        dtype_name(x.dtype)
        view(x.shape)
    except (TypeError, ValueError) as error:
        raise UserError(f"{name}: {error}") from error
    return x


def write_array(file: BinaryIO, x: np.ndarray) -> None:
    """Writes an array as .npy. Unlike ``np.save``, it reports why a write fails, such as a full disk."""
    x = np.ascontiguousarray(x).reshape(x.shape)
    np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(x))
    file.write(x.view(np.uint8).reshape(-1).data if x.size else b"")


def read_dqt(path: str | Path) -> tuple[str, np.ndarray, dict[str, Any]]:
    """The DQT in ``path`` as ``(name, table, options)``: the table is float64 [8, 8], vertical frequency first, and the
    options are those of :data:`DQT_OPTIONS` that the file sets.

    The file is a .npy of 64 numbers, or text: 64 numbers separated by white space or commas; ``#`` starts a comment.
    Lines of text such as ``quantizer div`` or ``dead_zone 2`` set options. The name is that of the file, truncated to
    :data:`NAME_LIMIT` characters, with ``?`` for unprintable ones. Raises :class:`UserError`, OSError as ``open``
    does."""
    path = Path(path)
    options: dict[str, Any] = {}
    values: Any
    if path.suffix == ".npy":
        values = read_array(path).ravel()
        if values.dtype.kind not in "iuf":
            raise UserError(f"{path}: dtype is {values.dtype}; a DQT is 64 numbers")
    else:
        with open(path, "rb") as file:
            text = file.read(1 << 16).decode("latin-1")
        values = []
        for line in text.splitlines():
            words = line.split("#")[0].replace(",", " ").split()
            try:
                if len(words) == 2 and words[0] in DQT_OPTIONS:
                    options[words[0]] = DQT_OPTIONS[words[0]](words[1])
                else:
                    values += map(float, words)
            except ValueError as error:
                raise UserError(f"{path}: not a DQT: {error}") from error
    values = np.asarray(values, dtype=np.float64)
    if values.size != 64:
        raise UserError(f"{path}: {values.size} numbers; a DQT has 64")
    name = "".join(c if c.isprintable() else "?" for c in path.name)[:NAME_LIMIT]
    return name, values.reshape(8, 8), options


def check_folder(path: str | Path) -> None:
    """Raises :class:`UserError` unless ``path`` is a writable folder, or can be created as one."""
    existing = Path(path).absolute()
    while not existing.exists():
        existing = existing.parent
    if not existing.is_dir():
        raise UserError(f"{existing}: is not a directory")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise UserError(f"{existing}: Permission denied")


@contextmanager
def replacing(path: str | Path) -> Iterator[BinaryIO]:
    """A binary file open for writing that replaces ``path`` only if the block succeeds; on any exception, including an
    interrupt, ``path`` is unchanged and no temporary file remains. ``-`` is the standard output; if its reader closes
    it early, the program exits with code 1. Raises :class:`UserError` if the file cannot be written."""
    try:
        if is_standard(path, 1):
            sys.stdout.flush()
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
        elif os.path.exists(path) and not os.path.isfile(path):  # a device or pipe is written to, never replaced
            with open(path, "wb") as file:
                yield file
        else:
            with _replacing(Path(os.path.realpath(path))) as file:  # a symbolic link stays one
                yield file
    except BrokenPipeError:
        sys.exit(1)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from error


@contextmanager
def _replacing(path):
    temporary, foreign = path.with_name(f".actcodec-{os.getpid()}-{secrets.token_hex(4)}"), False
    try:
        try:
            file = open(temporary, "xb")  # noqa: SIM115 - this try is for an existing file alone
        except FileExistsError:
            foreign = True
            raise
        with file:
            yield file
        if path.exists():
            shutil.copymode(path, temporary)
        os.replace(temporary, path)
    finally:
        if not foreign:
            temporary.unlink(missing_ok=True)
