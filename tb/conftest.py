"""Spares the time of Python's collector; says where the waveforms are."""

import gc

from tb.harness import build

# Elaboration makes millions of objects that all live until it ends: half of its time went into looking for garbage.
gc.set_threshold(100_000, 20, 100)


def pytest_terminal_summary(terminalreporter):
    for path in build.WAVEFORMS:
        terminalreporter.write_line(f"waveform: {path}")
