"""What software has of the accelerator besides Python's driver: its registers as data, and a driver in C."""
