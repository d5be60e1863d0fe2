"""What the commands of this package show on a terminal besides tables: progress, and how it ended."""

import sys

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

__all__ = ["close", "progress"]


def progress(console):
    """Bars that vanish when the work is done."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=console, transient=True)


def close(console, errors, advice=None):
    """Ends the command with status 1 if there were errors, which it prints, with advice."""
    for error in errors:
        console.print(f"error: {error}", style="red", markup=False, soft_wrap=True)
    if errors:
        if advice:
            console.print(advice)
        sys.exit(1)
