"""What several commands share: options from the registry, checks of files, lines of output."""

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
           "quiet_option", "report", "say", "settings", "shape_text", "spelling"]

engine_option = click.option("--engine", type=click.Choice(engines.ENGINES), default="golden",
                             help="The NumPy model, or a simulation of the hardware. Both produce the same bytes.")
quiet_option = click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")


class ModeName(click.Choice):
    """The name of a mode."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value not in self.choices:
            raise UserError(unknown("mode", value, self.choices))
        return value


class ModeOption(click.Option):
    """An option whose default depends on the mode; help shows it without click's parentheses."""

    def get_help_extra(self, ctx: click.Context) -> Any:
        extra = super().get_help_extra(ctx)
        return extra | {"default": extra["default"].strip("()")} if "default" in extra else extra


class ModeCommand(click.Command):
    """A command with ``--mode`` and the options of all modes, read from the registry when it runs; its help lists the
    modes. With ``several``, each of these options may be repeated."""

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
        """A mode's option as one of the command line; without a default, so that it is None unless given."""
        names = [option.name, f"--{option.name.replace('_', '-')}"]
        by_legal: dict[str, tuple[Option, list[str]]] = {}  # modes by their legal values, if there is more than one
        for mode, own in takers(option.name):
            if not own.range or own.range[0] < own.range[1]:
                by_legal.setdefault(own.legal, (own, []))[1].append(mode.name)
        only = {legal: "" if legal == option.legal or isinstance(own.type, str) else f" ({legal})"
                for legal, (own, _) in by_legal.items()}
        help = " ".join(f"{own.help} Modes: {', '.join(modes)}{only[legal]}."
                        for legal, (own, modes) in by_legal.items())
        defaults = dict.fromkeys(str(own.default) for own, _ in by_legal.values() if own.default is not None)
        more: dict[str, Any] = {"help": help, "multiple": self.several, "default": None,
                "show_default": " or ".join(defaults) if defaults else False}
        if option.type is bool:
            return ModeOption([option.name, f"{names[1]}/--no-{names[1][2:]}"], **more)
        if option.range:
            kind = {int: click.IntRange, float: click.FloatRange}[option.type](*option.range)
        else:
            kind = click.Choice([*map(str, option.choices)]) if option.choices else str
        words = dict.fromkeys(word for own, _ in by_legal.values() for word in own.metavar.split("|"))
        metavar = "|".join(sorted(words, key=str.isupper))  # FILE comes last
        return ModeOption(names, type=kind, metavar=metavar or None, **more)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_options(ctx, formatter)
        for paper, modes in papers().items():
            with formatter.section(f"Modes of {paper}" if paper else "Modes"):
                formatter.write_dl([(mode.name, f"{mode.tensors}: {mode.summary}{'; lossy' if mode.lossy else ''}")
                                    for mode in modes])


def takers(name: str) -> Iterator[tuple[Mode, Option]]:
    """``(mode, option)`` for each mode with an option of that name; also for variants with other legal values."""
    for mode in codecs.MODES.values():
        if own := mode.option(name):
            variants = (lane.option(name) or own for _, lane in mode.variants)
            yield from ((mode, one) for one in {one.legal: one for one in (own, *variants)}.values())


def papers() -> dict[str, list[Mode]]:
    """The modes by the name of their paper."""
    groups: dict[str, list[Mode]] = {}
    for mode in codecs.MODES.values():
        groups.setdefault(mode.source.split(", section")[0].split(", Table")[0], []).append(mode)
    return groups


def settings(mode: str, options: Mapping[str, Any], quiet: bool = True) -> dict[str, Any]:
    """The values of those ``options`` of the command line that ``mode`` has, and of options that a DQT file among them
    sets, unless these have no effect together with the others. Options that the mode does not have are ignored, with a
    note on stderr unless ``quiet``. Raises :class:`UserError` for an illegal value."""
    values: dict[str, Any] = {}
    one_mode = codecs.find(mode)
    options = {name: value for name, value in options.items() if value is not None and value != ()}
    for name in [name for name in options if not one_mode.option(name)]:
        say(f"note: mode {mode} has no option --{spelling(name)}", quiet)
        del options[name]
    origin: dict[str, str] = {}  # {option: how errors begin}, of options set by a file
    for name in list(options):
        read = isinstance(one_mode.option(name).type, str) and getattr(one_mode.option(name).own, "read", None)
        if read:
            options[name] = source = read(options[name])
            more = {other: value for other, value in source.options.items() if other not in options}
            more = {other: value for other, value in more.items() if (option := one_mode.option(other))
                    and not (option.needs and options.get(option.needs[0], option.needs[1]) != option.needs[1])}
            options, origin = options | more, origin | dict.fromkeys(more, f"{source.text}: ")
    # variant options first: they decide what the others accept
    for name in sorted(options, key=lambda name: name not in one_mode.variant_options):
        value = options[name]
        try:
            option = one_mode.own(name, values)
            value = option.type(value) if option.choices else value  # choices are words on the command line
            values[name] = option.own.parse(value) if isinstance(option.type, str) else option.check(value)
        except ValueError as error:
            raise UserError(f"{origin.get(name, '--')}{spelling(error)}, for mode {mode}") from error
    try:
        one_mode.option_values(values)
    except ValueError as error:
        raise UserError(spelling(error)) from error
    return {name: values[name] for name in options}


def spelling(text: object) -> str:
    """``text`` with options spelled as on the command line."""
    words = str(text)
    for name in codecs.options():
        words = words.replace(name, name.replace("_", "-"))
    return words


def check_target(target: str, source: str) -> None:
    """Raises :class:`UserError` if ``target`` cannot be written, before any work is done for it."""
    if is_standard(target, 1):
        return
    if os.path.isdir(target):
        raise UserError(f"{target}: is a directory")
    if not os.path.isdir(os.path.dirname(target) or "."):
        raise UserError(f"{os.path.dirname(target)}: no such directory")
    if os.path.isfile(target) and os.path.exists(source) and os.path.samefile(source, target):
        raise UserError(f"{target}: input and output are the same file")


def check_picture(target: str) -> None:
    """Raises :class:`UserError` for a picture that cannot be written, and ModuleNotFoundError without matplotlib,
    before any work is done for it."""
    check_target(target, "")
    plotting.form(target)
    plotting.pyplot()


@contextmanager
def progress_bar(engine: str, quiet: bool, what: str) -> Iterator[Callable[[str], None]]:
    """Announces what is built for ``engine``. On a terminal it shows a progress bar with the label ``what`` and the
    elapsed time; it yields a function that changes the label."""
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
    """Prints a line on stderr, unless ``quiet``."""
    if not quiet:
        click.echo(text, err=True)


def shape_text(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape))


def mode_text(compressed: Compressed) -> str:
    """The mode with the names of its table and variant, if any; numeric options are left out."""
    mode = codecs.find(compressed.mode)
    names = [str(value) for name, value in compressed.options.items()
             if not isinstance(value, bool | int | float) and mode.variant_options.get(name) != value]
    return " ".join([compressed.mode, *names])


def report(target: str, text: str, cycles: Any) -> None:
    """Prints the last line of a successful command; on stderr if the result itself is on the standard output."""
    speed = f", {cycles.cycles_per_block:.2f} cycles per block" if cycles else ""
    to_output = is_standard(target, 1)
    click.echo(f"{'standard output' if to_output else click.format_filename(target)}: {text}{speed}", err=to_output)
