"""Files of the command line: tensors and DQTs in, results out in one piece."""

import os
import secrets
import shutil
from contextlib import contextmanager
from pathlib import Path

import numpy as np

__all__ = ["NAME_LIMIT", "UserError", "read_dqt", "read_tensor", "replacing"]

NAME_LIMIT = 60
"""Characters of a DQT's name that a file keeps."""


class UserError(Exception):
    """Something that the user can put right. The command line shows it as one line and exits with code 2."""


def read_array(path):
    """The array in the .npy file ``path``. Raises :class:`UserError` when there is none, OSError as ``open`` does."""
    with open(path, "rb") as file:
        if file.read(6) != np.lib.format.MAGIC_PREFIX:
            raise UserError(f"{path}: not a .npy file")
    try:
        # Mapped and then copied, because a header that promises more than the file holds is refused before any
        # memory is allocated for it.
        with np.errstate(over="raise"):
            return np.array(np.load(path, mmap_mode="r", allow_pickle=False))
    except OSError:
        raise
    except Exception as error:  # a damaged header ends in a dozen different exceptions
        raise UserError(f"{path}: not a readable .npy file: {error}") from error


def read_tensor(path):
    """The tensor in a .npy file: float32 (of either byte order in the file), [N, C, H, W] or [N, F], contiguous.
    Raises :class:`UserError` for anything else."""
    x = read_array(path)
    if x.dtype.newbyteorder("=") != np.float32:
        raise UserError(f"{path}: dtype is {x.dtype}; actcodec takes float32")
    if x.ndim not in (2, 4):
        raise UserError(f"{path}: shape is {x.shape}; actcodec takes [N, C, H, W] or [N, F]")
    if not x.size:
        raise UserError(f"{path}: shape is {x.shape}; no dimension may be 0")
    return np.ascontiguousarray(x, np.float32)


def read_dqt(path):
    """The DQT in ``path`` as ``(name, table)``: float64 [8, 8], vertical frequency first.

    The file is a .npy of 64 numbers or text: 64 numbers with white space or commas between, ``#`` starts a comment.
    They are finite, and 1 or more.
    The name is the file's, cut to :data:`NAME_LIMIT` printable characters. Raises :class:`UserError`."""
    path = Path(path)
    if path.suffix == ".npy":
        values = read_array(path).ravel()
        if values.dtype.kind not in "iuf":
            raise UserError(f"{path}: dtype is {values.dtype}; a DQT is 64 numbers")
    else:
        with open(path, "rb") as file:
            text = file.read(1 << 16).decode("latin-1")
        words = " ".join(line.split("#")[0] for line in text.splitlines()).replace(",", " ").split()
        try:
            values = [float(word) for word in words]
        except ValueError as error:
            raise UserError(f"{path}: not a DQT: {error}") from error
    values = np.asarray(values, dtype=np.float64)
    if values.size != 64:
        raise UserError(f"{path}: {values.size} numbers; a DQT has 64")
    wrong = values[~(np.isfinite(values) & (values >= 1))]
    if wrong.size:
        raise UserError(f"{path}: {wrong[0]:g} is not a DQT value: they are finite, and 1 or more")
    name = "".join(c if c.isprintable() else "?" for c in path.name)[:NAME_LIMIT]
    return name, values.reshape(8, 8)


@contextmanager
def replacing(path):
    """A binary file open for writing that becomes ``path`` only when the block ends well; on any exception, an
    interrupt included, ``path`` stays as it was and nothing is left beside it."""
    path = Path(os.path.realpath(path))  # a symbolic link stays one
    if path.exists() and not path.is_file():  # a device or pipe is written, never replaced
        with open(path, "wb") as file:
            yield file
        return
    temporary, created = path.with_name(f".actcodec-{os.getpid()}-{secrets.token_hex(4)}"), False
    try:
        with open(temporary, "xb") as file:
            created = True
            yield file
        if path.exists():
            shutil.copymode(path, temporary)
        os.replace(temporary, path)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from error
    finally:
        if created:
            temporary.unlink(missing_ok=True)
