"""``actcodec mfr --codec``: the activations that a network keeps when a mode compresses its dense ones."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.table import Table

from actcodec import codecs, files
from actcodec.codecs.mode import Mode
from actcodec.console import Console
from actcodec.golden.common import footprint, networks

__all__ = ["MINIBATCH", "NETWORKS", "Result", "evaluate", "facts", "show"]

MINIBATCH = 64
NETWORKS = networks.NETWORKS | networks.PYTORCH


@dataclass(frozen=True)
class Way:
    """One way of training; ``bytes``, by category, is None if only the total is known."""

    name: str
    bytes: dict | None
    total: float
    ratio: float  # bytes of normal training over these


@dataclass(frozen=True)
class Result:
    """All ways of training one network."""

    network: str
    minibatch: int
    codec: str
    options: dict
    ways: list


def evaluate(names: Sequence[str], codec: str, minibatch: int | None = None, words: Sequence[str] = (),
             ratio: float | None = None) -> list[Any]:
    """A :class:`Result` for each of the networks ``names`` with the mode ``codec``. ``words`` are options of the
    mode, as NAME=VALUE; a ``ratio`` replaces the mode's own sizes, which may depend on values. Raises
    :class:`files.UserError`."""
    mode, minibatch = codecs.find(codec), minibatch or MINIBATCH
    options = settings(mode, words)

    def stored(shape):
        if ratio:
            return footprint.plain(shape) / ratio
        bytes_ = mode.model.size(shape, **options)
        if bytes_ is None:
            raise files.UserError(f"the size of {codec}'s payload depends on the values: give a --ratio, such as one "
                                  "measured by actcodec evaluate")
        return bytes_

    results = []
    for name in names:
        graph = NETWORKS[name]()
        ways = {"normal": footprint.sizes(graph, minibatch),
                codec: footprint.sizes(graph, minibatch, stored, *footprint.BITS)}
        ways |= dict(mode.model.beside(name, graph, minibatch, **options))
        totals = {way: sum(bytes_.values()) if isinstance(bytes_, dict) else bytes_ for way, bytes_ in ways.items()}
        results.append(Result(name, minibatch, codec, options, [
            Way(way, bytes_ if isinstance(bytes_, dict) else None, totals[way], totals["normal"] / totals[way])
            for way, bytes_ in ways.items()]))
    return results


def settings(mode: Mode, words: Sequence[str]) -> dict[str, Any]:
    """A value for each option that a file stores, by default or from ``words``."""
    values = {}
    for text in words:
        name, equals, value = text.partition("=")
        option = mode.option(name)
        if not option or not equals:
            names = ", ".join(option.name for option in mode.options)
            raise files.UserError(f"--option {text}: must be NAME=VALUE, with one of {mode.name}'s options: {names}")
        try:
            values[name] = (option.type(value) if option.type in (int, float, str) else
                            value == "true" if option.type is bool and value in ("true", "false") else value)
        except ValueError as error:
            raise files.UserError(f"--option {text}: {error}") from error
    try:
        values = mode.option_values(values)
    except ValueError as error:
        raise files.UserError(f"--option {' '.join(words)}: {error}") from error
    return {name: value for name, value in values.items() if mode.option(name).stored}


def facts(results: Sequence[Any]) -> list[dict[str, Any]]:
    """The JSON of ``--json``: a dict for each network."""
    return [asdict(result) | {"options": {name: value if isinstance(value, int | float) else str(value)
                                          for name, value in result.options.items()}} for result in results]


def show(results: Sequence[Any]) -> None:
    """Prints a table for each network."""
    console = Console(highlight=False)
    for result in results:
        table = Table("GiB", *footprint.CATEGORIES, "total", "ratio", box=None, header_style="bold", pad_edge=False,
                      title=f"{result.network}, minibatch {result.minibatch}", title_justify="left")
        for column in table.columns[1:]:
            column.justify = "right"
        for way in result.ways:
            sizes = [f"{size / 2**30:.3f}" for size in way.bytes.values()] if way.bytes else [""] * 4
            table.add_row(way.name, *sizes, f"{way.total / 2**30:.3f}", f"{way.ratio:.2f}")
        console.print(table, "")
