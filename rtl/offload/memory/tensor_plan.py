"""The plan of a tensor: from its description to what each CDU has to know."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from actcodec.rtl.common.adders import digitwise, halves
from actcodec.rtl.offload.memory.first_groups import FirstGroups
from actcodec.rtl.offload.memory.geometry import (
    ROW_BITS,
    SIZE,
    check_address_width,
    distance_layout,
    geometry_layout,
    of_size,
)
from actcodec.rtl.offload.memory.shares import BLOCKS, Shares, last
from actcodec.rtl.offload.wire.round_robin import check_cdus

__all__ = ["TensorPlan", "descriptor_layout"]

DIGITS = 32  # steps of everything that is done bit by bit


def descriptor_layout(address_width, whole=False, halves=False, codes=False):
    """A tensor in memory: ``rows`` of ``width`` values of 4 bytes, or 2 if ``half``, or 1 if ``byte``, ``stride`` bytes
    from row to row, the first value at ``base``; ``height`` consecutive rows have one scale, then the next of
    ``channels`` is used, in turn, from the table at ``scales`` if ``scaled``. ``tiled``: blocks are 8x8 tiles.
    ``whole``: and each lies in one channel and has eight rows."""
    return data.StructLayout({"base": address_width, "rows": 32, "width": 32, "stride": 32, "height": 32,
                              "channels": 32, "scales": address_width, "tiled": 1, "scaled": 1}
                             | ({"whole": 1} if whole else {}) | ({"half": 1} if halves else {})
                             | ({"byte": 1} if codes else {}))


class TensorPlan(wiring.Component):
    """Works out what the CDUs need of a tensor, and whether there can be such a tensor.

    Without multiplying or dividing: products and the quotient come bit by bit, both products from one adder, and
    :class:`~actcodec.rtl.offload.memory.first_groups.FirstGroups` counts where the CDUs begin.

    Throughput: one tensor at a time. Latency: 73 cycles, or, if that is more, 4 and 33 for each CDU; where groups
    go on in the next row of tiles, 13 and 5 for each CDU and 8 for each row of tiles that ends in their first groups.
    3 for a description that makes no sense at first sight. Combinational paths: none.

    Source: JPEG-ACT, section III-C; section III-G for the order of groups.

    Parameters
    ----------
    cdus : int
        Lanes, 1 to 8.
    address_width : int
        Bits of a byte address, 32 to 64.
    ends : bool
        There are ``void`` and ``ending``, and ``descriptor.whole``.
    halves, codes : bool
        There are ``descriptor.half`` and ``geometry.half``; ``descriptor.byte`` and ``geometry.byte``.

    Ports
    -----
    start : input
        Pulse, not before ``done`` of the tensor before. ``descriptor`` stands from then on, to the next one.
    descriptor : input, :func:`descriptor_layout`
    done : output
        Pulse: from here on the other outputs mean something, until the next start.
    error : output
        There is no such tensor: a number that is zero or too large (rows of 31 bits, the others of 24, blocks of 32,
        the width in whole sectors and the blocks in whole groups), an address or stride that is no multiple of a
        value's size, a stride shorter than a row, tiles in less than 8 rows or columns, whole tiles in rows or a height
        that are no multiple of 8, scales at no multiple of 32, or an end beyond the address space, of the tensor or of
        the last 32 bytes of scales. Then the other outputs mean nothing.
    blocks : output
        All of them.
    layout : output
        As in :func:`~actcodec.rtl.offload.control.config.config_layout`.
    geometry : output, :func:`~actcodec.rtl.offload.memory.geometry.geometry_layout`
    shares : ``cdus`` outputs of 32 bits
        Blocks of each CDU.
    origin : output, :func:`~actcodec.rtl.offload.memory.geometry.distance_layout`
        From the tensor's first sector to a CDU's, in the cycle in which that one's bit of ``load`` is set; comes before
        ``done``, also to CDUs without a block.
    load : output, ``cdus`` bits
        Pulses.
    void : output, 3 bits
        Sectors that the last block lacks if blocks are eight sectors in memory's order.
    ending : output, ``cdus`` bits
        The CDU that has the last block.

    Raises
    ------
    ValueError
        If ``cdus`` or ``address_width`` is out of range.
    """

    def __init__(self, cdus=4, address_width=40, ends=False, halves=False, codes=False):
        check_cdus(cdus)
        check_address_width(address_width)
        self.cdus, self.address_width, self.ends = cdus, address_width, bool(ends)
        self.halves, self.codes = bool(halves), bool(codes)
        super().__init__({
            "start": In(1), "descriptor": In(descriptor_layout(address_width, ends, halves, codes)), "done": Out(1),
            "error": Out(1),
            "blocks": Out(BLOCKS), "layout": Out(2), "geometry": Out(geometry_layout(address_width, halves, codes)),
            "shares": Out(BLOCKS).array(cdus), "origin": Out(distance_layout(address_width)), "load": Out(cdus),
            **({"void": Out(3), "ending": Out(cdus)} if ends else {})})

    def elaborate(self, platform):
        m = Module()
        tensor, geometry = self.descriptor, self.geometry
        width = tensor.width[:SIZE]
        # The descriptor stands, so that these carries have a cycle for each half.
        tiles, last_tile = (halves(m, width, Const(addend, SIZE))[3:] for addend in (7, -1))
        bands = halves(m, tensor.rows, Const(7, 32))[3:]  # rows of tiles
        odd = [tensor.base[:2], tensor.stride[:2]]
        size = of_size(tensor, width << 2, width << 1, width)  # bytes of a row
        if self.halves:
            odd = [value[0] | (value[1] & ~tensor.half) for value in (tensor.base, tensor.stride)]
            m.d.comb += geometry.half.eq(tensor.half)
        if self.codes:
            odd = [Cat(odd).any() & ~tensor.byte]
            m.d.comb += geometry.byte.eq(tensor.byte)
        few = Signal(4)  # tiles, if the width is below 64
        checked = Signal()
        m.d.comb += [
            few.eq((width[:6] + 7) >> 3),
            geometry.base.eq(tensor.base), geometry.rows.eq(tensor.rows), geometry.tiles.eq(tiles),
            geometry.top.eq(halves(m, tensor.channels[:SIZE], Const(-1, SIZE))),
            geometry.stride.eq(tensor.stride), geometry.height.eq(tensor.height),
            self.layout.eq(Mux(tiles == 1, 0, Mux(tiles == 2, 1, 2))),
        ]
        m.d.sync += [
            geometry.tail.eq(((width - 1) & 7) + 1),
            geometry.raster.eq(~tensor.tiled | (~width[6:].any() & ((few == 1) | (few == 2) | (few == 4)))),
            checked.eq(Cat(
                *(tensor[name] == 0 for name in ("rows", "width", "height", "channels")),
                *(tensor[name][SIZE:].any() for name in ("height", "channels")), tensor.width[SIZE:].any(),
                tensor.width[3:SIZE].all() & tensor.width[:3].any(),
                tensor.rows[ROW_BITS:], *odd, tensor.stride < size,
                tensor.tiled & ((tensor.width[3:] == 0) | (tensor.rows[3:] == 0)),
                tensor.scaled & tensor.scales[:5].any(),
                *([tensor.whole & (tensor.rows[:3] | tensor.height[:3]).any()] if self.ends else [])).any()),
        ]
        m.submodules.first_groups = first_groups = FirstGroups(self.cdus, self.address_width)
        m.d.comb += [
            first_groups.raster.eq(geometry.raster), first_groups.top.eq(geometry.top),
            first_groups.stride.eq(tensor.stride), first_groups.height.eq(tensor.height),
            first_groups.last_tile.eq(last_tile),
            geometry.group.eq(first_groups.group), geometry.unit.eq(first_groups.unit),
            self.origin.eq(first_groups.origin), self.load.eq(first_groups.load),
        ]

        # ------------------------------------------------------------------------------ how many blocks, and how large
        # A product is what has been added up, over what is left of the first factor.
        product, step, ending = Signal(2 * DIGITS), Signal(range(DIGITS)), Signal()  # ending: of the tensor's end
        total, factor = Signal(DIGITS + 1), Signal(DIGITS)
        end = product[: self.address_width]
        blocks, large = Signal(BLOCKS), Signal()
        rest, quotient = Signal(range(2 * self.cdus)), Signal(BLOCKS - 2)  # over what is left of the groups
        partial, fits, missing = Signal(range(2 * self.cdus)), Signal(), Signal(2)
        m.d.comb += [
            total.eq(product[DIGITS:] + Mux(product[0], factor, 0)),
            self.blocks.eq(blocks),
            missing.eq(-blocks),  # of the last group
            partial.eq(Cat(quotient[-1], rest)),
            fits.eq(partial >= self.cdus),
        ]
        # Groups, the last one among them, which may not be whole. Blocks stand long before they are asked for.
        groups = digitwise(m, blocks[2:], missing != 0, BLOCKS // 2 - 1)
        m.submodules.shares = shares = Shares(self.cdus)
        m.d.comb += [shares.blocks.eq(blocks), shares.quotient.eq(quotient), shares.rest.eq(rest)]
        m.d.comb += [mine.eq(share) for mine, share in zip(self.shares, shares.shares, strict=True)]
        if self.ends:
            owner = last(rest, self.cdus)
            m.d.comb += self.void.eq(-(tensor.rows[:3] * tiles[:3]))
            m.d.comb += [self.ending[c].eq(owner == c) for c in range(self.cdus)]
        # The end of the tensor's last row but for its width, and then the end of that: each sum has two cycles.
        late, beyond = Signal(), Signal()
        addend = Signal(self.address_width)
        m.d.comb += addend.eq(Mux(late, size, tensor.base))
        further = digitwise(m, end, addend, -(-self.address_width // 2))
        # The last 32 bytes of scales begin in the address space, or else behind it: only the carry is wanted, and late.
        wraps = Signal()
        m.d.sync += wraps.eq((tensor.scales[5 : SIZE + 2] + geometry.top[3:])[-1])

        with m.FSM():
            with m.State("idle"), m.If(self.start):
                m.next = "view"
            with m.State("view"):
                m.next = "check"
            with m.State("check"):
                m.d.sync += [step.eq(0), ending.eq(0), large.eq(0), late.eq(0), beyond.eq(0), self.error.eq(checked),
                             # Sectors fill up their last block.
                             factor.eq(tiles), product.eq(Mux(tensor.tiled, bands, Cat(tensor.rows, Const(7, DIGITS))))]
                m.d.comb += first_groups.start.eq(~checked)
                m.next = "multiply"
                with m.If(checked):
                    m.next = "end"
            with m.State("multiply"):
                m.d.sync += [step.eq(step + 1), product.eq(Cat(product[1:DIGITS], total))]
                with m.If(ending):
                    with m.If(step == 1):
                        m.d.sync += [quotient.eq(groups), rest.eq(0),
                                     large.eq(large | (blocks[2:].all() & (missing != 0)))]
                    with m.Elif(step != 0):
                        m.d.sync += [rest.eq(Mux(fits, partial - self.cdus, partial)),
                                     quotient.eq(Cat(fits, quotient))]
                with m.If(step == DIGITS - 1):
                    m.next = "blocks"
                    with m.If(ending):
                        m.next = "low"
            with m.State("blocks"):
                m.d.sync += [
                    blocks.eq(Mux(tensor.tiled, product, product[3:])),
                    large.eq(Mux(tensor.tiled, product[BLOCKS:], product[BLOCKS + 3 :]).any()),
                    product.eq(tensor.rows - 1), factor.eq(tensor.stride), ending.eq(1),
                ]
                m.next = "multiply"
            with m.State("low"):
                m.d.sync += large.eq(large | (~late & product[self.address_width :].any()))
                m.next = "high"
            with m.State("high"):
                # What begins beyond ends beyond; what ends there may just touch it.
                m.d.sync += [end.eq(further), beyond.eq(further[-1]), late.eq(1)]
                m.d.sync += large.eq(large | beyond)
                m.next = "low"
                with m.If(late):
                    m.next = "judge"
            with m.State("judge"):
                m.d.sync += self.error.eq(large | (beyond & end.any())
                                          | (tensor.scaled & wraps & tensor.scales[SIZE + 2 :].all()))
                m.next = "end"
            with m.State("end"), m.If(first_groups.idle):
                m.d.comb += self.done.eq(1)
                m.next = "idle"
        return m
