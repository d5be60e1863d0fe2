"""What the commands of this package show on a terminal besides tables: progress, and how it ended."""

import sys

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from actcodec.synth.library import SynthesisError

__all__ = ["Mapping", "close", "each", "progress"]


def progress(console):
    """Bars that vanish when the work is done."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=console, transient=True)


class Mapping:
    """Shows how far :func:`~actcodec.synth.catalogue.run` is: what is being mapped, and that the largest come last. On
    what is no terminal, a line for each unit that is done."""

    def __init__(self, console, bars, work):
        self.console, self.bars, self.left, self.now = console, bars, {job.label for job in work}, []
        self.large = [job.label for job in work if job.parts]
        self.task = bars.add_task("mapping to Nangate45", total=len(work))

    def begun(self, job):
        """A job has begun."""
        if job.label in self.large and self.left == set(self.large) and not set(self.now) & set(self.large):
            self.console.print(f"left: {', '.join(self.large)}; they are the largest, and take minutes each")
        self.now.append(job.label)
        self._show()

    def done(self, job, result):
        """A job is done; ``result`` is None if it failed."""
        self.now.remove(job.label)
        self.left.discard(job.label)
        if not self.console.is_terminal:
            how = f"{result[0].seconds:.0f} s{', remembered' if result[2] else ''}" if result else "failed"
            self.console.print(f"{job.label}: {how}", highlight=False, soft_wrap=True)
        self.bars.advance(self.task)
        self._show()

    def _show(self):
        self.bars.update(self.task, description=f"mapping to Nangate45: {', '.join(self.now)}")


def each(pool, bars, what, function, work, mapped):
    """What ``function(job, (figures, folder, cached))`` gives for each job that is mapped, or the error, in order; with
    a bar called ``what``."""
    task = bars.add_task(what, total=len(work))

    def one(job, result):
        try:
            if isinstance(result, Exception):
                raise result
            return function(job, result)
        except SynthesisError as error:
            return error
        finally:
            bars.advance(task)

    return list(pool.map(one, work, mapped))


def close(console, errors, advice=None):
    """Ends the command with status 1 if there were errors, which it prints, with advice."""
    for error in errors:
        console.print(f"error: {error}", style="red", markup=False, soft_wrap=True)
    if errors:
        if advice:
            console.print(advice)
        sys.exit(1)
