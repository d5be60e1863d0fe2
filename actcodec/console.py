"""The terminal."""

from rich import console

__all__ = ["Console"]


class Console(console.Console):
    """rich's, except that a reader who closes the output early is no failure."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError
