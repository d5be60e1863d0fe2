"""actcodec: hardware that compresses activations, its golden models, and the command line of both.

>>> import numpy as np
>>> import actcodec
>>> x = np.maximum(np.random.default_rng(0).normal(size=(2, 16, 32, 32)), 0).astype(np.float32)
>>> compressed = actcodec.compress(x, "sfpr-zvc")
>>> y = actcodec.decompress(compressed)
>>> compressed.mode, y.shape, y.dtype.name, round(compressed.ratio, 1)
('sfpr-zvc', (2, 16, 32, 32), 'float32', 6.5)

docs/api.md has the rest. Importing this package imports nothing else; a function brings NumPy.
"""

from typing import Any

__all__ = ["Compressed", "Evaluation", "__version__", "compress", "compress_many", "decompress", "decompress_many",
           "evaluate", "load", "modes", "save"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'actcodec' has no attribute {name!r}")
    if name == "__version__":
        from importlib.metadata import version

        value = version("actcodec")
    else:
        from actcodec import api

        value = getattr(api, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
