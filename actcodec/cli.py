"""The command line. A user's error is one line on stderr and exit code 2, and leaves no output behind.

Each command is a file of ``actcodec/commands/``, imported only when it is used.
"""

import sys
from importlib import import_module
from typing import Any

import click

from actcodec.extras import missing
from actcodec.files import UserError
from actcodec.spelling import unknown

__all__ = ["COMMANDS", "main"]

COMMANDS = ("compress", "decompress", "info", "evaluate", "dqt", "modes", "jpeg", "awp", "mfr", "offload", "train",
            "units", "verilog", "demo", "bench")


class Interrupted(Exception):
    """The user's interrupt, in a form for which click does not print an empty line."""


class Commands(click.Group):
    """The commands by name. Reports errors in one line instead of several and a traceback."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        return import_module(f"actcodec.commands.{name}").command if name in COMMANDS else None

    def resolve_command(self, ctx: click.Context,
                        args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if not args[0].startswith("-") and args[0] not in COMMANDS:
            raise UserError(unknown("command", args[0], COMMANDS))
        return super().resolve_command(ctx, args)

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        try:
            return super().make_context(*args, **kwargs)
        except BrokenPipeError:
            sys.exit(0)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise Interrupted from error
        except BrokenPipeError:
            sys.exit(0)  # the reader closed the output early; click would fail

    def main(self, *args: Any, standalone_mode: bool = True, **kwargs: Any) -> Any:
        if not standalone_mode:
            return super().main(*args, standalone_mode=False, **kwargs)  # type: ignore[call-overload]
        try:
            sys.exit(super().main(*args, standalone_mode=False, **kwargs) or 0)  # type: ignore[call-overload]
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
        except (click.Abort, Interrupted):
            self.fail("interrupted", 130)
        except click.ClickException as error:
            self.fail(error.format_message())
        except UserError as error:
            self.fail(error)
        except ModuleNotFoundError as error:
            if not error.name or error.name.split(".")[0] == "actcodec":
                raise
            self.fail(missing(error.name))
        except OSError as error:
            self.fail(f"{error.filename}: {error.strerror}" if error.filename else error.strerror or error)
        except MemoryError:
            self.fail("not enough memory")
        sys.exit(2)

    def fail(self, message: object, code: int = 2) -> None:
        click.echo(f"actcodec: error: {' '.join(str(message).split())}", err=True)
        sys.exit(code)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.version_option(package_name="actcodec", prog_name="actcodec")
def main() -> None:
    """Compress the activations of a neural network as the hardware does, and write the hardware as Verilog.

    \b
    Examples:
      actcodec compress conv1.npy conv1.act --mode jpeg-act
      actcodec info conv1.act
      actcodec decompress conv1.act back.npy --engine rtl
      actcodec evaluate conv1.npy relu1.npy --all
      actcodec modes
      actcodec jpeg conv1.npy conv1.jpg
      actcodec units
      actcodec mfr vgg16
      actcodec offload resnet-50
      actcodec train docs/training/short.toml
      actcodec demo
      actcodec bench
    """
