"""Does it still train: runs of small ResNets on CIFAR-10, a JSON file each, and the table of many.

``cifar10.py`` has the pictures, ``run.py`` a run, ``sweep.py`` what a TOML file asks for, ``table.py`` what came of it.
"""
