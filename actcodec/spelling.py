"""What a word that is none of the legal ones may have meant."""

from collections.abc import Collection
from difflib import get_close_matches

__all__ = ["unknown"]


def unknown(what: str, word: str, legal: Collection[str]) -> str:
    """That there is no such ``what``, the nearest name, if one is near, and all of them."""
    near = get_close_matches(word, legal, 1)
    return f"no {what} {word!r}; {f'did you mean {near[0]}? ' if near else ''}there are {', '.join(legal)}"
