"""``actcodec awp``."""

import json
from collections.abc import Sequence

import click
import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from actcodec import sources
from actcodec.commands.common import say
from actcodec.console import Console
from actcodec.files import UserError, reading
from actcodec.golden.a2dtwp.awp import INTERVALS, STEP, THRESHOLDS, Awp, norms
from actcodec.tensors import as_floats


@click.command("awp")
@click.argument("files", metavar="FILES...", nargs=-1, required=True)
@click.option("--network", type=click.Choice(list(THRESHOLDS)), default="resnet",
              help="Use the paper's threshold and interval for this network.")
@click.option("--threshold", type=float, show_default="the network's",
              help="Relative change of a norm below which a batch counts.")
@click.option("--interval", type=click.IntRange(1), show_default="the network's",
              help="Number of such batches before a layer gains bits.")
@click.option("--start", type=click.IntRange(1, 32), default=STEP, help="Bits in the beginning.")
@click.option("--step", type=click.IntRange(1), default=STEP, help="Bits gained at a time.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
def command(files: Sequence[str], network: str, threshold: float | None, interval: int | None, start: int, step: int,
            as_json: bool) -> None:
    """Show how many bytes of each weight A2DTWP's AWP keeps.

    It is shown for each layer, batch by batch (Algorithm 1).

    FILES are either one table of L2 norms, a row per batch and a column per layer (.npy, or text separated by white
    space or commas), or the weights after each batch: one .npz or .pt per batch, in order, with an array per layer.

    \b
    Examples:
      actcodec awp norms.csv --network vgg
      actcodec awp norms.npy --threshold -0.001 --interval 100 --json
      actcodec awp batch0.npz batch1.npz batch2.npz --interval 1
    """
    layers, history = read(files)
    try:
        awp = Awp(len(layers), THRESHOLDS[network] if threshold is None else threshold,
                  INTERVALS[network] if interval is None else interval, start, step)
    except ValueError as error:
        raise UserError(error) from error
    changes = [(0, awp.bits.tolist(), awp.roundto.tolist())]
    for batch, row in enumerate(history, 1):
        roundto = awp.update(row).tolist()
        if awp.bits.tolist() != changes[-1][1]:
            changes.append((batch, awp.bits.tolist(), roundto))
    if as_json:
        click.echo(json.dumps({"layers": layers, "batches": len(history), "threshold": awp.threshold,
                               "interval": awp.interval, "start": start, "step": step,
                               "changes": [dict(zip(("batch", "bits", "bytes"), change, strict=True))
                                           for change in changes]}))
        return
    table = Table("after batch", *layers, box=None, header_style="bold")
    for batch, _, roundto in changes:
        table.add_row(str(batch), *map(str, roundto))
    console = Console(markup=False, highlight=False)
    console.print(f"Bytes kept of a weight in each layer, {len(history)} batches")
    console.print(table)


def read(files: Sequence[str]) -> tuple[list[str], NDArray[np.float64]]:
    """The names of the layers, and their norms, float64 [batches, layers]. Raises :class:`UserError`."""
    if len(files) == 1 and not files[0].endswith((".npz", ".pt", ".pth")):
        table = norms_table(files[0])
        return [str(layer) for layer in range(table.shape[1])], table
    layers = [dict(sources.tensors(file, say)) for file in files]
    for file, weights in zip(files, layers, strict=True):
        if list(weights) != list(layers[0]):
            raise UserError(f"{file}: its layers differ from those of {files[0]}")
    return list(layers[0]), np.array([norms(map(as_floats, weights.values())) for weights in layers])


def norms_table(path: str) -> NDArray[np.float64]:
    if path.endswith(".npy"):
        (_, x), = sources.tensors(path, say)
        table = as_floats(x)
    else:
        with reading(path) as file:
            text = file.read().decode("latin-1")
        rows = [line.split("#")[0].replace(",", " ").split() for line in text.splitlines()]
        try:
            table = np.array([[float(word) for word in row] for row in rows if row])
        except ValueError as error:
            raise UserError(f"{path}: not a table of norms: {error}") from error
    if table.ndim != 2 or not table.size or not np.all(np.isfinite(table) & (table >= 0)):
        raise UserError(f"{path}: not a table of norms: rows must have equal lengths, and numbers must be finite and "
                        "0 or more")
    return table.astype(np.float64)
