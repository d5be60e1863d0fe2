"""The two engines behind one pair of functions: ``golden`` is the NumPy model, ``rtl`` simulates the hardware."""

from contextlib import contextmanager
from dataclasses import replace

from actcodec import gist
from actcodec.files import UserError, read_dqt

__all__ = ["ENGINES", "compress", "decompress", "find_dqt", "prepare"]

ENGINES = ("golden", "rtl")


def find_dqt(text):
    """``(name, dqt)`` of a DQT asked for on the command line: ``dqt`` is a name of the model's tables, or the float64
    [8, 8] of the file called ``text``. Raises :class:`UserError`."""
    from golden.jpegact import quantize

    if text in quantize.TABLES:
        return text, text
    try:
        return read_dqt(text)
    except OSError as error:
        names = ", ".join(quantize.TABLES)
        raise UserError(f"unknown DQT {text!r}: not one of {names}, nor a file: {error.strerror}") from error


def compress(engine, x, mode, dqt="optL", cdus=1):
    """``(compressed, cycles)``; cycles is None where nothing was simulated. ``dqt`` as :func:`find_dqt` takes it.
    Both engines return the same ``compressed``."""
    name, dqt = find_dqt(dqt)
    if engine == "rtl":
        with simulator(mode) as rtl:
            compressed, cycles = rtl.compress(x, mode, dqt, cdus)
    else:
        compressed, cycles = model(mode).compress(x, mode, dqt, cdus), None
    # A table that came from a file has no name of its own in the engines.
    return replace(compressed, dqt=name) if compressed.mode == "jpeg-act" else compressed, cycles


def decompress(engine, compressed):
    """``(array, cycles)``, as :func:`compress`. Raises ValueError where the payload contradicts itself."""
    if engine == "rtl":
        with simulator(compressed.mode) as rtl:
            return rtl.decompress(compressed)
    return model(compressed.mode).decompress(compressed), None


def prepare():
    """Builds the simulated hardware unless it was built before."""
    with simulator() as rtl:
        rtl.prepare()


def model(mode):
    """The module that is the golden engine of ``mode``."""
    from golden.jpegact import cdu

    return gist if mode in gist.MODES else cdu


@contextmanager
def simulator(mode=None):
    """The module that simulates ``mode``, imported only now; its errors (such as no compiler) become the user's."""
    if mode in gist.MODES:
        from actcodec import gist_engine as rtl
    else:
        from actcodec import rtl_engine as rtl
    try:
        yield rtl
    except rtl.SimulationError as error:
        raise UserError(error) from error
