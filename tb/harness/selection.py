"""Which of a file's cocotb tests a run has; and what a test of pytest's would run, without running it."""

import sys
from random import Random

import pytest
from cocotb.regression import TestGenerator

PORTS = {"idle", "stall", "pause", "slow", "order"}  # parameters of cocotb tests that say how ports behave


class Selection(Exception):
    """A component and the cocotb tests to be run on it: what :func:`ask` ends a test of pytest's with."""


_asking = False


def tests_of(module):
    """The cocotb tests that a module has, of its own or imported."""
    return [one for one in vars(module).values() if isinstance(one, TestGenerator)]


def select(component, module, tests=None, without=()):
    """Those of a module's cocotb tests that a run of ``component`` has, see :func:`simulate`.

    Raises
    ------
    ValueError
        For a test that the module does not have.
    """
    known = tests_of(sys.modules[module])
    for one in (*(tests or ()), *without):
        if one not in known:
            raise ValueError(f"{module} has no cocotb test {one}")
    chosen = [one for one in known if (tests is None or one in tests) and one not in without]
    if _asking:
        raise Selection(component, chosen)
    return chosen


def ask(item):
    """The component and the cocotb tests that a test of pytest's simulates, without doing so; None if it does not."""
    global _asking
    if "simulate" not in item.obj.__code__.co_names:
        return None
    _asking = True
    try:
        item.obj(**(item.callspec.params if hasattr(item, "callspec") else {}))
    except Selection as selection:
        return selection.args
    finally:
        _asking = False
    return None


class Unused(pytest.Item):
    """A cocotb test that no run has: fails."""

    def runtest(self):
        pytest.fail(f"no run of {self.parent.nodeid} has the cocotb test {self.name}", pytrace=False)

    def reportinfo(self):
        return self.path, None, self.name


def unused(items):
    """An item for each cocotb test that none of ``items`` runs, all those of their files, though the file has it or has
    imported others from where it is."""
    runs = {}
    for item in items:
        runs.setdefault(item.getparent(pytest.Module), []).append(item)
    for file, its in runs.items():
        known = tests_of(file.obj)
        known += [one for module in {one.module for one in known} for one in tests_of(sys.modules[module])]
        try:
            used = {one for selection in map(ask, its) if selection for one in selection[1]}
        except (Exception, pytest.fail.Exception):
            continue  # which shows when it is run
        for one in dict.fromkeys(known):
            if one not in used:
                yield Unused.from_parent(file, name=one.name)


def brief(config):
    """Whether pytest runs the share of ``make sim``, which chooses where ``make regress`` multiplies."""
    return "not regress" in config.option.markexpr


def part(random, values, share, many=0):
    """One in ``share`` of values, rounded up, by chance and in their order; all, if there are no more than ``many``."""
    values = list(values)
    if len(values) <= many:
        return values
    return [values[k] for k in sorted(random.permutation(len(values))[: -(-len(values) // share)])]


def elsewhere(items, share):
    """Of the tests that ``make sim`` leaves to ``make regress``, those that are not in a ``share`` K/N, which has every
    N-th of their files. Raises ``pytest.UsageError`` for anything else than a share."""
    try:
        number, count = map(int, share.split("/"))
    except ValueError:
        number = count = 0
    if not 1 <= number <= count:
        raise pytest.UsageError(f"PART={share}: must be K/N, with K from 1 to N")
    more = [item for item in items if item.get_closest_marker("regress")]
    files = sorted({item.path for item in more})[number - 1 :: count]
    return [item for item in more if item.path not in files]


def covering(tests, seed):
    """Of tests that differ in how ports pause, as few as give each port each of its patterns; the seed decides which
    patterns meet. All other tests."""
    cover, groups = [], {}
    for test in tests:
        ports = {name: value for name, value in test.kwargs.items() if name in PORTS}
        others = tuple((name, repr(value)) for name, value in test.kwargs.items() if name not in PORTS)
        groups.setdefault((test.name.partition("/")[0], others), []).append((test, ports))
    for group in groups.values():
        patterns = {name: list(dict.fromkeys(ports[name] for _, ports in group)) for name in group[0][1]}
        random = Random(seed)
        ways = [random.sample(values, len(values)) for values in patterns.values()]
        combinations = {tuple(way[k % len(way)] for way in ways) for k in range(max(map(len, ways), default=1))}
        cover += [test for test, ports in group if tuple(ports.values()) in combinations]
    return cover


def regress(*values):
    """Parameters of a test of pytest's that ``make sim`` leaves to ``make regress``: values, or tuples of several."""
    return [pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.regress)
            for value in values]
