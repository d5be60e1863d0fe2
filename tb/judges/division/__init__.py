"""DIVISION's golden model against outside references: PyTorch, SciPy, ml_dtypes, exact fractions, and plain loops."""
