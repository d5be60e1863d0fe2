"""A SoC with the accelerator: LiteX, a VexRiscv, and firmware with the driver in C. ``make soc`` builds and runs it in
Verilator, docs/soc.md explains it."""
