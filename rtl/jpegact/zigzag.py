"""The order in which JPEG reads a block: from low frequencies to high ones, diagonal by diagonal."""

__all__ = ["ZIGZAG", "diagonal"]


def diagonal(place):
    """Number of the diagonal on which the ``place`` in zigzag order lies, 0 to 14."""
    row, column = ZIGZAG[place]
    return row + column


def _path():
    row = column = 0
    while (row, column) != (7, 7):
        yield row, column
        step = 1 if (row + column) % 2 else -1  # odd diagonals go down and to the left
        if 0 <= row + step < 8 and 0 <= column - step < 8:
            row, column = row + step, column - step
        elif step == 1:  # along the edge to the next diagonal
            row, column = (row + 1, column) if row < 7 else (row, column + 1)
        else:
            row, column = (row, column + 1) if column < 7 else (row + 1, column)
    yield row, column


ZIGZAG = tuple(_path())
"""(row, column) of each place, the row being the vertical frequency (T.81, Figure A.6)."""
