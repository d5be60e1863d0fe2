"""``actcodec bench``."""

from pathlib import Path

import click

from actcodec import engines


@click.command("bench")
@click.option("--output", metavar="DIR", default="build/bench", help="Folder for report.json and bench.png.")
@click.option("--quick", is_flag=True, help="Fewer widths and numbers of CDUs.")
def command(output: str, quick: bool) -> None:
    """Measure the simulated accelerator in exact cycles.

    Rates by mode, width and CDUs, and the effective offload rate.

    \b
    Examples:
      actcodec bench
      actcodec bench --quick --output pictures
    """
    from actcodec.bench.run import run

    with engines.simulator():
        run(Path(output), quick)
