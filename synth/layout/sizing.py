"""Sizes of all cells at once, with their wires: Lagrangian relaxation.

Every end has a price of a ps, which rises while the end is late and falls while it has slack. Prices flow from the ends
backwards, at each gate to the inputs by how close these are to being the latest. A cell then takes the drive for which
its area and the delays that change with it, its own, those in front of it and the transitions behind it, cost least.
Half of the cells that want to change, do so at a time, as neighbours would overshoot together.
"""

import numpy as np

__all__ = ["resize"]

NEAR = 15  # ps by which an input must be earlier for its price to fall by e
FOLLOW = 0.2  # ps of delay behind a cell for a ps of its output's transition
HURRY, PACE, STEP = 20, 100, 0.4  # a price rises, or falls, by e for so many ps, and by e to the power of 0.4 at most
COOL = 0.02  # by which prices and cells change less each round
LEAST, MOST, FIRST = 1e-5, 3, 0.01  # um2 for a ps
BATCH = 16  # cells that change at a time in the end
FULL = 0.98  # of what a cell may drive, as wires change when cells move


def _prices(delays, ends):
    """The price of each edge through a cell, and of each node, from those of the ends."""
    price = np.zeros(2 * len(delays.owner))
    for edge in (0, 1):
        pins = 2 * delays.ends + edge
        with np.errstate(invalid="ignore"):  # where nothing ever arrives
            earlier = np.nan_to_num(delays.slack[pins] - delays.slack[pins ^ 1])
        price[pins] = ends / (1 + np.exp(np.clip(earlier / NEAR, -40, 40)))
    edges = np.zeros(len(delays.source))

    def back(pins):
        for edge in (0, 1):
            np.add.at(price, 2 * delays.driver[pins] + edge, price[2 * pins + edge])

    back(delays.ends[delays.owner[delays.ends] < 0])
    back(delays.last)
    for part, starts, targets, inputs in reversed(delays.parts):
        if len(starts):
            behind = delays.arrival[delays.source[part]] + delays.delay[part] - delays.arrival[delays.target[part]]
            share = np.exp(np.maximum(np.nan_to_num(behind / NEAR, nan=-40), -40))
            whole = np.add.reduceat(share, starts)
            counts = np.diff([*starts, len(share)])
            edges[part] = share * np.repeat(price[targets] / whole, counts)
            np.add.at(price, delays.source[part], edges[part])
        back(inputs)
    return edges, price


class _Choice:
    """What each cell would cost with the drive that is ``step`` away in its family."""

    def __init__(self, delays, step):
        names, number = delays.names, delays.number
        other = []
        for kind in names:
            family = delays.tables.family[kind]
            k = family.index(kind) + step
            other.append(number[family[k]] if 0 <= k < len(family) else -1)
        self.other = np.array(other)[delays.kinds]


