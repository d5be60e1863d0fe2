"""Runs a component's Verilog under cocotb, and drives its streams.

A bench is a file with two halves. Its pytest functions run outside of the simulator and call :func:`simulate`
(``build.py``), which builds the component, once for each content, and starts the simulator on that same file. Its
``@cocotb.test`` coroutines run inside and use :class:`Bench` (``bench.py``), which drives all of a component's streams
at once, by a library in C++ that speaks VPI (``native.py``, ``streams.cpp``); :class:`Source` and :class:`Sink` are its
model in Python (``streams.py``). ``payloads.py`` makes beats of arrays.

A run names its tests as objects (``selection.py``). For a ``@cocotb.test`` that no run of its file has, pytest fails.

Environment: ``SIM`` (verilator, icarus), ``SEED`` (replays a run), ``WAVES=1`` (leaves a waveform in the run's folder
under ``build/sim``), ``GATES=UNIT:FOLDER`` (puts the netlist of ``FOLDER`` in the place of that unit, and runs fewer
tests: see ``tb/netlist.py`` and ``synth/gates.py``), ``MUTANTS=UNIT:FOLDER`` (the same with a netlist of mutants, see
``synth/mutate.py``): ``MUTANT`` chooses one; else it is all that the file ``VERDICTS`` does not know yet.
"""

from tb.harness.bench import SEED, Bench, after, parameters, rng, target
from tb.harness.build import ROOT, simulate, synthesised
from tb.harness.payloads import beats, chunk, chunks, pack, sectors, unpack
from tb.harness.selection import regress
from tb.harness.streams import PATTERNS, STALLS, Sink, Source

__all__ = ["PATTERNS", "ROOT", "SEED", "STALLS", "Bench", "Sink", "Source", "after", "beats", "chunk", "chunks", "pack",
           "parameters", "regress", "rng", "sectors", "simulate", "synthesised", "target", "unpack"]
