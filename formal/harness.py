"""What surrounds a unit while something is proved of it.

A harness is a module with the unit (or two copies of it) inside, free inputs, assumptions about them, and properties.
Every register starts with any value; in the first cycle, reset holds; from the second on, all that is asked for has to
hold in every cycle, as long as the assumptions have.
"""

import re
from functools import cached_property

from amaranth.back import rtlil
from amaranth.hdl import Cat, ClockDomain, ClockSignal, Const, Instance, Module, Mux, ResetSignal, Signal, Value
from amaranth.lib.wiring import In

__all__ = ["MUTANTS", "Harness"]

MUTANTS = 8  # bits of the number of a broken copy


class Harness:
    """A module under construction, ``m``, whose registers belong into the domain ``sync``.

    Parameters
    ----------
    component : wiring.Component
    text : str
        What stands for it if that is not its RTLIL: a module ``unit``, perhaps with more ports.
    """

    def __init__(self, component, text=None):
        self.component = component
        self.text = text or rtlil.convert(component, name="unit", emit_src=False)
        self.m = m = Module()
        self.checks = {}  # property -> conditions
        # Where half of the faults are: what decides on valid and ready.
        self.near = "unit/o:*valid unit/o:*ready %u %ci8"
        self._free, self._assumptions, self._driven, self._joint = [], [], set(), []
        m.domains.sync, m.domains.always = sync, always = ClockDomain("sync"), ClockDomain("always", reset_less=True)
        self._clk = Signal(name="clk")
        self.started = Signal(name="started")  # init stands in the text of the module alone: see formal/engine.py
        m.d.comb += [sync.clk.eq(self._clk), always.clk.eq(self._clk), sync.rst.eq(~self.started)]
        m.d.always += self.started.eq(1)
        self.rigid(MUTANTS, "mutant")  # which fault the unit has, 0 for none: faults listen to the signal of this name

    def unit(self, name="unit", **pins):
        """A copy of the unit: an interface object with its ports. Inputs that are not driven by :meth:`drive` are
        free. ``pins`` are those besides the component's."""
        ports = self.component.signature.create(path=(name,))
        for path, member, value in self.component.signature.flatten(ports):
            value = Value.cast(value)
            if len(value):
                pins[("i_" if member.flow is In else "o_") + "__".join(map(str, path))] = value
                if member.flow is In:
                    self._free.append(value)
        for pin, signal in (("clk", ClockSignal()), ("rst", ResetSignal())):
            if re.search(rf"^  wire .*input.* \\{pin}$", self.text, re.M):
                pins[f"i_{pin}"] = signal
        self.m.submodules[name] = Instance("unit", **pins)
        return ports

    def drive(self, port, value):
        """Connects an input of the unit."""
        port = Value.cast(port)
        self._driven.add(id(port))
        self.m.d.comb += port.eq(value)

    def free(self, shape, name):
        """A signal that may have any value in any cycle."""
        signal = Signal(shape, name=name)
        self._free.append(Value.cast(signal))
        return signal

    def rigid(self, shape, name):
        """A signal that may have any value, but always the same."""
        signal, chosen, kept = (Value.cast(Signal(shape, name=one)) for one in (name, f"{name}_chosen", f"{name}_kept"))
        self._free.append(chosen)
        self.m.d.comb += signal.eq(Mux(self.started, kept, chosen))
        self.m.d.always += kept.eq(signal)
        return signal

    def past(self, value, init=0, name=None):
        """What ``value`` was in the cycle before, ``init`` in the first."""
        register = Signal(Value.cast(value).shape(), init=init, name=name or "past")
        self.m.d.sync += register.eq(value)
        return register

    def stuck(self, moved, willing, patience):
        """Willing cycles since something has ``moved``; beyond ``patience`` it counts no further than one."""
        stuck = Signal(range(patience + 2), name="stuck")
        with self.m.If(moved):
            self.m.d.sync += stuck.eq(0)
        with self.m.Elif(willing & (stuck <= patience)):
            self.m.d.sync += stuck.eq(stuck + 1)
        return stuck

    def assume(self, condition):
        """Whatever happens once this did not hold does not count."""
        self._assumptions.append(condition)

    def check(self, name, condition):
        """This has to hold in every cycle. Conditions of the same name are one property."""
        self.checks.setdefault(name, []).append(condition)

    def jointly(self, name, condition):
        """The same, but it has to hold only if all such conditions have held in every cycle before. As none can be the
        first to fail, they are proved together, and each may need the others."""
        if not self._joint:
            self._held = Signal(init=1, name="held")
        self._joint.append(Value.cast(condition).any())
        self.check(name, ~self._held | self._joint[-1])

    @cached_property
    def top(self):
        """The module ``top`` as RTLIL, once everything is asked for; outputs ``bad_0`` and so on are the properties, in
        the order of ``checks``."""
        m = self.m
        if self._joint:
            m.d.sync += self._held.eq(self._held & Cat(self._joint).all())
        fine, was_fine = Signal(), Signal(init=1)
        m.d.comb += fine.eq(self.started & was_fine & Cat(*self._assumptions, Const(1, 1)).all())
        m.d.sync += was_fine.eq(fine)
        outputs = []
        for k, (name, conditions) in enumerate(self.checks.items()):
            bad, holds = Signal(name=f"bad_{k}"), Signal(name=f"holds {name}".replace(" ", "_"))
            m.d.comb += [holds.eq(Cat(Value.cast(one).any() for one in conditions).all()), bad.eq(fine & ~holds)]
            outputs.append(bad)
        inputs = [signal for signal in self._free if id(signal) not in self._driven]
        return rtlil.convert(m, name="top", ports=[self._clk, *inputs, *outputs], emit_src=False)
