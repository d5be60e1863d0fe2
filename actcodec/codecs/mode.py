"""What the registry knows of a mode. Data alone: what takes long to import is named, and found when it is needed."""

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module

from actcodec.codecs.option import Option
from actcodec.rtl.offload.control.setting import Setting
from actcodec.rtl.offload.wire.block_format import BlockFormat

__all__ = ["LANE", "Mode", "Option", "Setting", "Streams", "found"]

LANE = 64  # codes below may be a lane's


def found(name):
    """What a name like ``package.module`` or ``package.module:object`` stands for, imported only now. Anything that is
    no string is returned as it is."""
    if not isinstance(name, str):
        return name
    module, _, attribute = name.partition(":")
    module = import_module(module)
    return getattr(module, attribute) if attribute else module


def _software(default=()):
    """A field that only the software looks at: modes are the same hardware whatever it says."""
    return field(default=default, repr=False, compare=False, kw_only=True)


@dataclass(frozen=True)
class Streams:
    """The pair of stream units that is the hardware of a mode without a lane.

    Both are classes of components without parameters, as ``package.module:name``. ``inputs`` are the values of their
    inputs that are no streams. The encoder takes the tensor at ``i`` and gives the payload at ``o``; the decoder takes
    it at ``i``, and ``length``, how many values there are, and gives the tensor at ``o``. Where there are several
    arrays, the model has two more functions: ``joined(shape, mode, arrays)``, the ``Compressed`` of the encoder's
    outputs, and ``arrays(compressed)``, what the decoder's inputs take; both are dictionaries by the names of ports, of
    bytes, or of integers for streams that carry a number.
    """

    encoder: str
    decoder: str
    inputs: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Mode:
    """A way to compress a tensor.

    ``golden`` names the NumPy model, a module or an object with two functions and, where they are needed, more:

    ================================ ==================================================================================
    ``compress(x, mode, **options)`` the :class:`~actcodec.codecs.compressed.Compressed` of a float32 array of 2 or 4
                                     dimensions, C order, in this :class:`Mode`, with a value for each of its options
    ``decompress(compressed)``       the float32 array
    ``side_bytes(shape, mode,``      bytes of side information, if there is any, of the mode or one of its variants; of
    ``**options)``                   the options it gets those that a file keeps
    ``check(compressed)``            raises ValueError if payload, side information and shape contradict each other
    ``settings(x, lane, dqt,         for a mode of a lane that is ``told`` something: a number for each setting, by its
    signs, **options)``              name, as fits the tensor
    ``saturated(x, compressed)``     how many values were beyond what the mode can express
    ``facts(compressed)``            what else ``actcodec info`` shows of a file, a dictionary
    ``size(shape, mode, **options)`` bytes of payload and side information, or None unless the shape alone decides
    ``beside(network, graph,``       what ``actcodec mfr`` shows beside it: pairs of a name, and bytes in all or of each
    ``minibatch, **options)``        category of ``golden/common/footprint.py``
    ``view(shape)``                  of a lane's mode that does not see tensors as JPEG-ACT does: an object with
                                     ``rows``, ``width``, ``height``, ``channels`` and whether it is ``tileable``
    ``fit(x, lane, **options)``      of a lane's mode whose scales are not JPEG-ACT's, instead of ``settings``: words of
                                     the scale table, uint32, and a number for each setting, by its name
    ``job(**options)``               of a lane's mode: what :meth:`actcodec.driver.Driver.compress` has to know of the
                                     options, by the names of its parameters
    ``lane(x, mode, **options)``     of a lane's mode whose values decide which of its variants does it, instead of
                                     ``job``: that variant, and what ``job`` gives
    ``compressed(lane, shape,        of a lane's mode: the ``Compressed`` of what ``lane``, the mode or a variant, made
    payload, cdus, result,           of a tensor, by the driver's ``result``
    **options)``
    ``stored(compressed)``           of a lane's mode: an object with ``mode``, ``shape``, ``payload``, ``scales``,
                                     ``table``, ``cdus``, ``blocks``, ``payload_bytes``, and, if it has streams, their
                                     ``lengths``; a number for each setting
    ================================ ==================================================================================
    """

    name: str
    code: int  # 0 to 255, the same in files and in hardware; a lane's is below 64
    # Of a mode that a lane has: its blocks; the units that a tensor passes when it is compressed, as
    # "package.module:name"; whether they take a scale for each sector; whether blocks are tiles of 8x8.
    format: BlockFormat | None = None
    path: tuple[str, ...] = ()
    scaled: bool = False
    tiled: bool = False
    told: tuple[Setting, ...] = ()  # what these units have to be told of each tensor
    shifts: bool = False  # whether they take a DQT of shifts, which has registers of its own
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
    streams: Streams | None = field(default=None, repr=False, compare=False, kw_only=True)  # if there is no lane
    steady: bool = _software(True)  # in a lane, no tensor takes more cycles than others of its size
    fallback: str = _software("")  # the mode of tensors that have no tiles
    shown: tuple[tuple[str, dict], ...] = _software()  # in the demo: for "dense" or "ReLU" tensors, with these options
    # To the user values of some options, for hardware and in files modes with names and codes of their own: pairs of
    # {option: value}, where an option that is not named has its default, and the mode that does it. Of several with the
    # same values the first one does it, and the others are fallbacks. An option's class may be another in a variant.
    variants: tuple[tuple[dict, "Mode"], ...] = _software()

    def __repr__(self):
        return f"<Mode {self.name}, code {self.code}>"

    @property
    def model(self):
        """The NumPy model."""
        return found(self.golden)

    @property
    def parameter(self):
        """:attr:`parameters` as a dictionary."""
        return dict(self.parameters)

    @property
    def engines(self):
        """The names of the engines that have the mode."""
        return ("golden", "rtl") if self.format or self.streams else ("golden",)

    @property
    def deciding(self) -> dict:
        """The options that decide between the mode and its variants, and their defaults."""
        return {name: self.option(name).default for values, _ in self.variants for name in values}

    @property
    def choices(self):
        """Itself and those :attr:`variants` that values of options can select, which are what files can have: pairs as
        there."""
        ways = (({}, self), *self.variants)
        return tuple((values, one) for values, one in ways if self.variant(self.deciding | values) is one)

    def variant(self, given) -> "Mode":
        """The mode that does it for these values of options: itself, or one of the :attr:`variants`. Raises ValueError
        if none does."""
        defaults = self.deciding
        wanted = {name: given.get(name, default) for name, default in defaults.items()}
        for values, mode in (({}, self), *self.variants):
            if defaults | values == wanted:
                return mode
        raise ValueError(f"mode {self.name} has no " + " with ".join(f"{name} {value}" for name, value in
                                                                      wanted.items()))

    def written(self, given) -> tuple[Option, ...]:
        """The options that have a field of their own in a file, with these values of others: not those that the code
        tells."""
        return tuple(self.own(option.name, given) for option in self.options
                     if option.stored and option.name not in {"cdus", *self.deciding})

    def own(self, name, given) -> Option:
        """The option of that name as the variant for these values of others has it, whose class may be another."""
        return self.variant(given).option(name) or self.option(name)

    def option(self, name) -> Option | None:
        """The option of that name, or None."""
        return next((option for option in self.options if option.name == name), None)

    def settings(self, given) -> dict:
        """A value for each option: the ``given`` one, or its default where that is None. Raises ValueError for an
        option that the mode does not have, for a value that is not legal, for several that exclude each other, for
        values of which no variant has all, and for one that needs another value of another option; without that, such
        an option is None."""
        if wrong := [name for name in given if not self.option(name)]:
            names = ", ".join(option.name for option in self.options) or "none"
            raise ValueError(f"mode {self.name} has no option {wrong[0]}; its options: {names}")
        given = {name: value for name, value in given.items() if value is not None}
        if len(several := [name for name in self.exclusive if name in given]) > 1:
            raise ValueError(f"mode {self.name} takes one of {', '.join(self.exclusive)}, not {' and '.join(several)}")
        defaults = {option.name: option.default for option in self.options}
        values = defaults | (dict.fromkeys(self.exclusive) if several else {}) | given
        deciding = {name: self.option(name).check(values[name]) for name in self.deciding}
        values = {name: None if value is None else self.own(name, deciding).check(value)
                  for name, value in values.items()}
        for option in self.options:
            if option.needs and values[option.needs[0]] != option.needs[1]:
                if option.name in given:
                    raise ValueError(f"{option.name} is {values[option.name]}, which needs "
                                     f"{option.needs[0]} {option.needs[1]}")
                values[option.name] = None
        return values

    def optional(self, name) -> Callable | None:
        """One of the model's functions that not every model has, or None; a mode of benches may have no model."""
        return getattr(self.model, name, None) if self.golden else None
