"""The registers of the accelerator, as an AXI4-Lite slave."""

from itertools import groupby

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from rtl.jpegact.config import MODES, Mode
from rtl.jpegact.register_map import ADDRESS_BITS, BITS, VALUES

__all__ = ["Registers"]

OKAY, SLVERR = 0, 2
SHAPES = {"mode": Mode, "table": data.ArrayLayout(3, 64)}  # of values that are more than a number
ADDRESSES = ("base", "scales")


class Registers(wiring.Component):
    """What a host sees of the accelerator. The map is declared in register_map.py and documented in docs/registers.md.

    The five channels of AXI4-Lite are streams without ``prot``. A write address and its data may come in any order;
    both are taken together, one cycle after both are there. Writes while ``status.busy`` change nothing of ``control``,
    so that the accelerator needs no copy of it.

    Throughput: a write in three cycles and, independently, a read in two. Latency: from both halves of a write to its
    response 2 cycles, from a read's address to its data 1. Buffering: the two answers. Combinational paths: none
    between channels; all outputs come from registers but ``ar.ready``, which is the inverse of ``r.valid``.

    Source: issue of the accelerator; JPEG-ACT, section III-A, leaves the interface open.

    Parameters
    ----------
    cdus : int
        Number of CDUs, 1 to 8. Only told to the host.
    modes : tuple of str
        Names of the modes that were built in, at least one. Only told to the host.
    address_width : int
        Bits of an address in memory, 32 to 64; registers have no more.

    Ports
    -----
    aw, ar : stream of byte addresses
    w : stream of ``data`` (32 bits) and ``strb`` (4 bits)
    b : stream of responses
    r : stream of ``data`` (32 bits) and ``resp`` (2 bits)
    control : output, one member for each value that can be written and that the accelerator needs
        Stands still from ``start`` until ``status.busy`` falls.
    start, reset : output
        Pulses of one cycle. ``start`` comes only while ``status.busy`` is low.
    status : input, one member for each value that is read from the accelerator
        ``busy`` has to be high from the cycle after ``start`` or ``reset`` on, for as long as it takes. ``error``
        stands from ``done`` to the next ``start``.
    done : input
        Pulse: a tensor has ended, well or, with ``status.error``, badly. Not given after a soft reset.
    interrupt : output

    Raises
    ------
    ValueError
        If a parameter is out of range.
    """

    def __init__(self, cdus=1, modes=tuple(MODES), address_width=64):
        if cdus not in range(1, 9):
            raise ValueError(f"cdus must be 1 to 8, not {cdus!r}")
        if not isinstance(modes, tuple | list) or not modes or any(mode not in tuple(MODES) for mode in modes):
            raise ValueError(f"modes must be one or more of {', '.join(MODES)}, in a tuple, not {modes!r}")
        if address_width not in range(32, 65):
            raise ValueError(f"address_width must be 32 to 64, not {address_width!r}")
        self.fixed = {"cdus": cdus, "modes": sum(1 << MODES[mode].value for mode in set(modes)),
                      "address_width": address_width}
        widths = {name: address_width if name in ADDRESSES else info.width for name, info in VALUES.items()}
        super().__init__({
            "aw": In(stream.Signature(ADDRESS_BITS)),
            "w": In(stream.Signature(data.StructLayout({"data": 32, "strb": 4}))),
            "b": Out(stream.Signature(2)),
            "ar": In(stream.Signature(ADDRESS_BITS)),
            "r": Out(stream.Signature(data.StructLayout({"data": 32, "resp": 2}))),
            "control": Out(data.StructLayout({name: SHAPES.get(name, widths[name])
                                              for name, info in VALUES.items() if info.held})),
            "start": Out(1),
            "reset": Out(1),
            "status": In(data.StructLayout({name: widths[name] for name, info in VALUES.items()
                                            if info.access == "ro" and name != "done"})),
            "done": In(1),
            "interrupt": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        values = {}
        for name, info in VALUES.items():
            if info.access == "fixed":
                reset = self.fixed[name] if info.reset is None else info.reset
                values[name] = Const(reset, info.width)
            elif info.held:
                values[name] = Value.cast(self.control[name])
            elif name in self.status.shape().members:
                values[name] = self.status[name]
            elif info.access == "pulse":
                values[name] = Const(0, info.width)
            else:
                values[name] = Signal(info.width, init=info.reset, name=name)
        words = {address: list(pieces) for address, pieces in groupby(BITS, lambda bits: bits.address)}

        # ------------------------------------------------------------------------------------------------------ write
        take, written = Signal(), Signal()  # both halves are there; the address is one that can be written now
        strobes, address = self.w.payload.strb, self.aw.payload[2:]
        m.d.comb += [self.aw.ready.eq(take), self.w.ready.eq(take)]
        m.d.sync += [take.eq(self.aw.valid & self.w.valid & ~take & ~self.b.valid), self.start.eq(0), self.reset.eq(0)]
        with m.If(self.b.ready):
            m.d.sync += self.b.valid.eq(0)
        with m.Switch(address):
            for place, pieces in words.items():
                with m.Case(place >> 2):
                    held = any(VALUES[bits.name].held for bits in pieces)
                    m.d.comb += written.eq(~self.status.busy if held else 1)
        with m.If(take):
            m.d.sync += [self.b.valid.eq(1), self.b.payload.eq(0)]
            with m.If(~written):
                m.d.sync += self.b.payload.eq(SLVERR)
        for place, pieces in words.items():
            changes = [bits for bits in pieces if VALUES[bits.name].access in ("rw", "w1c", "pulse")]
            for lane in range(4):
                here = [bits for bits in changes if bits.low < 8 * lane + 8 and bits.low + bits.width > 8 * lane]
                if not here:
                    continue
                with m.If(take & written & (address == place >> 2) & strobes[lane]):
                    for bits in here:
                        self._write(m, values, bits, lane)

        # The end of a tensor comes after the writes, and so wins over them.
        done, pending = values["done"], (values["done_pending"], values["error_pending"])
        with m.If(self.start | self.reset):
            m.d.sync += done.eq(0)
        with m.If(self.done):
            m.d.sync += [done.eq(1), pending[0].eq(1)]
            with m.If(self.status.error != 0):
                m.d.sync += pending[1].eq(1)
        m.d.sync += self.interrupt.eq((Cat(pending) & Cat(values["done_enable"], values["error_enable"])).any())

        # ------------------------------------------------------------------------------------------------------- read
        m.d.comb += self.ar.ready.eq(~self.r.valid)
        with m.If(self.r.ready):
            m.d.sync += self.r.valid.eq(0)
        with m.If(self.ar.valid & self.ar.ready):
            m.d.sync += [self.r.valid.eq(1), self.r.payload.data.eq(0), self.r.payload.resp.eq(SLVERR)]
            with m.Switch(self.ar.payload[2:]):
                for place, pieces in words.items():
                    with m.Case(place >> 2):
                        m.d.sync += [self.r.payload.data.eq(self._word(values, pieces)), self.r.payload.resp.eq(OKAY)]
        return m

    def _write(self, m, values, bits, lane):
        """Writes what byte ``lane`` of the word has of ``bits``."""
        low, high = max(bits.low, 8 * lane), min(bits.low + bits.width, 8 * lane + 8)
        new = self.w.payload.data[low:high]
        start = bits.part + low - bits.low
        target = values[bits.name][start : start + high - low]
        access = VALUES[bits.name].access
        if bits.name == "start":
            # Both pulses are bits of the same byte.
            other = next(piece for piece in BITS if piece.name == "reset")
            m.d.sync += self.start.eq(new & ~self.w.payload.data[other.low] & ~self.status.busy)
        elif access == "pulse":
            m.d.sync += getattr(self, bits.name).eq(new)
        elif access == "w1c":
            m.d.sync += target.eq(target & ~new)
        else:
            m.d.sync += target.eq(new)  # of an address, there may be nothing here

    @staticmethod
    def _word(values, pieces):
        """The word that consists of ``pieces``, zeros between them."""
        parts, at = [], 0
        for bits in pieces:
            value = values[bits.name][bits.part : bits.part + bits.width]
            parts += [Const(0, bits.low - at), value]
            at = bits.low + len(value)
        return Cat(parts)
