"""The two engines behind one pair of functions: ``golden`` is the NumPy model, ``rtl`` simulates the hardware."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from actcodec import codecs, tensors
from actcodec.codecs.compressed import Compressed, view
from actcodec.codecs.mode import Mode
from actcodec.extras import INSTALL, missing
from actcodec.files import UserError
from actcodec.golden.offload.memory.formats import CODES, HALVES

__all__ = ["ENGINES", "announcing", "check_hardware", "compress", "compress_many", "decompress", "decompress_many",
           "prepare", "simulator"]

ENGINES = ("golden", "rtl")


def compress(engine: str, x: np.ndarray, mode: str, scan: bool = False, **options: Any) -> tuple[Compressed, Any]:
    """``(compressed, cycles)``; cycles is None where nothing was simulated. Both engines return the same
    ``compressed``. With ``scan``, the simulated hardware finds the scales.

    ``x`` is an array that :func:`actcodec.tensors.as_float32` accepts, ``options`` are those of the mode. Raises
    TypeError or ValueError for anything else.
    """
    one = codecs.find(mode)
    values, words, dtype, settings = _prepared(x, one, options)
    if engine == "rtl":
        with simulator(one) as rtl:
            compressed, cycles = rtl.compress(words, one, **settings | {"dtype": _form(dtype), "scan": scan})
    elif scan:
        raise UserError("a scan needs the rtl engine")
    else:
        compressed, cycles = one.model.compress(values, **settings), None
    return replace(compressed, shape=x.shape, dtype=dtype), cycles


def compress_many(engine: str, arrays: Sequence[np.ndarray], mode: str, **options: Any) -> list[tuple[Compressed, Any]]:
    """The results of :func:`compress` for some arrays. Simulated hardware processes them by a ring of descriptors."""
    if engine != "rtl":
        return [compress(engine, x, mode, **options) for x in arrays]
    one = codecs.find(mode)
    todo = []
    for x in arrays:
        _, words, dtype, settings = _prepared(x, one, options)
        todo.append((dtype, words, settings | {"dtype": _form(dtype)}))
    with simulator(one) as rtl:
        results = rtl.compress_many([(words, settings) for _, words, settings in todo], one)
    return [(replace(compressed, shape=x.shape, dtype=dtype), cycles)
            for x, (dtype, *_), (compressed, cycles) in zip(arrays, todo, results, strict=True)]


def _prepared(x, mode, options):
    """The values and words of an array, its type, and a value for each option of the mode."""
    settings = mode.option_values(options)
    values: np.ndarray
    values, dtype = tensors.as_float32(x)
    values = values.reshape(view(x.shape))
    words = tensors.words(x).reshape(values.shape) if dtype in (*HALVES, CODES) else values
    if dtype == CODES:
        _check_codes(mode, settings)
    if (mode.halves and dtype in HALVES) or dtype == CODES:
        values, settings = words, settings | {"dtype": dtype}
    return values, words, dtype, settings


def _form(dtype):
    """The format of the words in the hardware's memory."""
    return "float32" if dtype == "float64" else dtype


def _check_codes(mode, settings):
    """Raises ValueError if a mode does not accept codes, or if an option is set for SFPR, which codes bypass."""
    if not mode.codes:
        raise ValueError(codecs.refused(mode))
    for option in mode.options:
        if option.name in ("signs", "scaling", "cap", "clip") and settings[option.name] not in (None, option.default):
            raise ValueError(f"{option.name} is {settings[option.name]}, which is for SFPR: {CODES} values bypass it")


def decompress(engine: str, compressed: Compressed) -> tuple[np.ndarray, Any]:
    """``(array, cycles)``, as :func:`compress`. Raises ValueError for an inconsistent payload."""
    mode, cycles = codecs.find(compressed.mode), None
    if engine == "rtl":
        with simulator(mode) as rtl:
            values, cycles = rtl.decompress(compressed.seen, _narrow(compressed))
    else:
        values = mode.model.decompress(compressed.seen)
    return tensors.restore(values, compressed.shape, compressed.dtype), cycles


def decompress_many(engine: str, compressed: Sequence[Compressed]) -> list[tuple[np.ndarray, Any]]:
    """The results of :func:`decompress` for several. Simulated hardware processes them by rings of descriptors."""
    if engine != "rtl":
        return [decompress(engine, one) for one in compressed]
    for one in compressed:
        check_hardware(codecs.find(one.mode))
    with simulator() as rtl:
        results = rtl.decompress_many([(one.seen, _narrow(one)) for one in compressed])
    return [(tensors.restore(values, one.shape, one.dtype), cycles)
            for one, (values, cycles) in zip(compressed, results, strict=True)]


def _narrow(compressed):
    """The format of the words that the hardware writes."""
    return compressed.dtype if compressed.dtype in (*HALVES, CODES) and not compressed.wide else "float32"


def prepare(modes: Iterable[str] = ()) -> None:
    """Builds the simulated hardware of a lane with these ``modes``, by default with all, unless it exists already."""
    with simulator() as rtl:
        rtl.prepare(chosen=[modes] if modes else None)


def check_hardware(mode: Mode) -> None:
    """Raises :class:`UserError` for a mode that has no hardware."""
    if "rtl" not in mode.engines:
        raise UserError(f"mode {mode.name} has no hardware; use the golden engine")


@contextmanager
def simulator(mode: Mode | None = None) -> Iterator[Any]:
    """The module that simulates ``mode``, imported only when it is needed. Its errors (no compiler, a missing package)
    become :class:`UserError`."""
    if mode:
        check_hardware(mode)
    try:
        from actcodec.sim import rtl_engine as rtl
        try:
            yield rtl
        except rtl.SimulationError as error:
            raise UserError(error) from error
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in INSTALL:
            raise
        raise UserError(missing(error.name)) from error


@contextmanager
def announcing(engine: str, listener: Callable[[str], None]) -> Iterator[None]:
    """Calls ``listener`` with a line of text before hardware is built for an engine."""
    if engine != "rtl":
        yield
        return
    from actcodec.sim.toolchain import announcing

    with announcing(listener):
        yield
