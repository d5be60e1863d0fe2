"""The terminal."""

from rich import console

__all__ = ["Console"]


class Console(console.Console):
    """rich's, but for a reader that has had enough, which is no failure."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError
