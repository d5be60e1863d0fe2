"""Inverters at flip-flops go, and nothing else."""

import pytest

from actcodec.synth.complement import READERS, complement


def cell(kind, **pins):
    outputs = ("Q", "QN", "ZN")
    return {"type": kind, "connections": {pin: [bit] for pin, bit in pins.items()},
            "port_directions": {pin: "output" if pin in outputs else "input" for pin in pins}}


def changed(cells, outputs=()):
    """{cell: (kind, pins)} of the module afterwards, without the pins that nothing is bound to."""
    module = {"cells": cells, "ports": {"o": {"direction": "output", "bits": list(outputs)}}}
    removed = complement(module)
    left = {name: (one["type"], {pin: bits[0] for pin, bits in one["connections"].items() if bits})
            for name, one in module["cells"].items()}
    assert len(left) == len(cells)  # of which the removed ones are gone
    return removed, left


def test_an_inverter_behind_is_the_other_output():
    removed, left = changed({"flop": cell("DFF_X1", D=2, Q=3), "inverter": cell("INV_X1", A=3, ZN=4),
                             "gate": cell("NAND2_X1", A1=3, A2=4, ZN=5)}, [5])
    assert removed == 1
    assert left["flop"] == ("DFF_X1", {"D": 2, "Q": 3, "QN": 4}) and left["gate"][1] == {"A1": 3, "A2": 4, "ZN": 5}


def test_several_inverters_behind_share_it():
    removed, left = changed({"flop": cell("DFF_X1", D=2, Q=3), "one": cell("INV_X1", A=3, ZN=4),
                             "other": cell("INV_X2", A=3, ZN=5), "gate": cell("NAND2_X1", A1=4, A2=5, ZN=6)}, [6])
    assert removed == 2 and left["gate"][1] == {"A1": 4, "A2": 4, "ZN": 6}


def test_in_front_the_complement_is_kept():
    removed, left = changed({"inverter": cell("INV_X1", A=2, ZN=3), "flop": cell("DFF_X1", D=3, Q=4),
                             "copy": cell("DFF_X1", D=3, QN=5)}, [4, 5])
    assert removed == 1
    assert left == {"flop": ("DFF_X1", {"D": 2, "QN": 4}), "copy": ("DFF_X1", {"D": 2, "Q": 5})}


@pytest.mark.parametrize(("positive", "negative"), [("AND2", "NAND2"), ("OR4", "NOR4")])
def test_in_front_a_gate_leaves_its_inverter_out(positive, negative):
    removed, left = changed({"gate": cell(f"{positive}_X2", A1=2, A2=3, ZN=4), "flop": cell("DFF_X1", D=4, Q=5)}, [5])
    assert removed == 0
    assert left == {"gate": (f"{negative}_X2", {"A1": 2, "A2": 3, "ZN": 4}), "flop": ("DFF_X1", {"D": 4, "QN": 5})}


@pytest.mark.parametrize("reason", ["a port", "another reader", "too many readers"])
def test_an_inverter_that_is_needed_stays(reason):
    cells = {"flop": cell("DFF_X1", D=2, Q=3), "behind": cell("INV_X1", A=3, ZN=4),
             "front": cell("INV_X1", A=5, ZN=6), "next": cell("DFF_X1", D=6, Q=7)}
    if reason == "another reader":
        cells = {"front": cells["front"], "next": cells["next"], "gate": cell("NAND2_X1", A1=6, A2=7, ZN=8)}
    if reason == "too many readers":
        cells = {"flop": cells["flop"], "behind": cells["behind"]} | {
            f"gate{k}": cell("NAND2_X1", A1=3, A2=4, ZN=10 + k) for k in range(READERS + 1)}
    before = {name: (one["type"], {pin: bits[0] for pin, bits in one["connections"].items()})
              for name, one in cells.items()}
    assert changed(cells, [4, 6] if reason == "a port" else [8]) == (0, before)
