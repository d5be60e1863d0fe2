"""What a word that is none of the legal ones may have meant."""

from collections.abc import Collection
from difflib import get_close_matches

__all__ = ["unknown"]


def unknown(what: str, word: str, legal: Collection[str]) -> str:
    """One line: that there is no such ``what``, and the nearest name, or all of them if none is near."""
    near = get_close_matches(word, legal, 1)
    help = f"did you mean {near[0]}?" if near else f"there are {', '.join(legal)}"
    return f"no {what} {word!r}; {help}"
