"""Synthesis: every unit mapped to Nangate45 standard cells, and its area beside the paper's."""
