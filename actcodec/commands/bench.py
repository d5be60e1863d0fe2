"""``actcodec bench``."""

from pathlib import Path

import click

from actcodec import engines


@click.command("bench")
@click.option("--output", metavar="DIR", default="build/bench", help="Folder for report.json and bench.png.")
@click.option("--quick", is_flag=True, help="Measure fewer widths and numbers of CDUs.")
@click.option("--step", metavar="MINIBATCH", type=click.IntRange(1, 64),
              help="Measure only what a step of ResNet-50 offloads, out and back through one ring; takes minutes per "
                   "sample.")
def command(output: str, quick: bool, step: int | None) -> None:
    """Measure the simulated accelerator in exact cycles.

    It measures rates by mode, width and CDUs, the effective offload rate, and a queue against a host.

    \b
    Examples:
      actcodec bench
      actcodec bench --quick --output pictures
      actcodec bench --step 1 --output build/step
    """
    from actcodec.bench.run import run

    with engines.simulator():
        run(Path(output), quick, step)
