"""RTL of DIVISION (Wang et al., ICML 2023): the mean of each block beside codes of 1 to 4 bits for the rest."""
