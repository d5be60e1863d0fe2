"""Synthesis: every unit in Nangate45 cells and on an FPGA, its area, timing and power beside the paper's."""
