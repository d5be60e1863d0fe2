"""What both directions of DIVISION are told of a tensor."""

from amaranth.hdl import Cat, Const
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In

from actcodec.rtl.common.onehot_shift import choose

__all__ = ["BITS", "TILES", "Coded", "Config", "check_bits", "refused"]

BITS = (1, 2, 3, 4)  # that a code may have
TILES = 21  # bits of the number of sectors in a row


class Config(data.Struct):
    """A tensor, or one unit's share of it: one group of four blocks in every ``step``.

    Rows are those of the view: ``sectors`` of eight values each, the last with ``tail``. In the flat order, blocks are
    eight sectors in memory order and a group has 32 sectors; ``tiled``, they are 8x8 tiles, and a group is counted as
    four sectors, since it is as wide.
    """

    bits: 2  # of a code, less 1
    tiled: 1
    layout: 2  # tiles in a row of the tensor: 0 one, 1 two, 2 three or more; the flat order does not look at it
    sectors: TILES  # of a row: T
    tail: 4  # values of a row's last sector, 1 to 8
    blocks: 32  # of this unit
    void: 3  # rows of the last block that lie after the end of the tensor (flat only)
    phase: TILES  # sectors of its row in front of this unit's first one, below T
    stride: TILES  # sectors from one of this unit's groups to its next one, modulo T
    # From here on, only Encode looks.
    lfc: 1  # what is taken off the values of a segment is its mean; or 0
    minimum: 1  # it is the smallest of them, with lfc
    nearest: 1  # codes are rounded half up, not at random
    seed: 32
    group: 32  # number of this unit's first group, over the whole tensor
    step: 4  # units that share the tensor, 1 to 8


def check_bits(bits):
    """Raises ValueError unless ``bits`` is a tuple of one or more of 1 to 4."""
    if not isinstance(bits, tuple | list) or not bits or any(type(q) is not int or q not in BITS for q in bits):
        raise ValueError(f"bits must be one or more of 1, 2, 3 and 4, in a tuple, not {bits!r}")


class Coded(wiring.Component):
    """A unit with hardware for codes of some ``bits`` and none for others, the ``most`` of which are known here.

    Its ports are ``config``, a :class:`Config`, and those that the function ``ports`` gives for the most bits. Raises
    ValueError as :func:`check_bits`.
    """

    def __init__(self, bits, ports):
        check_bits(bits)
        self.bits, self.most = tuple(bits), max(bits)
        super().__init__({"config": In(Config)} | ports(self.most))

    def choose(self, value):
        """The value that the function ``value`` has for the bits of the tensor's codes."""
        one = len(self.bits) == 1
        return choose((Const(1, 1) if one else self.config.bits == q - 1, value(q)) for q in self.bits)


def refused(config, bits):
    """Whether there can be no such tensor: no block, T or tail 0 or out of range, codes that this unit lacks."""
    return Cat(config.blocks == 0, config.sectors == 0, config.tail == 0, config.tail > 8,
               ~Cat(config.bits == q - 1 for q in bits).any()).any()
