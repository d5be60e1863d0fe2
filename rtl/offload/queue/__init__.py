"""A ring of descriptors in memory, run one after the other, while the next one is read and planned."""
