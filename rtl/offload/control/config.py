"""A tensor's configuration, what a CDU reports of it afterwards, and how compressed blocks reach it."""

from amaranth.hdl import Cat, Const
from amaranth.lib import data

from actcodec.rtl.common.onehot_shift import choose
from actcodec.rtl.offload.control import setting
from actcodec.rtl.offload.control.register_map import PAYLOADS
from actcodec.rtl.offload.memory.geometry import FAR, TILES
from actcodec.rtl.offload.wire.block_format import HALVES

__all__ = ["Chosen", "Error", "beyond", "check_blocks", "check_modes", "check_payload", "check_streams",
           "config_layout", "limited", "of_blocks", "of_streams", "rows_layout", "share", "with_halves"]

# Which part of a tensor a CDU has, for units that have to know where its blocks lie: every ``step``-th group of four
# blocks, from number ``group`` on. Rows of the tensor have ``sectors``, the last with ``tail`` values. ``phase`` of
# them are in front of the CDU's first, ``stride`` lie from one of its groups to its next one, both modulo ``sectors``;
# a group of tiles counts as four. ``void`` rows of its last block lie after the tensor's end, but for tiles.
share = data.StructLayout({"sectors": TILES, "tail": 4, "phase": FAR, "stride": FAR, "void": 3, "group": 3, "step": 4})


def check_payload(payload):
    """Raises ValueError unless ``payload`` is one of :data:`~actcodec.rtl.offload.control.register_map.PAYLOADS`."""
    if payload not in PAYLOADS:
        raise ValueError(f"payload must be one of {', '.join(PAYLOADS)}, not {payload!r}")


def check_modes(modes):
    """Raises ValueError unless ``modes`` are what a lane can have: a tuple of one or more objects with ``name``,
    ``code`` (0 to 63), ``format``, a :class:`~actcodec.rtl.offload.wire.block_format.BlockFormat`, and ``settings``, a
    tuple of :class:`~actcodec.rtl.offload.control.setting.Setting`, of different names and codes."""
    legal = isinstance(modes, tuple | list) and modes and all(hasattr(mode, "code") and mode.format for mode in modes)
    if not legal or len({mode.code for mode in modes} & set(range(64))) < len(modes):
        raise ValueError(f"modes must be one or more different modes of a lane, in a tuple, not {modes!r}")
    setting.check_settings(one for mode in modes for one in mode.settings)


def check_blocks(modes):
    """Raises ValueError unless ``modes`` are such of a lane whose payload is blocks."""
    check_modes(modes)
    if streams := [mode.name for mode in of_streams(modes)]:
        raise ValueError(f"modes must be such that have blocks, not {', '.join(streams)}")


def check_streams(modes):
    """Raises ValueError unless ``modes`` are such of a lane, and the payload of one or more is streams."""
    check_modes(modes)
    if not of_streams(modes):
        raise ValueError(f"modes must have one whose payload is a stream, not {', '.join(mode.name for mode in modes)}")


def of_blocks(modes):
    """Those whose payload is blocks."""
    return tuple(mode for mode in modes if not mode.format.endless)


def of_streams(modes):
    """Those whose payload has none."""
    return tuple(mode for mode in modes if mode.format.endless)


def with_halves(modes):
    """``modes``, and behind them those that do some of them with words of 16 bits."""
    check_modes(modes)
    return (*modes, *(mode.halves for mode in modes if mode.halves))


def config_layout(modes):
    """The configuration of a tensor, which a unit with ``modes`` takes before it starts."""
    settings = setting.width(modes)
    return data.StructLayout({
        "decompress": 1,
        "mode": max((len(modes) - 1).bit_length(), 1),  # its place among the unit's modes
        "layout": 2,  # tiles in a row of the tensor: 0 for one, 1 for two, 2 for more (only tiled modes look at it)
        "blocks": 32,  # of this tensor in this unit
        "signs": 1,  # no positive value becomes 0 (only SFPR looks at it, compressing)
        "table": data.ArrayLayout(3, 64),  # log2 of the DQT (only jpeg-act looks at it)
    } | ({"settings": settings} if settings else {})  # of which each mode has its own
      | ({"share": share} if any(mode.format.segmented for mode in modes) else {}))


def limited(modes):
    """Whether a setting of ``modes`` can be beyond its limits."""
    return any(one.limits for mode in modes for one in mode.settings)


def beyond(modes, config):
    """Whether a setting of the tensor's mode is beyond its limits; ``config`` has the layout of ``modes``."""
    settings, faults = dict.fromkeys(one for mode in modes for one in mode.settings if one.limits), []
    for one in settings:
        bits = config.settings[one.low :][: one.width]
        broken = [limit.broken(lambda low, width, bits=bits: bits[low:][:width])
                  & ~(config.decompress & limit.compressing) for limit in one.limits]
        faults.append(Cat(broken).any() & Chosen(modes, config.mode)(lambda mode, one=one: one in mode.settings))
    return Cat(faults).any()


class Error(data.Struct):
    """Why a tensor is not what it should be; stands until the next one starts."""

    # No block, no such mode, in a tiled mode layout 3 or an odd number of blocks in layout 1, no such row, a setting
    # beyond its limits.
    config: 1
    short: 1  # the byte stream ended early; zeros stand for what was missing
    excess: 1  # the byte stream went on after the last block; the rest was dropped
    malformed: 1  # a block contradicts itself (only counted ones can); it gave 64 values nevertheless


def rows_layout(size, halves=False):
    """Payload of a compressed block's rows: up to ``size`` bytes, with anything after them; of a block with a mask the
    row's part of it, of a counted block with the first row the first byte, of a block of halves the first half's byte
    with the first row and the other's with all others, of a block of segments whether the row begins with the byte of
    one, and otherwise nothing; ``last``; and, if some blocks with a mask or a first byte have ``halves``, with each row
    the bytes of both."""
    return data.StructLayout({"data": data.ArrayLayout(8, size), "mask": 8, "last": 1}
                             | ({"halves": 8 * HALVES} if halves else {}))


class Chosen:
    """Signals that tell the modes of a unit apart by ``mode``, the place among them."""

    def __init__(self, modes, mode):
        self._modes, self._mode = modes, mode

    def __call__(self, holds):
        """Whether the function ``holds`` is true of the mode."""
        places = [place for place, mode in enumerate(self._modes) if holds(mode)]
        if len(places) == len(self._modes):
            return Const(1, 1)
        return Cat(self._mode == place for place in places).any() if places else Const(0, 1)

    def choose(self, value):
        """The value, a Python or Amaranth number, that the function ``value`` has for the mode. What several modes have
        in common is chosen once."""
        groups = {}
        for mode in self._modes:
            groups.setdefault(_key(value(mode)), []).append(mode)
        return choose((self(lambda mode, some=some: mode in some), value(some[0])) for some in groups.values())


def _key(value):
    return value if isinstance(value, int) else id(value)
