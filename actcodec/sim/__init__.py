"""The hardware in simulation: from Verilog to a library, and engines that run it."""
