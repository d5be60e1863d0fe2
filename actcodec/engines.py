"""The two engines behind one pair of functions: ``golden`` is the NumPy model, ``rtl`` simulates the hardware."""

from collections.abc import Callable, Iterable, Iterator
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

__all__ = ["ENGINES", "announcing", "compress", "decompress", "prepare"]

ENGINES = ("golden", "rtl")


def compress(engine: str, x: np.ndarray, mode: str, scan: bool = False, **options: Any) -> tuple[Compressed, Any]:
    """``(compressed, cycles)``; cycles is None where nothing was simulated. Both engines return the same
    ``compressed``. With ``scan``, the simulated hardware finds the scales.

    ``x`` is an array for :func:`actcodec.tensors.as_float32`, ``options`` are those of the mode. Raises TypeError and
    ValueError for what cannot be.
    """
    one = codecs.find(mode)
    settings = one.option_values(options)
    values: np.ndarray
    values, dtype = tensors.as_float32(x)
    values = values.reshape(view(x.shape))
    words = tensors.words(x).reshape(values.shape) if dtype in (*HALVES, CODES) else values
    if dtype == CODES:
        _check_codes(one, settings)
    if (one.halves and dtype in HALVES) or dtype == CODES:
        values, settings = words, settings | {"dtype": dtype}
    if engine == "rtl":
        with simulator(one) as rtl:
            form = "float32" if dtype == "float64" else dtype
            compressed, cycles = rtl.compress(words, one, **settings | {"dtype": form, "scan": scan})
    elif scan:
        raise UserError("a scan needs the rtl engine")
    else:
        compressed, cycles = one.model.compress(values, **settings), None
    return replace(compressed, shape=x.shape, dtype=dtype), cycles


def _check_codes(mode, settings):
    """Raises ValueError unless codes can pass a mode, with values of its options that say nothing of SFPR."""
    if not mode.codes:
        raise ValueError(codecs.refused(mode))
    for option in mode.options:
        if option.name in ("signs", "scaling", "cap", "clip") and settings[option.name] not in (None, option.default):
            raise ValueError(f"{option.name} is {settings[option.name]}, which is for SFPR: {CODES} have passed it")


def decompress(engine: str, compressed: Compressed) -> tuple[np.ndarray, Any]:
    """``(array, cycles)``, as :func:`compress`. Raises ValueError where the payload contradicts itself."""
    mode, cycles = codecs.find(compressed.mode), None
    if engine == "rtl":
        narrow = compressed.dtype in (*HALVES, CODES) and not compressed.wide
        with simulator(mode) as rtl:
            values, cycles = rtl.decompress(compressed.seen, compressed.dtype if narrow else "float32")
    else:
        values = mode.model.decompress(compressed.seen)
    return tensors.restore(values, compressed.shape, compressed.dtype), cycles


def prepare(modes: Iterable[str] = ()) -> None:
    """Builds the simulated hardware of a lane with these ``modes``, of all of them without, unless it was built
    before."""
    with simulator() as rtl:
        rtl.prepare(chosen=[modes] if modes else None)


@contextmanager
def simulator(mode: Mode | None = None) -> Iterator[Any]:
    """The module that simulates ``mode``, imported only now; its errors (no compiler, a package that is missing) become
    the user's."""
    if mode and "rtl" not in mode.engines:
        raise UserError(f"mode {mode.name} has no hardware; use the golden engine")
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
    """Has ``listener`` told, in a line of text, before hardware is built for an engine."""
    if engine != "rtl":
        yield
        return
    from actcodec.sim.toolchain import announcing

    with announcing(listener):
        yield
