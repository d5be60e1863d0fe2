"""COMET: a codec with an error bound that holds for every value."""
