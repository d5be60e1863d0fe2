"""Golden model of COMET's codec (Jin, Zhang, Jiang, Feng, Guan, Li, Song, Tao, VLDB 2022): prequantisation, Lorenzo
prediction, Huffman coding in eight interleaved sub-streams, and the control of the error bound."""
