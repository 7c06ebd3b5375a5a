"""Where nodes stand when a graph is drawn as text: layers from the top to the bottom, few crossings, straight lines.

The layered method of Sugiyama, Tagawa and Toda (1981) in its simplest form: edges that close a cycle are turned round,
layers are longest paths, long edges pass through a point in each layer, order within a layer is the barycenter's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

SWEEPS = 6
APART = 3
"""Columns between two boxes."""

Link = tuple[str, str, bool, bool]
"""Upper end, lower end, conditional, and whether it points upwards."""


@dataclass
class Layout:
    """Layers of names, the middle column of each, and the links between one layer and the next."""

    layers: list[list[str]]
    middle: dict[str, int] = field(default_factory=dict)
    links: list[Link] = field(default_factory=list)


def lay_out(widths: Mapping[str, int], edges: Sequence[tuple[str, str, bool]]) -> Layout:
    """Return where the nodes, given by name and width, stand. `edges` are (source, target, conditional), no loops.

    Names that are not in `widths` are points that a long line passes through.
    """
    downward = _without_cycles(list(widths), edges)
    rank = _ranks(list(widths), downward)
    layout = Layout([[] for _ in range(max(rank.values(), default=0) + 1)])
    for name in widths:
        layout.layers[rank[name]].append(name)
    for number, (upper, lower, conditional, turned) in enumerate(downward):
        at = upper
        for layer in range(rank[upper] + 1, rank[lower]):
            point = f":{number}:{layer}"  # no node has a name with a colon at its front
            layout.layers[layer].append(point)
            layout.links.append((at, point, conditional, turned))
            at = point
        layout.links.append((at, lower, conditional, turned))
    _order(layout)
    _place(layout, widths)
    return layout


def _without_cycles(names: list[str], edges: Sequence[tuple[str, str, bool]]) -> list[Link]:
    """Return the edges with those turned round that lead back to where a walk from the first node came from."""
    after: dict[str, list[str]] = {name: [] for name in names}
    for source, target, _ in edges:
        after[source].append(target)
    done: set[str] = set()
    back: set[tuple[str, str]] = set()
    for root in names:
        walk = [(root, iter(after[root]))] if root not in done else []
        on_path = {root}
        while walk:
            name, following = walk[-1]
            onward = next(following, None)
            if onward is None:
                walk.pop()
                on_path.discard(name)
                done.add(name)
            elif onward in on_path:
                back.add((name, onward))
            elif onward not in done:
                on_path.add(onward)
                walk.append((onward, iter(after[onward])))
    return [(t, s, c, True) if (s, t) in back else (s, t, c, False) for s, t, c in edges]


def _ranks(names: list[str], downward: Sequence[Link]) -> dict[str, int]:
    """Return the layer of each node: one below the lowest node that leads to it."""
    rank = dict.fromkeys(names, 0)
    waiting = dict.fromkeys(names, 0)
    for _, lower, _, _ in downward:
        waiting[lower] += 1
    ready = [name for name in names if not waiting[name]]
    while ready:
        name = ready.pop(0)
        for upper, lower, _, _ in downward:
            if upper == name:
                rank[lower] = max(rank[lower], rank[name] + 1)
                waiting[lower] -= 1
                if not waiting[lower]:
                    ready.append(lower)
    return rank


def _order(layout: Layout) -> None:
    above: dict[str, list[str]] = {}
    below: dict[str, list[str]] = {}
    for upper, lower, _, _ in layout.links:
        below.setdefault(upper, []).append(lower)
        above.setdefault(lower, []).append(upper)
    for sweep in range(SWEEPS):
        layers, neighbours = (layout.layers, above) if sweep % 2 == 0 else (layout.layers[::-1], below)
        for fixed, free in pairwise(layers):
            place = {name: i for i, name in enumerate(fixed)}

            def barycenter(entry: tuple[int, str], place: dict[str, int] = place) -> float:
                found = [place[other] for other in neighbours.get(entry[1], ()) if other in place]  # noqa: B023
                return sum(found) / len(found) if found else entry[0]

            free[:] = [name for _, name in sorted(enumerate(free), key=barycenter)]


def _place(layout: Layout, widths: Mapping[str, int]) -> None:
    """Give each name its middle column: under the mean of what leads to it where there is room."""
    half = {name: widths.get(name, 1) // 2 for layer in layout.layers for name in layer}
    above: dict[str, list[str]] = {}
    for upper, lower, _, _ in layout.links:
        above.setdefault(lower, []).append(upper)
    middle = layout.middle
    for layer in layout.layers:
        wanted = []
        for name in layer:
            over = [middle[other] for other in above.get(name, ())]
            wanted.append(sum(over) // len(over) if over else 0)
        offsets = [0]
        for left, right in pairwise(layer):
            offsets.append(offsets[-1] + half[left] + half[right] + 1 + APART)
        shift = sum(want - at for want, at in zip(wanted, offsets, strict=True)) // len(layer)
        for name, at in zip(layer, offsets, strict=True):
            middle[name] = at + shift
        _pull(layer, wanted, half, middle)
    leftmost = min((middle[name] - half[name] for layer in layout.layers for name in layer), default=0)
    for name in middle:
        middle[name] -= leftmost


def _pull(layer: list[str], wanted: list[int], half: Mapping[str, int], middle: dict[str, int]) -> None:
    """Move each name of a packed layer outwards to the column it wants, as far as its neighbours leave room."""
    for i in range(len(layer)):
        if wanted[i] < middle[layer[i]]:
            low = middle[layer[i - 1]] + half[layer[i - 1]] + half[layer[i]] + 1 + APART if i else wanted[i]
            middle[layer[i]] = max(wanted[i], low)
    for i in reversed(range(len(layer))):
        if wanted[i] > middle[layer[i]]:
            last = i == len(layer) - 1
            high = wanted[i] if last else middle[layer[i + 1]] - half[layer[i + 1]] - half[layer[i]] - 1 - APART
            middle[layer[i]] = min(wanted[i], max(high, middle[layer[i]]))