def _costs(delays, edges, price, slopes, step, fixed):
    """(kind, cost of the change) of each cell for one step in its family; a change that may not be costs infinity."""
    kinds = _Choice(delays, step).other
    able = (kinds >= 0) & ~fixed
    kinds = np.where(able, kinds, delays.kinds)
    cost = delays.areas[kinds] - delays.areas[delays.kinds]
    mine = able[delays.cell]
    rows = delays.row(kinds)[mine]
    target = delays.target[mine]
    delay, slew = delays.tables.look(rows, delays.slew[delays.source[mine]], delays.load[target // 2])
    worse = edges[mine] * (delay - delays.delay[mine] + FOLLOW * (slew - delays.transition[mine]))
    cost += np.bincount(delays.cell[mine], worse, len(cost))
    # What drives it has another load.
    sinks = delays.sinks
    more = delays.caps[kinds[delays.owner[sinks]], delays.slot[sinks]] - delays.cap[sinks]
    driver = delays.driver[sinks]
    cost += np.bincount(delays.owner[sinks], more * (slopes[2 * driver] + slopes[2 * driver + 1]), len(cost))
    source = delays.owner[driver]
    over = (more > 0) & (source >= 0) & (delays.load[driver] + more > FULL * delays.limits[delays.kinds[source]])
    able[delays.owner[sinks[over]]] = False
    outputs = np.unique(driver)
    outputs = outputs[delays.owner[outputs] >= 0]
    cell = delays.owner[outputs]
    over = (delays.load[outputs] > FULL * delays.limits[kinds[cell]]) & (
        delays.limits[kinds[cell]] < delays.limits[delays.kinds[cell]])
    able[cell[over]] = False
    return kinds, np.where(able, cost, np.inf)


def _slopes(delays, price, edges):
    """By node that drives: its price times the ps that a fF more costs there."""
    rows, load = delays.row(), delays.load[delays.target // 2]
    slew = delays.slew[delays.source]
    more, later = delays.tables.look(rows, slew, load + 1)
    slopes = np.zeros(len(price))
    np.add.at(slopes, delays.target, edges * (more - delays.delay + FOLLOW * (later - delays.transition)))
    for edge, place in delays.port_edges.items():  # ports have a driver that stays
        ones = np.full(len(delays.begins), delays.port_row + place)
        none = np.zeros(len(ones))
        load = delays.load[delays.begins]
        change = delays.tables.look(ones, none, load + 1)[0] - delays.tables.look(ones, none, load)[0]
        slopes[2 * delays.begins + edge] = price[2 * delays.begins + edge] * change
    return slopes


def strengthen(delays):
    """Gives cells whose loads have become too large the drive for them. Returns how many have none that suffices."""
    while True:
        outputs = np.unique(delays.driver[delays.driver >= 0])
        outputs = outputs[delays.owner[outputs] >= 0]
        cells = delays.owner[outputs]
        over = np.unique(cells[delays.load[outputs] > FULL * delays.limits[delays.kinds[cells]]])
        kinds = _Choice(delays, 1).other[over]
        if not (kinds >= 0).any():
            return len(over)
        delays.kinds[over[kinds >= 0]] = kinds[kinds >= 0]
        delays.time()


def _options(delays, ends, fixed):
    """(kind, cost) of the better of two steps for each cell, at these prices of the ends."""
    edges, price = _prices(delays, ends)
    slopes = _slopes(delays, price, edges)
    (weaker, less), (stronger, more) = (_costs(delays, edges, price, slopes, step, fixed) for step in (-1, 1))
    return np.where(less < more, weaker, stronger), np.minimum(less, more)


def _relax(delays, rounds, target, fixed, random):
    """The relaxation; leaves the best sizes that it has come by."""
    ends, best = np.full(len(delays.ends), FIRST), None
    for k in range(rounds + 1):
        worst = delays.worst() - target
        now = (worst >= 0, -delays.area() if worst >= 0 else worst)
        if best is None or now > best[0]:
            best = now, delays.kinds.copy()
        if k == rounds:
            break
        cool = 1 / (1 + COOL * k)
        late = target - delays.end_slack
        ends *= np.exp(cool * np.clip(np.where(late > 0, late / HURRY, late / PACE), -STEP, STEP))
        ends = np.clip(ends, LEAST, MOST)
        kinds, cost = _options(delays, ends, fixed)
        change = (cost < -1e-3) & (random.random(len(cost)) < max(0.5 * cool, 0.1))
        delays.kinds = np.where(change, kinds, delays.kinds)
        delays.time()
        strengthen(delays)
    delays.kinds = best[1]
    delays.time()


def _polish(delays, tries, target, fixed):
    """What is left late has a price, and nothing else: the cells that promise most change, as many at a time as makes
    all ends together less late."""
    def late():
        return float(np.minimum(delays.end_slack - target, 0).sum())

    failed, batch = np.zeros(len(delays.kinds), bool), BATCH
    while tries > 0 and late() < 0:
        ends = np.where(delays.end_slack < target, 1.0, LEAST)
        kinds, cost = _options(delays, ends, fixed | failed)
        best = np.argsort(cost)[:batch]
        best = best[cost[best] < -1e-2]
        if not len(best):
            break
        while len(best):
            before, was, tries = late(), delays.kinds.copy(), tries - 1
            delays.kinds[best] = kinds[best]
            delays.time()
            strengthen(delays)
            if late() > before:
                break
            delays.kinds = was
            delays.time()
            failed[best] |= len(best) == 1
            best = best[: len(best) // 2]
        batch = min(max(2 * len(best), 1), BATCH)


def resize(delays, rounds=40, target=0.0, seed=1):
    """Changes ``kinds`` of timed :class:`~actcodec.synth.layout.delays.Delays` so that all ends have a slack of
    ``target`` ps for the least area, or else so that the worst one is as early as it gets. Returns whether it is."""
    fixed = np.array([name.startswith("CLKGATE") for name in delays.names])[delays.kinds]
    strengthen(delays)
    _relax(delays, rounds, target, fixed, np.random.default_rng(seed))
    _polish(delays, 2 * rounds, target, fixed)
    return delays.worst() >= target
