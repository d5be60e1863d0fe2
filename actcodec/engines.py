"""The two engines behind one pair of functions: ``golden`` is the NumPy model, ``rtl`` simulates the hardware."""

from dataclasses import replace
from importlib import import_module

from actcodec.files import UserError, read_dqt

__all__ = ["ENGINES", "compress", "decompress", "find_dqt"]

ENGINES = ("golden", "rtl")


def find_dqt(text):
    """``(name, dqt)`` of a DQT asked for on the command line: ``dqt`` is a name of the model's tables, or the float64
    [8, 8] of the file called ``text``. Raises :class:`UserError`."""
    from golden.jpegact import quantize

    if text in quantize.TABLES:
        return text, text
    try:
        return read_dqt(text)
    except FileNotFoundError as error:
        raise UserError(f"unknown DQT {text!r}: not one of {', '.join(quantize.TABLES)}, and no such file") from error


def compress(engine, x, mode, dqt="optL", cdus=1):
    """``(compressed, cycles)``; cycles is None where nothing was simulated. ``dqt`` as :func:`find_dqt` takes it.
    Both engines return the same ``compressed``."""
    name, dqt = find_dqt(dqt)
    if engine == "rtl":
        compressed, cycles = import_module("actcodec.rtl_engine").compress(x, mode, dqt, cdus)
    else:
        compressed, cycles = import_module("golden.jpegact.cdu").compress(x, mode, dqt, cdus), None
    # A table that came from a file has no name of its own in the engines.
    return replace(compressed, dqt=name) if compressed.mode == "jpeg-act" else compressed, cycles


def decompress(engine, compressed):
    """``(array, cycles)``, as :func:`compress`. Raises ValueError where the payload contradicts itself."""
    if engine == "rtl":
        return import_module("actcodec.rtl_engine").decompress(compressed)
    return import_module("golden.jpegact.cdu").decompress(compressed), None
