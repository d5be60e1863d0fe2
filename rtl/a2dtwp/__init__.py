"""A2DTWP: weights packed to fewer bytes."""
