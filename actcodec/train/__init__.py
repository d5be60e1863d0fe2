"""Does it still train: runs of networks on CIFAR-10, or of anybody's on anybody's data, a JSON file each, and the table
of many.

``networks.py`` has the networks, ``cifar10.py`` and ``data.py`` the batches, ``run.py`` what a run is, ``training.py``
how it goes, ``sweep.py`` what a TOML file asks for, ``table.py`` what came of it.
"""
