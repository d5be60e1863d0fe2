"""Does it still train? Trains networks on CIFAR-10, or your own network on your own data; each run is a JSON file, and
a table compares them.

``configuration.py`` defines a run, ``networks.py`` has the networks, ``cifar10.py`` and ``data.py`` the batches,
``training.py`` trains, ``run.py`` keeps results, ``sweep.py`` reads a TOML file of many runs, ``table.py`` shows them.
"""
