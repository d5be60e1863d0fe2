"""The accelerator on a real memory controller: LiteDRAM, with a model of DDR3 behind it."""
