"""``actcodec demo``."""

from pathlib import Path

import click


@click.command("demo")
@click.option("--output", metavar="DIR", default="build", help="Folder for the picture, demo.png.")
@click.option("--all", "everything", is_flag=True,
              help="Simulate the hardware of every mode; the first build takes about five minutes.")
def command(output: str, everything: bool) -> None:
    """Compress and decompress real activations of a ResNet-20.

    The modes of the paper's accelerator run in simulated hardware, which is compared with the NumPy model bit for bit;
    the other modes run in the model alone. Exits with code 1 if any bit differs.

    \b
    Examples:
      actcodec demo
      actcodec demo --all --output pictures
    """
    from actcodec.demo.run import run

    if not run(Path(output), everything):
        click.get_current_context().exit(1)
