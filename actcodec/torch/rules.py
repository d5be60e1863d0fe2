"""Rules that choose the codec of a saved tensor, kinds of tensors, and the presets of the papers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

from actcodec import codecs
from actcodec.torch.own import Codec, Own

__all__ = ["KINDS", "ONE_BIT", "PRESETS", "Rule", "names", "preset", "rule", "with_options"]

KINDS = {
    "dense": "output of a convolution, a sum, a norm, anything without a kind of its own",
    "mask": "what an operation saves for one bit of each value alone, such as the x > 0 of a ReLU: a rule whose mode "
            "loses more gets that bit, exactly",
    "relu": "output of a ReLU, ReLU6 or clamp at 0, whose values another operation saves",
    "pool": "output of a pooling",
    "dropout": "output of a dropout, or another product",
    "softmax": "output of a softmax or its logarithm",
}
"""Kinds of a saved tensor, by the operation that made it."""

ACTIVATIONS = tuple(kind for kind in KINDS if kind != "softmax")  # probabilities belong to the loss
SPARSE = ("relu", "pool", "dropout")
ONE_BIT = ("brc",)  # right for a mask, wrong where values are needed


@dataclass(frozen=True)
class Rule:
    """A mode or a codec, or None to leave tensors as they are, and the tensors it applies to. See :func:`rule`."""

    mode: str | Codec | None
    kind: tuple[str, ...] = ACTIVATIONS
    layer: str = "*"
    min_width: int = 0
    dims: tuple[int, ...] = ()
    options: dict = field(default_factory=dict)

    def matches(self, kind: str, layer: str, shape: Sequence[int]) -> bool:
        return (kind in self.kind and (shape or (1,))[-1] >= self.min_width
                and (not self.dims or len(shape) in self.dims) and fnmatchcase(layer, self.layer))


def _several(value, kind):
    return (value,) if isinstance(value, kind) else tuple(value)


def rule(mode: Any, *, kind: Sequence[str] | str = ACTIVATIONS, layer: str = "*", min_width: int = 0,
         dims: Sequence[Any] = (), **options: Any) -> Rule:
    """A rule: the ``mode`` of the registry with its ``options``, a user-defined :class:`~actcodec.torch.Codec`, or
    None to leave tensors as they are.

    It applies to tensors of a ``kind`` (one of :data:`KINDS` or several; by default all but softmax), saved in a
    ``layer`` of that name (a pattern, such as ``layer4.*``), at least ``min_width`` wide (the last dimension), with
    ``dims`` dimensions (a number or several). Raises ValueError for an illegal kind, mode or option.
    """
    kinds, numbers = _several(kind, str), _several(dims, int)
    if unknown := [name for name in kinds if name not in KINDS]:
        raise ValueError(f"kind is {unknown[0]!r}, must be one or more of {', '.join(KINDS)}")
    if isinstance(mode, Codec):
        Own(mode)  # raises for an illegal one
    if mode is not None and not isinstance(mode, Codec):
        mode = codecs.find(mode).name  # an alias becomes its mode
        codecs.find(mode).option_values(options)  # raises for illegal ones
        if mode in ONE_BIT and set(kinds) != {"mask"}:
            raise ValueError(f"mode {mode} keeps no values: it is for kind 'mask' alone, not {', '.join(kinds)}")
    elif options:
        raise ValueError(f"a rule without a mode of the registry has no option {next(iter(options))}")
    return Rule(mode, kinds, layer, min_width, numbers, options)


def _has(one, name):
    """Whether the mode of a rule has an option."""
    return isinstance(one.mode, str) and codecs.find(one.mode).option(name) is not None


def with_options(rules: Sequence[Rule], options: Mapping[str, Any]) -> tuple[Rule, ...]:
    """The rules, each with those ``options`` that its mode has. Raises ValueError for an option that no mode has."""
    known = {name for one in rules for name in options if _has(one, name)}
    if unknown := [name for name in options if name not in known]:
        raise ValueError(f"no mode of these rules has an option {unknown[0]}")
    changed = []
    for one in rules:
        own = {name: value for name, value in options.items() if _has(one, name)}
        if own and isinstance(one.mode, str):
            codecs.find(one.mode).option_values(own)
        changed.append(replace(one, options=one.options | own))
    return tuple(changed)


def _jpeg(mode, sparse):
    """A column of JPEG-ACT's Table II: tensors without tiles get SFPR."""
    return (rule("brc", kind="mask"), rule(sparse, kind=SPARSE), rule(mode, kind="dense", min_width=8), rule("sfpr"))


def _gist(form=None):
    """Gist's encodings; without a format, only the lossless ones."""
    dense = (rule(f"dpr-{form}", kind="dense"),) if form else ()
    return (rule("brc", kind="mask"), rule(f"ssdc-{form}" if form else "ssdc", kind=SPARSE), *dense)


PRESETS = {
    "none": lambda: (),
    "cdma": lambda: (rule("zvc", kind=("mask", *SPARSE)),),
    "gist": _gist,
    "gist-fp16": lambda: _gist("fp16"),
    "gist-fp10": lambda: _gist("fp10"),
    "gist-fp8": lambda: _gist("fp8"),
    "sfpr": lambda: (rule("sfpr"),),
    "jpeg-base": lambda: _jpeg("jpeg-base", "sfpr"),
    "jpeg-act": lambda: _jpeg("jpeg-act", "sfpr-zvc"),
    # inputs of convolutions, norms and linear layers, always minus a mean; bits for the rest (appendix G)
    "division-paper": lambda: (rule("brc", kind="mask"), rule("division", lfc="on")),
    # inputs of convolutions; the paper recomputes those of norms, which are left as they are here (section 3.4)
    "comet-paper": lambda: (rule("brc", kind="mask"), rule("comet", kind=SPARSE)),
}
"""The columns of JPEG-ACT's Table II, and what DIVISION and COMET do in their papers. Besides them every mode of the
registry is a preset, for all activations."""


def names() -> list[str]:
    """All presets."""
    return [*PRESETS, *(name for name in codecs.MODES if name not in PRESETS)]


def preset(name: str, **options: Any) -> tuple[Rule, ...]:
    """The rules of a preset, with these options for the modes that have them. Raises ValueError for an unknown preset
    or option."""
    name = codecs.aliases()[name].name if name in codecs.aliases() else name
    if name not in names():
        raise ValueError(f"unknown preset {name!r}, legal are {', '.join(names())}")
    rules = PRESETS[name]() if name in PRESETS else (rule(name, kind="mask" if name in ONE_BIT else ACTIVATIONS),)
    return with_options(rules, options)
