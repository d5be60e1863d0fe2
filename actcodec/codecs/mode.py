"""What the registry knows of a mode. Data alone: what takes long to import is named, and found when it is needed."""

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module

from actcodec.codecs.option import Option
from actcodec.rtl.offload.block_format import BlockFormat

__all__ = ["LANE", "Mode", "Option", "Streams", "found"]

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

    ``golden`` names the NumPy model, a module or an object with two functions and, where they are needed, some more:

    ================================ ==================================================================================
    ``compress(x, mode, **options)`` the :class:`~actcodec.codecs.compressed.Compressed` of a float32 array of 2 or 4
                                     dimensions, C order, in this :class:`Mode`, with a value for each of its options
    ``decompress(compressed)``       the float32 array
    ``side_bytes(shape, mode,``      bytes of side information, if there is any; of the options it gets those that a
    ``**options)``                   file keeps
    ``check(compressed)``            raises ValueError if payload, side information and shape contradict each other
    ``saturated(x, compressed)``     how many values were beyond what the mode can express
    ``facts(compressed)``            what else ``actcodec info`` shows of a file, a dictionary
    ``size(shape, mode, **options)`` bytes of payload and side information, or None unless the shape alone decides
    ``beside(network, graph,``       what ``actcodec mfr`` shows beside it: pairs of a name, and bytes in all or of each
    ``minibatch, **options)``        category of ``golden/common/footprint.py``
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
    # The software's.
    summary: str = _software("")  # half a sentence
    tensors: str = _software("")  # what it is for: "dense activations (conv, sum)"
    source: str = _software("")  # paper and section
    lossy: bool = _software(False)
    options: tuple[Option, ...] = _software()
    exclusive: tuple[str, ...] = _software()  # options of which one counts: the one given, or else the defaults
    golden: str | object = _software("")
    parameters: tuple[tuple[str, object], ...] = _software()  # of the model, fixed for this mode
    streams: Streams | None = field(default=None, repr=False, compare=False, kw_only=True)  # if there is no lane
    fallback: str = _software("")  # the mode of tensors that have no tiles
    shown: tuple[tuple[str, dict], ...] = _software()  # in the demo: for "dense" or "ReLU" tensors, with these options

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

    def option(self, name) -> Option | None:
        """The option of that name, or None."""
        return next((option for option in self.options if option.name == name), None)

    def settings(self, given) -> dict:
        """A value for each option: the ``given`` one, or its default where that is None. Raises ValueError for an
        option that the mode does not have, for a value that is not legal, and for several that exclude each other."""
        if wrong := [name for name in given if not self.option(name)]:
            names = ", ".join(option.name for option in self.options) or "none"
            raise ValueError(f"mode {self.name} has no option {wrong[0]}; its options: {names}")
        given = {name: value for name, value in given.items() if value is not None}
        if len(several := [name for name in self.exclusive if name in given]) > 1:
            raise ValueError(f"mode {self.name} takes one of {', '.join(self.exclusive)}, not {' and '.join(several)}")
        defaults = {option.name: option.default for option in self.options}
        values = defaults | (dict.fromkeys(self.exclusive) if several else {}) | given
        return {option.name: None if values[option.name] is None else option.check(values[option.name])
                for option in self.options}

    def optional(self, name) -> Callable | None:
        """One of the model's functions that not every model has."""
        return getattr(self.model, name, None)
