"""The declaration of a mode in the registry: data, in which names stand for what takes long to import."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from typing import Any

from actcodec.codecs.option import Option
from actcodec.codecs.stage import Stage
from actcodec.rtl.offload.control.setting import Setting
from actcodec.rtl.offload.wire.block_format import BlockFormat

__all__ = ["LANE", "WORDS", "Mode", "Option", "Setting", "Stage", "import_object"]

LANE = 64  # codes below may be a lane's
WORDS = BlockFormat("fixed", 32)  # a block of float32 values


def import_object(name: object) -> Any:
    """The object named ``package.module`` or ``package.module:object``, imported only now. Anything but a string is
    returned unchanged."""
    if not isinstance(name, str):
        return name
    place, _, attribute = name.partition(":")
    module = import_module(place)
    return getattr(module, attribute) if attribute else module


def _software(default=()):
    """A field that only the software looks at: modes are the same hardware whatever it says."""
    return field(default=default, repr=False, compare=False, kw_only=True)


@dataclass(frozen=True)
class Mode:
    """A way to compress a tensor.

    In a lane it is a list of stages, which define its blocks and the settings of each tensor. ``golden`` names the
    class of its model, a :class:`~actcodec.codecs.codec.Codec`, unless that consists of the stages' models.
    """

    name: str
    code: int  # 0 to 255, the same in files and in hardware; a lane's is below 64
    stages: tuple[Stage, ...] | None = None  # that a tensor passes in a lane to be compressed; None: no lane has it
    # The software's.
    summary: str = _software("")  # half a sentence
    tensors: str = _software("")  # what it is for: "dense activations (conv, sum)"
    relu: bool = _software(False)  # whether these are outputs of ReLU, with their zeros, and no others
    source: str = _software("")  # paper and section
    lossy: bool = _software(False)
    options: tuple[Option, ...] = _software()
    exclusive: tuple[str, ...] = _software()  # options of which one counts: the one given, or else the defaults
    golden: str | object = _software("")
    torch: str = _software("")  # class of its torch version, if it has one
    parameters: tuple[tuple[str, object], ...] = _software()  # of the model, fixed for this mode
    steady: bool = _software(True)  # in a lane, no tensor takes more cycles than others of its size
    fallback: str = _software("")  # the mode of tensors that have no tiles
    # What a lane does in its place with a tensor of 16 bits, whose words it moves as they are; None: values are widened
    # to float32. Hosts and files have the code of the mode itself.
    halves: "Mode | None" = field(default=None, repr=False, compare=False, kw_only=True)
    aliases: tuple[str, ...] = _software()  # other names
    # Codes of files that are no longer written, and what makes the ``Compressed`` of their payload, a function of the
    # mode, the shape that a model sees, and the payload: pairs of a code and a name like "package.module:function".
    old_codes: tuple[tuple[int, str], ...] = _software()
    demo_cases: tuple[tuple[str, dict], ...] = _software()  # for "dense" or "ReLU" tensors, with these options
    # To the user values of some options, for hardware and in files modes with names and codes of their own: pairs of
    # {option: value}, where an option that is not named has its default, and the mode that does it. Of several with the
    # same values the first one does it, and the others are fallbacks. An option's class may be another in a variant.
    variants: tuple[tuple[dict, "Mode"], ...] = _software()

    def __repr__(self) -> str:
        return f"<Mode {self.name}, code {self.code}>"

    # ------------------------------------------------------------------------------------------ what the stages say
    @property
    def format(self) -> BlockFormat | None:
        """The format of its blocks, if a lane has it: the last stage's, or unchanged float32 values."""
        if self.stages is None:
            return None
        return self.stages[-1].format if self.stages else WORDS

    @property
    def path(self) -> tuple[str, ...]:
        """The hardware of the stages."""
        return tuple(stage.hardware for stage in self.stages or ())

    @property
    def settings(self) -> tuple[Setting, ...]:
        """The settings of its stages."""
        return tuple(setting for stage in self.stages or () for setting in stage.settings)

    @property
    def scaled(self) -> bool:
        """Whether there is a scale for each sector."""
        return any(stage.scaled for stage in self.stages or ())

    @property
    def tiled(self) -> bool:
        """Whether a block is a tile of 8x8; else it is 8 consecutive sectors."""
        return any(stage.tiled for stage in self.stages or ())

    @property
    def shifts(self) -> bool:
        """Whether there is a DQT of shifts."""
        return any(stage.shifts for stage in self.stages or ())

    @property
    def plain(self) -> bool:
        """Whether it moves 16-bit words unchanged: some mode's :attr:`halves`."""
        return any(stage.plain for stage in self.stages or ())

    @property
    def codes(self) -> "Mode | None":
        """The mode of int8 tensors, whose values have passed its first stage elsewhere: its other stages. None if that
        stage cannot be bypassed, or if there are segments, whose offsets come with the scales."""
        first, *others = self.stages or (None,)
        if first is None or not first.codes or (self.format and self.format.segmented):
            return None
        first = replace(first, model=first.codes, codes="", scaled=False)
        return replace(self, name=f"{self.name}-codes", stages=(first, *others), fallback="", variants=())

    @property
    def model(self) -> Any:
        """The :class:`~actcodec.codecs.codec.Codec`; None if a mode of benches has none."""
        golden = self.golden or ("actcodec.codecs.codec:LaneCodec" if self.stages is not None else None)
        return golden and import_object(golden)(self)

    # ------------------------------------------------------------------------------------------------- the options

    @property
    def parameter(self) -> Any:
        """:attr:`parameters` as a dictionary."""
        return dict(self.parameters)

    @property
    def engines(self) -> tuple[str, ...]:
        """The names of the engines that have the mode."""
        return ("golden", "rtl") if self.stages is not None else ("golden",)

    @cached_property
    def variant_options(self) -> dict:
        """The options that decide between the mode and its variants, and their defaults."""
        return {name: self.option(name).default for values, _ in self.variants for name in values}

    @property
    def file_modes(self) -> tuple[tuple[dict[str, Any], Any], ...]:
        """Itself and those :attr:`variants` that values of options can select, which are what files can have: pairs as
        there."""
        ways = (({}, self), *self.variants)
        return tuple((values, one) for values, one in ways if self.variant(self.variant_options | values) is one)

    def variant(self, options: Mapping[str, Any]) -> "Mode":
        """The mode for these values of options: itself, or one of the :attr:`variants`. Raises ValueError if there is
        none."""
        defaults = self.variant_options
        selection = {name: options.get(name, default) for name, default in defaults.items()}
        for values, mode in (({}, self), *self.variants):
            if defaults | values == selection:
                return mode
        raise ValueError(f"mode {self.name} has no " + " with ".join(f"{name} {value}" for name, value in
                                                                      selection.items()))

    def written(self, options: Mapping[str, Any]) -> tuple[Option, ...]:
        """The options that have a field of their own in a file, for these values of options; the mode's code implies
        the others."""
        return tuple(self.own(option.name, options) for option in self.options
                     if option.stored and option.name not in {"cdus", *self.variant_options})

    def own(self, name: str, options: Mapping[str, Any]) -> Option:
        """The option of that name as the variant for these values of others has it, whose class may be another."""
        return self.variant(options).option(name) or self.option(name)

    def option(self, name: str) -> Any:
        """The option of that name, or None."""
        return next((option for option in self.options if option.name == name), None)

    def option_values(self, options: Mapping[str, Any]) -> dict:
        """A value for each option: that in ``options``, or its default where that is None. Raises ValueError for an
        option that the mode does not have, for an illegal value, for options that exclude each other, for a combination
        of values that no variant has, and for an option that needs another value of another option; without that value
        it is None."""
        if wrong := [name for name in options if not self.option(name)]:
            names = ", ".join(option.name for option in self.options) or "none"
            raise ValueError(f"mode {self.name} has no option {wrong[0]}; its options: {names}")
        options = {name: value for name, value in options.items() if value is not None}
        if len(several := [name for name in self.exclusive if name in options]) > 1:
            raise ValueError(f"mode {self.name} takes one of {', '.join(self.exclusive)}, not {' and '.join(several)}")
        defaults = {option.name: option.default for option in self.options}
        values = defaults | (dict.fromkeys(self.exclusive) if several else {}) | options
        variant_options = {name: self.option(name).check(values[name]) for name in self.variant_options}
        values = {name: None if value is None else self.own(name, variant_options).check(value)
                  for name, value in values.items()}
        for option in self.options:
            if option.needs and values[option.needs[0]] != option.needs[1]:
                if option.name in options:
                    raise ValueError(f"{option.name} is {values[option.name]}, which needs "
                                     f"{option.needs[0]} {option.needs[1]}")
                values[option.name] = None
        return values
