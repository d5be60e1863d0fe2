"""JPEG-ACT: one file for each box of the accelerator's figures."""
