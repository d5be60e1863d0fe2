"""Books, symbols and tables for the benches of the coders."""

import numpy as np

from actcodec.golden.comet.book import Book
from tb.comet.test_book import EDGES, some, tables

__all__ = ["KINDS", "books", "stream", "tables"]

KINDS = ("coded", "short", "wide", "outliers", "any", "seldom")


def books(random, count):
    """The extreme books, and some random ones."""
    return [Book(counts) for counts in EDGES + [some(random) for _ in range(count)]]


def stream(random, book, rounds, kind):
    """Symbols, outlier flags and words (float32 bits) of a stream of whole rounds."""
    size = 8 * rounds
    coded, short = random.integers(0, book.U, size), random.integers(book.U, min(book.U + 224, 4096), size)
    wide, spread = random.integers(min(book.U + 224, 4095), 4096, size), random.integers(0, 4096, size)
    shares = {"coded": (1, 0, 0, 0), "short": (0.5, 0.5, 0, 0), "wide": (0.5, 0.2, 0.3, 0),
              "outliers": (0.2, 0.1, 0.1, 0.6), "any": (0.4, 0.2, 0.2, 0.2), "seldom": (0.97, 0.01, 0.01, 0.01)}[kind]
    which = random.choice(4, size, p=shares)
    u = np.choose(which, [coded, short, wide, spread])
    return u, which == 3, random.integers(0, 1 << 32, size, dtype=np.uint32).view(np.float32)
