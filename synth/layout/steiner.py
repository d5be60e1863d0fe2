"""Rectilinear Steiner trees: a minimal tree of the points by Prim, then a new point wherever a node and two of its
neighbours have their median elsewhere."""

import numpy as np

__all__ = ["tree"]


def _spanning(points):
    """The edges of a minimal spanning tree; from point 0."""
    places = np.array(points, np.int64)
    apart = np.abs(places - places[0]).sum(1)
    source, left, edges = np.zeros(len(points), np.int64), np.ones(len(points), bool), []
    left[0] = False
    for _ in range(len(points) - 1):
        new = int(np.where(left, apart, np.iinfo(np.int64).max).argmin())
        left[new] = False
        edges.append((int(source[new]), new))
        closer = np.abs(places - places[new]).sum(1)
        better = closer < apart
        apart[better], source[better] = closer[better], new
    return edges


def tree(points):
    """A tree over points, (x, y) each, the first of which is its root: ``(points, parents)``, the given points first,
    the root's parent -1."""
    if len(points) == 2:
        return points, [-1, 0]
    points, near = list(points), [set() for _ in points]
    for one, other in _spanning(points):
        near[one].add(other)
        near[other].add(one)
    work = list(range(len(points)))
    while work:
        at = work.pop()
        x, y = points[at]
        best, around = (0,), sorted(near[at])
        for k, one in enumerate(around):
            for other in around[:k]:
                (x1, y1), (x2, y2) = points[one], points[other]
                low, high = max(min(x, x1), min(max(x, x1), x2)), max(min(y, y1), min(max(y, y1), y2))
                saved = abs(low - x) + abs(high - y)  # both edges share this
                if saved > best[0]:
                    best = saved, one, other, (low, high)
        if len(best) > 1:
            _, one, other, middle = best
            new = len(points)
            points.append(middle)
            near.append({at, one, other})
            for end in (one, other):
                near[at].discard(end)
                near[end].discard(at)
                near[end].add(new)
            near[at].add(new)
            work += [at, new]
    parents, order = [-1] * len(points), [0]
    for at in order:
        for end in near[at]:
            if end != parents[at]:
                parents[end] = at
                order.append(end)
    return points, parents
