"""Golden by the names of a lane's modes, as the benches of JPEG-ACT's units use it, with tables of their own."""

import math
from dataclasses import dataclass, field

import numpy as np

from actcodec.codecs import effective, lane_modes
from actcodec.codecs.codec import scales
from actcodec.codecs.models.flat import Flat
from actcodec.golden.jpegact import div, nibble, quantize, rice, sfpr, steps
from actcodec.golden.jpegact.path import Planes, Zvc

BASE = "jpeg-base"
LANE = {mode.name: mode for mode in lane_modes()
        if not (mode.format.segmented or mode.format.halved or mode.format.endless)}
LEGAL = tuple(LANE)
TILED = tuple(name for name, mode in LANE.items() if mode.tiled)
SCALED = tuple(name for name, mode in LANE.items() if mode.scaled)
STEPPED = tuple(name for name, mode in LANE.items() if any(setting.name == "steps" for setting in mode.settings))
_coders = {name: mode.model.path.coder for name, mode in LANE.items()}
CODERS = {name: coder.code for name, coder in _coders.items() if isinstance(coder, Planes)}
ITEM = {name: coder.item for name, coder in _coders.items() if isinstance(coder, Zvc)}  # what ZVC counts
BLOCK_BYTES = {name: _coders[name].shortest for name, mode in LANE.items() if mode.format.kind == "fixed"}
TABLES = {name: coder.Table for name, coder in CODERS.items()} | {BASE: div.Table}
FLAT = tuple(name for name, mode in LANE.items() if isinstance(mode.model, Flat))
MODES = tuple(name for name in LANE if name not in (*CODERS, *STEPPED, BASE, *FLAT))
NAMES = {nibble: "nibble_table", rice: "rice_table"}


@dataclass(frozen=True, eq=False)
class Compressed:
    """A tensor as golden has compressed it; ``stored`` is what a lane's driver has."""

    mode: str
    shape: tuple[int, ...]
    payload: bytes = field(repr=False)
    scales: np.ndarray | None
    settings: dict
    cdus: int = 1

    @property
    def lane(self):
        return LANE[self.mode]

    @property
    def view(self):
        return self.lane.model.view(self.shape)

    @property
    def tiled(self):
        return self.lane.tiled

    @property
    def blocks(self):
        return self.view.blocks(self.tiled)

    @property
    def payload_bytes(self):
        return len(self.payload)

    @property
    def ratio(self):
        return 4 * math.prod(self.shape) / len(self.payload)

    @property
    def table(self):
        """Shifts, or quarters, uint8 [8, 8]; None with neither."""
        if "table" in self.settings:
            return quantize.of_word(self.settings["table"])
        return steps.of_word(self.settings["steps"]) if "steps" in self.settings else None

    @property
    def code(self):
        return code_of(self.mode, self.settings)


def of(stored):
    """A :class:`~actcodec.codecs.codec.LanePayload` as one of these."""
    c = stored
    return Compressed(c.mode.name, c.shape, c.payload, c.scales, c.settings, c.cdus)


def effective_mode(x, mode):
    """The mode that a tensor gets."""
    return effective(LANE[mode], x.shape).name


def compress(x, mode, dqt="optL", cdus=1, signs=False, code=None, dead_zone=0):
    """A float32 tensor as ``cdus`` CDUs compress it; ``code`` is a table for the mode's coder, in place of the best."""
    lane = effective(LANE[mode], x.shape)
    words, settings = lane.model.fit(x, signs, dqt=dqt, dead_zone=dead_zone)
    if code is not None:
        settings |= {NAMES[CODERS[lane.name]]: code.word}
    view = lane.model.view(x.shape)
    payload, _ = lane.model.encode(np.ascontiguousarray(x).reshape(view.rows, view.width), view, words, settings, cdus,
                                   signs)
    return Compressed(lane.name, x.shape, payload, scales(words), settings, cdus)


def decompress(c):
    """The tensor of a :class:`Compressed`."""
    words = None if c.scales is None else sfpr.reciprocal(c.scales).view(np.uint32)
    return c.lane.model.decode(c.payload, c.view, words, c.settings, c.cdus).reshape(c.shape)


def fit(x, mode, dqt="optL"):
    """The table of the coder of ``mode`` under which a tensor is smallest."""
    return compress(x, mode, dqt).code


def code_of(mode, settings):
    """The table of the coder, or of DIV; None without."""
    if mode == BASE:
        return div.Table.of(settings["divisors"])
    coder = CODERS.get(mode)
    return coder and coder.Table.of(settings[NAMES[coder]])


def block_sizes(mode, payload, blocks):
    """Bytes of each block, in the payload's order."""
    return _coders[mode].sizes(payload, blocks)


def sizes_of(c):
    """The same, of a :class:`Compressed`."""
    return block_sizes(c.mode, c.payload, c.blocks)
