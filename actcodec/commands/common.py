"""What several commands share: options that come from the registry, checks of files, lines that are printed."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from actcodec import codecs, engines, plotting
from actcodec.codecs.compressed import Compressed
from actcodec.codecs.mode import Mode
from actcodec.codecs.option import Option
from actcodec.files import UserError, is_standard
from actcodec.spelling import unknown

__all__ = ["ModeCommand", "check_picture", "check_target", "engine_option", "mode_text", "papers", "progress_bar",
           "quiet_option", "report", "say", "settings", "shape_text"]

engine_option = click.option("--engine", type=click.Choice(engines.ENGINES), default="golden",
                             help="The NumPy model, or a simulation of the hardware. Both give the same bytes.")
quiet_option = click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")


class ModeName(click.Choice):
    """The name of a mode."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value not in self.choices:
            raise UserError(unknown("mode", value, self.choices))
        return value


class ModeOption(click.Option):
    """An option whose default is the mode's, and shown without the parentheses that click puts around such."""

    def get_help_extra(self, ctx: click.Context) -> Any:
        extra = super().get_help_extra(ctx)
        return extra | {"default": extra["default"].strip("()")} if "default" in extra else extra


class ModeCommand(click.Command):
    """A command with ``--mode`` and an option for each of the modes' options, as the registry has them when it runs;
    its help lists the modes. ``several``: each of them may be given more than once."""

    def __init__(self, *args: Any, several: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.several = several

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        mode = click.Option(["--mode"], type=ModeName([*codecs.MODES, *codecs.aliases()]), metavar="MODE",
                            required=not self.several, multiple=self.several, help="How to compress; see below.")
        options = [self.option(option) for option in codecs.options().values()]
        at = sum(isinstance(param, click.Argument) for param in self.params)
        own, self.params = self.params, [*self.params[:at], mode, *options, *self.params[at:]]
        try:
            return super().get_params(ctx)
        finally:
            self.params = own

    def option(self, option: Option) -> click.Option:
        """An option of modes as one of the command line; without a default, so that what was given shows."""
        names = [option.name, f"--{option.name.replace('_', '-')}"]
        having: dict[str, tuple[Option, list[str]]] = {}  # modes by what they take, unless that leaves no choice
        for mode, own in takers(option.name):
            if not own.range or own.range[0] < own.range[1]:
                having.setdefault(own.legal, (own, []))[1].append(mode.name)
        only = {legal: "" if legal == option.legal or isinstance(own.type, str) else f" ({legal})"
                for legal, (own, _) in having.items()}
        help = " ".join(f"{own.help} Modes: {', '.join(modes)}{only[legal]}."
                        for legal, (own, modes) in having.items())
        defaults = dict.fromkeys(str(own.default) for own, _ in having.values() if own.default is not None)
        more: dict[str, Any] = {"help": help, "multiple": self.several, "default": None,
                "show_default": " or ".join(defaults) if defaults else False}
        if option.type is bool:
            return ModeOption([option.name, f"{names[1]}/--no-{names[1][2:]}"], **more)
        if option.range:
            kind = {int: click.IntRange, float: click.FloatRange}[option.type](*option.range)
        else:
            kind = click.Choice([*map(str, option.choices)]) if option.choices else str
        words = dict.fromkeys(word for own, _ in having.values() for word in own.metavar.split("|"))
        metavar = "|".join(sorted(words, key=str.isupper))  # FILE comes last
        return ModeOption(names, type=kind, metavar=metavar or None, **more)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_options(ctx, formatter)
        for paper, modes in papers().items():
            with formatter.section(f"Modes of {paper}" if paper else "Modes"):
                formatter.write_dl([(mode.name, f"{mode.tensors}: {mode.summary}{'; lossy' if mode.lossy else ''}")
                                    for mode in modes])


def takers(name: str) -> Iterator[tuple[Mode, Option]]:
    """Modes that have the option of that name, and it; once more if a variant of the mode has another."""
    for mode in codecs.MODES.values():
        if own := mode.option(name):
            variants = (lane.option(name) or own for _, lane in mode.variants)
            yield from ((mode, one) for one in {one.legal: one for one in (own, *variants)}.values())


def papers() -> dict[str, list[Mode]]:
    """The modes of each paper, by its name."""
    groups: dict[str, list[Mode]] = {}
    for mode in codecs.MODES.values():
        groups.setdefault(mode.source.split(", section")[0].split(", Table")[0], []).append(mode)
    return groups


def settings(mode: str, options: Mapping[str, Any], quiet: bool = True) -> dict[str, Any]:
    """The values of options that ``mode`` has among ``options``, those of the command line, and of those that a file
    among them names, unless they mean nothing beside the others. Raises :class:`UserError`. Options that the mode
    does not have change nothing; a message says so, unless ``quiet``."""
    values: dict[str, Any] = {}
    known = codecs.find(mode)
    options = {name: value for name, value in options.items() if value is not None and value != ()}
    for name in [name for name in options if not known.option(name)]:
        say(f"note: mode {mode} has no option --{_spelling(name)}", quiet)
        del options[name]
    origin: dict[str, str] = {}  # of what a file says, by name
    for name in list(options):
        read = isinstance(known.option(name).type, str) and getattr(known.option(name).own, "read", None)
        if read:
            options[name] = source = read(options[name])
            more = {other: value for other, value in source.options.items() if other not in options}
            more = {other: value for other, value in more.items() if (option := known.option(other))
                    and not (option.needs and options.get(option.needs[0], option.needs[1]) != option.needs[1])}
            options, origin = options | more, origin | dict.fromkeys(more, f"{source.text}: ")
    # variant options first: they say which class others have
    for name in sorted(options, key=lambda name: name not in known.variant_options):
        value = options[name]
        try:
            option = known.own(name, values)
            value = option.type(value) if option.choices else value  # choices are words on the command line
            values[name] = option.own.parse(value) if isinstance(option.type, str) else option.check(value)
        except ValueError as error:
            raise UserError(f"{origin.get(name, '--')}{_spelling(error)}, for mode {mode}") from error
    try:
        known.option_values(values)
    except ValueError as error:
        raise UserError(_spelling(error)) from error
    return {name: values[name] for name in options}


def _spelling(text):
    """Text in which names of options are as one types them."""
    for name in codecs.options():
        text = str(text).replace(name, name.replace("_", "-"))
    return text


def check_target(target: str, source: str) -> None:
    """Refuses what cannot be written before any work is done for it."""
    if is_standard(target, 1):
        return
    if os.path.isdir(target):
        raise UserError(f"{target}: is a directory")
    if not os.path.isdir(os.path.dirname(target) or "."):
        raise UserError(f"{os.path.dirname(target)}: no such directory")
    if os.path.isfile(target) and os.path.exists(source) and os.path.samefile(source, target):
        raise UserError(f"{target}: input and output are the same file")


def check_picture(target: str) -> None:
    """Refuses a picture that cannot be drawn before any work is done for it, without matplotlib, too."""
    check_target(target, "")
    plotting.form(target)
    plotting.pyplot()


@contextmanager
def progress_bar(engine: str, quiet: bool, what: str) -> Iterator[Callable[[str], None]]:
    """Says what is built for an engine. On a terminal a bar moves beside ``what``, with the time that it takes; the
    function that this yields changes the text."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        with engines.announcing(engine, lambda text: say(text, quiet)):
            yield lambda text: None
        return
    columns = [SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn()]
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(what, total=None)
        with engines.announcing(engine, lambda text: progress.update(task, description=text)):
            yield lambda text: progress.update(task, description=text)


def say(text: str, quiet: bool = False) -> None:
    """A line on stderr."""
    if not quiet:
        click.echo(text, err=True)


def shape_text(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape))


def mode_text(compressed: Compressed) -> str:
    """The mode, and the names of its table and its variant if it has any; numbers are left out."""
    mode = codecs.find(compressed.mode)
    names = [str(value) for name, value in compressed.options.items()
             if not isinstance(value, bool | int | float) and mode.variant_options.get(name) != value]
    return " ".join([compressed.mode, *names])


def report(target: str, text: str, cycles: Any) -> None:
    """The line after a command that went well; on stderr if the result itself went to the standard output."""
    speed = f", {cycles.cycles_per_block:.2f} cycles per block" if cycles else ""
    to_output = is_standard(target, 1)
    click.echo(f"{'standard output' if to_output else click.format_filename(target)}: {text}{speed}", err=to_output)
