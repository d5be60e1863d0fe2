"""Tests of the golden model against outside references: exact arithmetic, SciPy, ml_dtypes, Pillow, and plain loops."""
