"""Units in a second technology, sky130's high-density cells, to see how far areas and Fmax of the first one carry."""
