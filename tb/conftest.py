"""Says where the waveforms are."""

from tb import harness


def pytest_terminal_summary(terminalreporter):
    for path in harness.WAVEFORMS:
        terminalreporter.write_line(f"waveform: {path}")
