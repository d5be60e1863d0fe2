"""``actcodec demo``."""

from pathlib import Path

import click


@click.command("demo")
@click.option("--output", metavar="DIR", default="build", help="Folder for the picture, demo.png.")
@click.option("--all", "everything", is_flag=True,
              help="Simulate the hardware of every mode; builds for some five minutes the first time.")
def command(output: str, everything: bool) -> None:
    """Compress real activations of a ResNet-20 and bring them back.

    The modes of the paper's accelerator run in simulated hardware, and every bit is compared with the NumPy model; the
    other modes run in that model. Exits with code 1 if a single bit differs.

    \b
    Examples:
      actcodec demo
      actcodec demo --all --output pictures
    """
    from actcodec.demo.run import run

    if not run(Path(output), everything):
        click.get_current_context().exit(1)
