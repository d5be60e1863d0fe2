"""Pictures: matplotlib without a screen, and files that appear in one piece."""

from pathlib import Path
from typing import Any

from actcodec.files import UserError, replacing

__all__ = ["form", "pyplot", "write"]

FORMS = ("png", "svg", "pdf")


def form(target: str | Path) -> str:
    """The form that a picture's name asks for; PNG if it has no ending. Raises :class:`~actcodec.files.UserError`."""
    suffix = Path(target).suffix[1:].lower() or FORMS[0]
    if suffix not in FORMS:
        raise UserError(f"{target}: not the name of a picture; use .png, .svg or .pdf")
    return suffix


def pyplot() -> Any:
    """``matplotlib.pyplot``, which then needs no screen."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def write(figure: Any, target: str | Path) -> None:
    """Writes a figure to ``target``, or leaves that as it was, and closes the figure. Raises as :func:`form` does."""
    try:
        with replacing(target) as file:
            figure.savefig(file, format=form(target))
    finally:
        pyplot().close(figure)
