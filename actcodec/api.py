"""The Python API; ``import actcodec`` has these names. docs/api.md describes it."""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from actcodec import codecs, container, engines, metrics, tensors
from actcodec.codecs.compressed import Compressed
from actcodec.codecs.mode import Mode

__all__ = ["Compressed", "Evaluation", "compress", "compress_many", "decompress", "decompress_many", "evaluate", "load",
           "measured", "modes", "save"]


def compress(array: np.ndarray, mode: str, *, engine: str = "golden", **options: Any) -> Compressed:
    """Compresses an array.

    Parameters
    ----------
    array : numpy.ndarray
        float16, bfloat16 (of ml_dtypes), float32 or float64, of 1 to 5 dimensions, in any memory order; or int8, codes
        of SFPR, in modes that begin with it. A ``UserWarning`` says if rounding float64 to float32 has changed values.
    mode : str
        One of :func:`modes`. A tensor too small for tiles of 8x8 gets ``sfpr-zvc`` instead of ``jpeg-act``.
    engine : str
        ``golden``, the NumPy model, or ``rtl``, a simulation of the hardware, which returns the same bytes and is built
        on first use.
    **options
        Options of the mode: ``actcodec.modes()[mode].options``.

    Returns
    -------
    Compressed
        With ``mode``, ``shape``, ``dtype``, ``options``, ``payload``, ``ratio`` (bytes of the array over bytes of the
        payload), ``nbytes`` (the size of the file that :func:`save` writes) and ``ratio_with_side`` (bytes of the array
        over ``nbytes``).

    Raises TypeError for another type or a masked array, ValueError for an illegal mode, shape or option, and for finite
    values of float64 beyond float32's range.

    >>> import numpy as np
    >>> x = np.linspace(-1, 1, 4096, dtype=np.float32).reshape(1, 1, 64, 64)
    >>> compress(x, "jpeg-act", dqt="optH", coder="rice").options
    {'dqt': 'optH', 'coder': 'rice', 'quantizer': 'sh', 'cdus': 1}
    >>> compress(x, "sfpr", cdus=9)
    Traceback (most recent call last):
        ...
    ValueError: cdus is 9, must be 1 to 8
    """
    _check_engine(engine)
    compressed, _ = engines.compress(engine, array, mode, **options)
    if text := tensors.loss(array):
        warnings.warn(text, stacklevel=2)
    return compressed


def compress_many(arrays: Iterable[np.ndarray], mode: str, *, engine: str = "golden",
                  **options: Any) -> list[Compressed]:
    """Compresses arrays of any shapes and types, each as :func:`compress` does. ``rtl`` simulates an accelerator with a
    queue, which processes them through a ring of descriptors, from memory to memory.

    >>> import numpy as np
    >>> [one.nbytes for one in compress_many([np.ones((2, 8, 8), np.float32), np.zeros(5, np.float32)], "brc")]
    [48, 32]
    """
    _check_engine(engine)
    arrays = list(arrays)
    compressed = [one for one, _ in engines.compress_many(engine, arrays, mode, **options)]
    for text in dict.fromkeys(filter(None, map(tensors.loss, arrays))):
        warnings.warn(text, stacklevel=2)
    return compressed


def decompress(compressed: Compressed, *, engine: str = "golden") -> np.ndarray:
    """The array of a :class:`Compressed`, in its original shape and type. Raises TypeError for anything else,
    ValueError for an inconsistent payload.

    >>> import numpy as np
    >>> x = np.array([1.5, 0, -2, 0], np.float16)
    >>> decompress(compress(x, "zvc"))
    array([ 1.5,  0. , -2. ,  0. ], dtype=float16)
    """
    _check_engine(engine)
    _check_compressed(compressed)
    compressed.check()
    return engines.decompress(engine, compressed)[0]


def decompress_many(compressed: Iterable[Compressed], *, engine: str = "golden") -> list[np.ndarray]:
    """The arrays of several :class:`Compressed`, of any modes; see :func:`decompress` and :func:`compress_many`."""
    _check_engine(engine)
    compressed = list(compressed)
    for one in compressed:
        _check_compressed(one)
        one.check()
    return [x for x, _ in engines.decompress_many(engine, compressed)]


def save(path: str | Path, compressed: Compressed) -> int:
    """Writes an .act file, atomically, and returns its size in bytes. Raises TypeError for anything but a
    :class:`Compressed`, ValueError for an inconsistent one, ``actcodec.files.UserError`` if the file cannot be
    written."""
    _check_compressed(compressed)
    return container.write(path, compressed)


def load(path: str | Path) -> Compressed:
    """The :class:`Compressed` in an .act file. Raises ``actcodec.container.ContainerError`` for any other file, OSError
    as ``open`` does.

    >>> import numpy as np, os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "x.act")
    ...     save(path, compress(np.ones((2, 8, 8), np.float32), "brc"))
    ...     load(path).payload
    48
    b'\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff'
    """
    return container.read(path)


def modes() -> dict[str, Mode]:
    """All modes by name; each has ``summary``, ``tensors`` (what it is for), ``source``, ``lossy``, ``options``,
    ``engines``.

    >>> mode = modes()["jpeg-act"]
    >>> mode.tensors, mode.lossy, [option.name for option in mode.options if option.stored]
    ('dense activations (conv, sum)', True, ['dqt', 'coder', 'quantizer', 'cdus'])
    """
    return dict(codecs.MODES)


@dataclass(frozen=True)
class Evaluation:
    """Ratio and error of a mode for an array."""

    mode: str  # the one that was used
    options: dict  # with a value for each option
    ratio: float  # bytes of the array over bytes of the payload
    ratio_with_side: float  # over those of the whole file
    relative_error: float  # L2, over finite values, as the next three
    channel_error: float  # root mean square of the channels' relative L2 errors
    psnr: float  # dB, of the array's range; infinite without an error
    largest_error: float
    nans: int  # in the array
    infinities: int
    saturated: int  # values beyond what the mode can express, infinities included


def evaluate(array: np.ndarray, mode: str, *, engine: str = "golden", **options: Any) -> Evaluation:
    """Compresses an array and decompresses it again: an :class:`Evaluation`. Parameters and exceptions are those of
    :func:`compress`; the error is relative to the original array, so it includes the rounding of float64.

    >>> import numpy as np
    >>> x = np.linspace(-1, 1, 4096, dtype=np.float32).reshape(1, 1, 64, 64)
    >>> e = evaluate(x, "jpeg-act")
    >>> f"{e.ratio:.1f}, {e.ratio_with_side:.1f}, {e.relative_error:.4f}, {e.psnr:.1f} dB"
    '23.1, 21.1, 0.0410, 38.5 dB'
    """
    _check_engine(engine)
    result = measured(array, engines.compress(engine, array, mode, **options)[0])
    values = codecs.find(mode).option_values(options) if result.mode == mode else {}
    return replace(result, options=values | result.options)


def measured(array: np.ndarray, compressed: Compressed) -> Evaluation:
    """The :class:`Evaluation` of an array and its :class:`Compressed`."""
    c, mode = compressed, codecs.find(compressed.mode)
    errors = metrics.errors(tensors.as_floats(array), tensors.as_floats(engines.decompress("golden", c)[0]))
    saturated = mode.model.saturated(tensors.as_float32(array)[0].reshape(c.seen.shape), c.seen)
    return Evaluation(c.mode, c.options, c.ratio, c.ratio_with_side, errors.relative_error, errors.channel_error,
                      errors.psnr, errors.largest_error, errors.nans, errors.infinities, saturated)


def _check_compressed(compressed):
    if not isinstance(compressed, Compressed):
        raise TypeError(f"compressed is {type(compressed).__name__}, must be an actcodec.Compressed")


def _check_engine(engine):
    if engine not in engines.ENGINES:
        raise ValueError(f"engine is {engine!r}, must be {' or '.join(engines.ENGINES)}")
