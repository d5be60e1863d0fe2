"""Does it still train: runs of networks on CIFAR-10, or of anybody's on anybody's data, a JSON file each, and the table
of many.

``configuration.py`` says what a run is, ``networks.py`` has the networks, ``cifar10.py`` and ``data.py`` the batches,
``training.py`` trains, ``run.py`` keeps results, ``sweep.py`` reads a TOML file of many runs, ``table.py`` shows them.
"""
