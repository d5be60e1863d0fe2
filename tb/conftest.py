"""Says where the waveforms are."""

from tb.harness.build import WAVEFORMS


def pytest_terminal_summary(terminalreporter):
    for path in WAVEFORMS:
        terminalreporter.write_line(f"waveform: {path}")
