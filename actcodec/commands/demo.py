"""``actcodec demo``."""

from pathlib import Path

import click


@click.command("demo")
@click.option("--output", metavar="DIR", default="build", help="Folder for the picture, demo.png.")
def command(output):
    """Run real activations of a ResNet-20 through the simulated hardware, and compare with the NumPy model.

    Exits with code 1 if a single bit differs.

    \b
    Examples:
      actcodec demo
      actcodec demo --output pictures
    """
    from actcodec.demo import run

    if not run(Path(output)):
        click.get_current_context().exit(1)
