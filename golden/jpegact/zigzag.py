"""The order in which JPEG reads a block (ITU-T T.81, figure A.6)."""

import numpy as np

_row, _column = np.divmod(np.arange(64), 8)
_diagonal = _row + _column
ZIGZAG = np.lexsort((np.where(_diagonal % 2, _row, _column), _diagonal))  # 8 * row + column of each place
