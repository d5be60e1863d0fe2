"""Sizes of all cells at once, with their wires: Lagrangian relaxation.

Every end has a price of a ps, which rises while the end is late and falls while it has slack. Prices flow from the ends
backwards, at each gate to the inputs by how close these are to being the latest. A cell then takes the drive for which
its area and the delays that change with it, its own, those in front of it and the transitions behind it, cost least.
Half of the cells that want to change, do so at a time, as neighbours would overshoot together. In the end the few cells
change that make what is left late less so, and what has slack becomes weaker, as far as all ends stay in time.
"""

import numpy as np

__all__ = ["resize"]

NEAR = 15  # ps by which an input must be earlier for its price to fall by e
FOLLOW = 0.2  # ps of delay behind a cell for a ps of its output's transition
HURRY, PACE, STEP = 20, 100, 0.4  # a price rises, or falls, by e for so many ps, and by e to the power of 0.4 at most
COOL = 0.02  # by which prices and cells change less each round
LEAST, MOST, FIRST = 1e-5, 3, 0.01  # um2 for a ps
CLOSE = 10  # ps late
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
            with np.errstate(invalid="ignore"):
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
    outputs, cell = delays.outputs, delays.owner[delays.outputs]
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
    outputs, cells = delays.outputs, delays.owner[delays.outputs]
    while True:
        over = np.unique(cells[delays.own[cells] & (delays.load[outputs] > FULL * delays.limits[delays.kinds[cells]])])
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


def _spare(delays, tries, target, fixed):
    """While all ends are in time, the cells that have the most slack beyond what a weaker drive costs them get it, as
    many at a time as leaves the ends in time."""
    failed, part = np.zeros(len(delays.kinds), bool), 1.0
    outputs, cells = delays.outputs, delays.owner[delays.outputs]
    while tries > 0:
        kinds = _Choice(delays, -1).other
        able = (kinds >= 0) & ~fixed & ~failed
        kinds = np.where(able, kinds, delays.kinds)
        later, _ = delays.tables.look(delays.row(kinds), delays.slew[delays.source], delays.load[delays.target // 2])
        left = np.full(len(kinds), np.inf)
        np.minimum.at(left, delays.cell, delays.slack[delays.target] - target - (later - delays.delay))
        able[cells[delays.load[outputs] > FULL * delays.limits[kinds[cells]]]] = False
        order = np.flatnonzero(able & (left > 0))
        if not len(order):
            break
        order = order[np.argsort(-left[order])]
        size, was = max(int(part * len(order)), 1), delays.kinds.copy()
        while size:
            delays.kinds[order[:size]] = kinds[order[:size]]
            delays.time()
            tries -= 1
            if delays.worst() >= target:
                break
            delays.kinds = was.copy()
            size //= 2
        else:
            failed[order[0]] = True
            delays.time()
        part = min(2 * size / len(order), 1)


def resize(delays, rounds=40, target=0.0, seed=1):
    """Changes ``kinds`` of timed :class:`~actcodec.synth.delays.Delays` so that all ends have a slack of
    ``target`` ps for the least area, or else so that the worst one is as early as it gets. Returns whether it is."""
    fixed = np.array([name.startswith("CLKGATE") for name in delays.names])[delays.kinds] | ~delays.own
    strengthen(delays)
    close = 0 < target - delays.worst() < CLOSE
    if close:  # a relaxation would begin anew
        _polish(delays, 2 * rounds, target, fixed)
    if not close or delays.worst() < target:
        _relax(delays, rounds, target, fixed, np.random.default_rng(seed))
        _polish(delays, 2 * rounds, target, fixed)
    if delays.worst() >= target:
        _spare(delays, 2 * rounds, target, fixed)
    return delays.worst() >= target
