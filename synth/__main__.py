"""``python -m actcodec.synth``: what the units become, measured and proved.

Each command is a file of this package, imported when it is asked for.
"""

from importlib import import_module

import click

COMMANDS = {"map": "mapping", "baseline": "baseline", "fpga": "fpga", "place": "layout.command",
            "sky130": "sky130.command", "gates": "gates", "mutate": "mutate"}


class Commands(click.Group):
    """The commands by name."""

    def list_commands(self, ctx):
        return list(COMMANDS)

    def get_command(self, ctx, name):
        return import_module(f"actcodec.synth.{COMMANDS[name]}").command if name in COMMANDS else None


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
def main():
    """Map units to Nangate45 or an ECP5, hold them against what is recorded, and prove what they became.

    \b
    Examples:
      python -m actcodec.synth map dct
      python -m actcodec.synth baseline
      python -m actcodec.synth gates quantize
    """


if __name__ == "__main__":
    main(prog_name="python -m actcodec.synth")
