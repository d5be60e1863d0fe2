"""Says where the waveforms are, and chooses the tests of a netlist."""

import os

from tb.harness import build

OTHERS = []  # tests that do not concern the netlist


def pytest_collection_modifyitems(config, items):
    """On a netlist (``GATES``, ``MUTANTS``) only tests that concern it are run; pytest says how many are not."""
    if not (os.environ.get("GATES") or os.environ.get("MUTANTS")):
        return
    from tb import netlist

    chosen = {item: netlist.concerns(item) for item in items}
    others = [item for item in items if not chosen[item]]
    OTHERS.extend(item.name for item in others)
    config.hook.pytest_deselected(items=others)
    items[:] = [item for item in items if chosen[item]]


def pytest_terminal_summary(terminalreporter):
    for path in build.WAVEFORMS:
        terminalreporter.write_line(f"waveform: {path}")
    if OTHERS:
        terminalreporter.write_line(f"not run, {len(OTHERS)} without the netlist's unit or with other parameters: "
                                    f"{', '.join(OTHERS)}")
