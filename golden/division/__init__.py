"""Golden model of DIVISION (Wang et al., ICML 2023): the mean of each block beside codes of 1 to 4 bits for the rest.

LFC and HFC are the paper's low and high frequency parts: an average over a block, and what is left without it. A plane
is one channel of one sample. Everything behind SFPR is integer: y = rne(x * k), and a step of the quantizer is 2^F of
y's units, where F = 6 - bits.
"""
