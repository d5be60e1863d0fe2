"""Netlists of a few cells, for the benches of what is placed."""

from actcodec.synth.netlist import Netlist

__all__ = ["chain", "module"]


def module(cells, inputs=(), outputs=()):
    """A module of Yosys's JSON: {cell: (kind, {pin: bit})}, where Z, ZN and Q are outputs; ports {name: bits}."""
    ports = {name: {"direction": way, "bits": bits} for way, group in (("input", inputs), ("output", outputs))
             for name, bits in dict(group).items()}
    return {"ports": ports, "netnames": {name: {"bits": port["bits"]} for name, port in ports.items()}, "cells": {
        name: {"type": kind, "connections": {pin: [bit] for pin, bit in pins.items()},
               "port_directions": {pin: "output" if pin in ("Z", "ZN", "Q", "QN") else "input" for pin in pins}}
        for name, (kind, pins) in cells.items()}}


def chain(count):
    """A flip-flop whose output ``count`` others take at the end of four buffers in a row."""
    cells = {"first": ("DFF_X1", {"CK": 2, "D": 3, "Q": 10})}
    for k in range(4):
        cells[f"b{k}"] = "BUF_X1", {"A": 10 + k, "Z": 11 + k}
    for k in range(count):
        cells[f"f{k}"] = "DFF_X1", {"CK": 2, "D": 10 + k % 5, "Q": 100 + k}
    return Netlist(module(cells, {"clk": [2], "i": [3]}, {"o": list(range(100, 100 + count))}))
