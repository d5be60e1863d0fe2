"""What is proved: all proofs, in the order of the table."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

from formal.engine import BUILD, fingerprint, prove

__all__ = ["Proof", "decide", "key", "proofs"]

THEMES = ("streams", "order", "ends", "progress", "interleaving", "beats", "writer", "unpacking", "sparse", "pooling",
          "rle", "rld", "runlength", "memory", "lite", "turns", "dealing", "slots", "ring")


@dataclass(frozen=True, eq=False)
class Proof:
    """Some properties of a unit that are proved in one harness.

    ``build()`` makes the harness; it may use a folder, which is its argument. ``note`` says what is not as in the
    unit's catalogue entry, or assumed. ``options`` are those of :func:`formal.engine.prove`.
    """

    unit: str
    theme: str
    build: Callable
    note: str = ""
    options: dict = field(default_factory=dict)

    @property
    def name(self):
        """A name for files and commands, which no other proof has."""
        words = "".join(letter if letter.isalnum() else " " for letter in f"{self.unit} {self.theme} {self.note}")
        return "-".join(words.split())

    @property
    def label(self):
        """What tables call the unit."""
        return f"{self.unit} ({self.note})" if self.note else self.unit


@cache
def proofs():
    """All proofs, by name."""
    every = [proof for theme in THEMES for proof in import_module(f"formal.{theme}").proofs()]
    return {proof.name: proof for proof in every}


def decide(name, limit=600, build=BUILD):
    """The key of a proof, by its name, and its results."""
    proof = proofs()[name]
    harness = proof.build(Path(build, "work", name))
    return fingerprint(harness, **proof.options), prove(name, harness, limit, build=build, **proof.options)


def key(name):
    """The key of a proof, by its name: what its results depend on."""
    proof = proofs()[name]
    with TemporaryDirectory() as folder:
        return fingerprint(proof.build(Path(folder)), **proof.options)
