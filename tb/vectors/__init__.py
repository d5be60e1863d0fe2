"""Recorded streams and files: what was written once stays readable, and stays what is written.

``files/`` has an .act file for each code that files can have, or had; ``digests.json`` the first digits of the SHA-256
of every file, and of the array that comes back, over modes, options and shapes. Neither judges whether a format is
right (the judges do): they say that it has not changed. ``python -m tb.vectors`` records what is new; with ``--renew``
it replaces what differs, for a format that changes on purpose.
"""

import hashlib
import itertools
import json
from pathlib import Path

import numpy as np

import actcodec
from actcodec import codecs, container, tensors

FILES = Path(__file__).parent / "files"
DIGESTS = Path(__file__).parent / "digests.json"

SHAPES = ((2, 3, 16, 24), (2, 3, 7, 13), (1, 5, 8, 9), (3, 2, 1, 3), (4, 40), (70,), (2, 3, 2, 5, 9), (1, 1, 1, 1))
"""Tiles, ragged tiles, rows, rows of less than a sector, all numbers of dimensions, one value."""

OPTIONS = {
    "dqt": {"jpeg-act": ("optL", "optH", "jpeg80"), "jpeg-base": ("jpeg80", "optL-div")},
    "error_bound": {"comet": (0.01, 0.5)},  # relative bounds depend on sums of floats, which machines may order
    "seed": {"division": (7,)},
    "relative_bound": {}, "l2": {}, "scaling": {},  # which has cases of its own
}
"""Values of options that have no list of choices, by mode; of the others, all are taken."""


def tensor(shape):
    """Values of all magnitudes, half of them 0, from integers, so that every machine has the same."""
    random = np.random.Generator(np.random.Philox(int(np.prod(shape))))
    mantissas = random.integers(-(1 << 12), 1 << 12, shape)
    values = np.ldexp(mantissas.astype(np.float64), random.integers(-14, -9, shape)).astype(np.float32)
    return np.where(random.integers(0, 2, shape) == 1, np.float32(0), values)


def extremes():
    """What floats have besides numbers: infinities, NaN, subnormals, both zeros, the largest."""
    x = tensor((1, 2, 16, 16)).reshape(-1)
    odd = np.array([np.inf, -np.inf, np.nan, 1e-45, -1e-40, -0.0, 3.4028235e38], np.float32)
    x[::37] = np.resize(odd, x[::37].size)
    return x.reshape(1, 2, 16, 16)


def settings(mode):
    """Options to record a mode with, dictionaries."""
    names, lists = [], []
    for option in mode.options:
        values = option.choices if option.name not in OPTIONS else OPTIONS[option.name].get(mode.name, ())
        if option.name == "cdus":
            values = (1, 3) if option.range[1] > 1 else ()
        elif option.type is bool:
            values = (False, True)
        elif option.name == "dead_zone":
            values = (0, 1)
        if values:
            names.append(option.name)
            lists.append(values)
    for values in itertools.product(*lists):
        chosen = dict(zip(names, values, strict=True))
        if chosen.get("quantizer") == "sh" and chosen.pop("dead_zone"):
            continue  # it needs the other quantizer
        yield chosen


def cases():
    """Every case: its name, tensor, mode and options."""
    for mode in codecs.MODES.values():
        for given in settings(mode):
            words = " ".join(f"{name}={value}" for name, value in given.items())
            for shape in SHAPES if len(given) < 4 or given.get("cdus") == 3 else SHAPES[:2]:
                yield f"{mode.name} {words} {'x'.join(map(str, shape))}", tensor(shape), mode.name, given
            yield f"{mode.name} {words} extremes", extremes(), mode.name, given
    for mode in ("sfpr", "jpeg-act"):
        for way in ({"scaling": "tensor"}, {"scaling": "cap"}, {"scaling": "cap", "cap": 1.5, "clip": 1.0}):
            words = " ".join(f"{name}={value}" for name, value in way.items())
            for name, x in {"2x3x7x13": tensor((2, 3, 7, 13)), "extremes": extremes()}.items():
                yield f"{mode} {words} {name}", x, mode, way
    for form in ("float16", "bfloat16"):
        for mode in ("raw", "sfpr", "zvc"):
            for name, x in {"2x3x7x13": tensor((2, 3, 7, 13)), "extremes": extremes()}.items():
                yield f"{mode} cdus=3 {name} {form}", tensors.restore(x, x.shape, form), mode, {"cdus": 3}


def digest(array):
    """16 digits of an array's SHA-256. All NaNs count as one: which one comes of arithmetic is the machine's choice."""
    array = np.where(np.isnan(array), np.float32(np.nan), array)
    return hashlib.sha256(array.tobytes()).hexdigest()[:16]


def digests(x, mode, options):
    """Those of the file of a tensor and of the array that it gives back; or the name of the error."""
    try:
        compressed = actcodec.compress(x, mode, **options)
    except ValueError as error:
        return type(error).__name__
    file = hashlib.sha256(container.pack(compressed)).hexdigest()[:16]
    return f"{file} {digest(actcodec.decompress(compressed))}"


def recorded():
    """The digests by the names of cases and of files."""
    return json.loads(DIGESTS.read_text()) if DIGESTS.exists() else {}


def files():
    """The path, mode and options of the file of each code."""
    for mode in codecs.MODES.values():
        for values, one in mode.file_modes:
            bound = {"error_bound": 0.125} if mode.option("error_bound") else {}
            yield FILES / f"{one.name}.act", mode.name, values | bound


def old_files():
    """The same of what is no longer written, a code and 64 equal steps: these files stay as they are."""
    yield FILES / "binarize.act", "brc", {}
    yield FILES / "jpeg-act-div-rice-64-steps.act", "jpeg-act", {"quantizer": "div", "coder": "rice"}
