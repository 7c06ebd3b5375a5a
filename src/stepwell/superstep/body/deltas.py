"""When a channel is stored as what was written to it, and what then stands in the body.

A chain is a value that is stored whole, the snapshot, and the deltas that follow it. Every 16th delta takes over what
the 15 before it hold, every 256th what the 255 before it hold, and so on: it has their writes beside its own, and the
chain goes on from it without them. So each write stands in a few rows, and a chain of n deltas has 15 rows for each
digit that n has to the base of 16. Writes that are light are put together; those that stand apart are referred to.

A snapshot is written where that makes reading cheaper: when the chain weighs twice what the value does. That is looked
at whenever the chain has grown to four times what the value weighed last, and never for a rule by which the value keeps
all that was written.

The rule kept: the live value after a commit is folded from what was stored and decoded again, as a reader folds it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

from stepwell.codec import Codec, is_scalar, joined
from stepwell.errors import UnserializableValueError
from stepwell.graph.deltas import DeltaRule
from stepwell.graph.types import MISSING
from stepwell.plan.tables import Plan
from stepwell.superstep import blobs
from stepwell.superstep.blobs import BlobRef
from stepwell.superstep.body.channels import DELTA, SNAPSHOT, Part, Stored, runs_of
from stepwell.superstep.body.values import blame
from stepwell.superstep.outcome import Succeeded
from stepwell.superstep.state import State, Task


class Limits(NamedTuple):
    """How long chains may get."""

    links: int = 16
    """So many deltas are taken over by the last of them. What is stored is read whatever it was then."""
    outweigh: int = 4
    """How many times the value's bytes its chain may have before the value is looked at again."""
    unwritten: int = 256
    """Writes that are remembered while no row is written."""


LIMITS = Limits()


class Link(NamedTuple):
    """A delta of a chain."""

    seq: int
    level: int
    """How often its number is divisible by `LIMITS.links`."""
    parts: list[Part]
    """What it took over, which its body holds."""
    own: list[Part]
    """The writes of its superstep, which come after that."""


class Chain(NamedTuple):
    """A channel's value as the rows hold it, where deltas may follow."""

    rule: str
    number: int
    """Deltas since the snapshot."""
    weight: int
    """Bytes of the snapshot and of all writes since; 0 by a rule that keeps them all."""
    due: int
    """Beyond this weight the value is looked at."""
    snapshot: int
    """The seq of the row that holds the value whole."""
    links: tuple[Link, ...] = ()
    """The deltas that the next one names, the newest first."""

    def shelved(self, shelve: Callable[[bytes], BlobRef]) -> Chain:
        """Return the chain with references to what stands apart by now of what its last delta took over."""
        if not self.links or not self.links[0].parts:
            return self
        last, *others = self.links
        parts = [_shelved(part, shelve) for part in last.parts]
        return self._replace(links=(last._replace(parts=parts), *others))


def _shelved(part: Part, shelve: Callable[[bytes], BlobRef]) -> Part:
    if type(part) is list:
        return [_shelved(part[0], shelve)]
    return shelve(part) if type(part) is bytes and len(part) > blobs.ABOVE else part


class Unwritten(NamedTuple):
    """What was written to a channel since a row last held its value, where no row is written for each superstep."""

    value: Any
    """What that row holds; MISSING where no delta can follow it."""
    writes: list[Any]


class Ground(NamedTuple):
    """What the deltas of a checkpoint stand on."""

    before: Mapping[str, Any]
    """The values before its superstep."""
    chains: Mapping[str, Chain]
    unwritten: Mapping[str, Unwritten] = {}


class Grown(NamedTuple):
    """A channel's entry, the live value that reading it gives, and the chain that it belongs to."""

    entry: tuple[int, Any]
    value: Any
    chain: Chain
    refers: bool = False
    """Whether references stand in the entry."""


def level_of(number: int) -> int:
    """Return how often the number of a delta is divisible by `LIMITS.links`."""
    level = 0
    while number and number % LIMITS.links == 0:
        number //= LIMITS.links
        level += 1
    return level


def rows_since_last_taking_over(number: int) -> int:
    """Return how many of the rows that the delta of this number names took over no others, and are the first."""
    return 0 if level_of(number) else (number - 1) % LIMITS.links


def due_behind(weight: int) -> int:
    """Return beyond which weight of its chain a value of this weight is looked at."""
    return weight * LIMITS.outweigh


def grow(
    codec: Codec,
    plan: Plan,
    state: State,
    seq: int,
    stored: Sequence[Any],
    outcomes: Sequence[tuple[Task, Succeeded, int | None]],
    holds: Mapping[str, int],
    ground: Ground,
) -> dict[str, Grown]:
    """Return the channels with a rule that were written since the row before, also by supersteps without a row."""
    written = _written(codec, plan, stored, outcomes)
    grown: dict[str, Grown] = {}
    for key, rule in plan.deltas.items():
        if key in holds or key not in state.values or not (key in written or key in ground.unwritten):
            continue
        writes = written.get(key, ())
        found = _delta(codec, rule, key, seq, writes, state, ground) if not _renamed(plan, key, outcomes) else None
        grown[key] = found if found is not None else _snapshot(codec, rule, key, seq, state)
    return grown


def _written(
    codec: Codec, plan: Plan, stored: Sequence[Any], outcomes: Sequence[tuple[Task, Succeeded, int | None]]
) -> dict[str, list[tuple[Any, bytes]]]:
    """Return what the outcomes wrote to channels with a rule, in their order: each value, and its bytes."""
    found: dict[str, list[tuple[Any, bytes]]] = {}
    for (task, outcome, record_seq), parts in zip(outcomes, stored, strict=True):
        for j, (key, value) in enumerate(outcome.writes):
            if key not in plan.deltas:
                continue
            data = parts[3][j][1] if record_seq is None else _dumps(codec, value, key, (task.node,))
            found.setdefault(key, []).append((value, data))
    return found


def _renamed(plan: Plan, key: str, outcomes: Sequence[tuple[Task, Succeeded, int | None]]) -> bool:
    """Tell whether a record may hold writes of the channel under another name."""
    names = plan.changed.channels
    return bool(names) and key in names.values() and any(record_seq is not None for *_, record_seq in outcomes)


def _delta(
    codec: Codec,
    rule: DeltaRule,
    key: str,
    seq: int,
    writes: Sequence[tuple[Any, bytes]],
    state: State,
    ground: Ground,
) -> Grown | None:
    """Return the channel as a delta, unless storing it whole is better or these writes do not fit its rule."""
    chain = ground.chains.get(key)
    if chain is None or chain.rule != rule.name or chain.number >= rule.most:
        return None
    value, earlier = ground.unwritten.get(key) or (ground.before.get(key, MISSING), [])
    if not rule.fits(value, [*earlier, *(write for write, _ in writes)]):
        return None
    apart = [_dumps(codec, write, key, ()) for write in earlier]
    datas = [*apart, *(data for _, data in writes)]
    weight = due = 0
    if not rule.keeps:
        weight, due = chain.weight + sum(map(len, datas)), chain.due
        if weight > due:
            whole = len(_dumps(codec, state.values[key], key, state.writers))
            if 2 * whole <= weight:
                return None
            due = due_behind(whole)
    following, taken = _following(chain, seq, apart, [data for _, data in writes], weight, due)
    rows = [*(link.seq for link in following.links[1:]), chain.snapshot]
    live = rule.fold(value, [codec.loads(data, key) for data in datas])
    entry = _trimmed(following.number, runs_of(seq, rows), taken, weight, due)
    return Grown((DELTA, entry), live, following, any(map(_refers, taken)))


def _following(
    chain: Chain, seq: int, apart: list[Part], writes: list[Part], weight: int, due: int
) -> tuple[Chain, list[Part]]:
    """Return the chain with one more delta, and what that has beside its own writes."""
    number = chain.number + 1
    level = level_of(number)
    over = list(takewhile(lambda link: link.level < level, chain.links)) if level else []
    taken = gathered([*(part for link in reversed(over) for part in (*link.parts, *link.own)), *apart])
    links = (Link(seq, level, taken, writes), *chain.links[len(over) :])
    return Chain(chain.rule, number, weight, due, chain.snapshot, links), taken


def _trimmed(number: int, runs: list[int], parts: list[Part], weight: int, due: int) -> tuple[Any, ...]:
    if due:
        return number, runs, parts, weight, due
    return (number, runs, parts) if parts else (number, runs)


def gathered(parts: Sequence[Part]) -> list[Part]:
    """Return parts with those that are light put together: what would stand apart by itself stays as it is."""
    made: list[Part] = []
    light: list[Part] = []
    for part in parts:
        if _is_light(part[0] if type(part) is list else part):
            light.append(part)
        else:
            made += _together(light)
            made.append(part)
            light = []
    return made + _together(light)


def _together(light: list[Part]) -> list[Part]:
    return light if len(light) < 2 else [[joined(light)]]


def _is_light(data: Stored) -> bool:
    return type(data) is bytes and len(data) <= blobs.ABOVE


def _refers(part: Part) -> bool:
    return type(part[0] if type(part) is list else part) is BlobRef


def _snapshot(codec: Codec, rule: DeltaRule, key: str, seq: int, state: State) -> Grown:
    value = state.values[key]
    data = _dumps(codec, value, key, state.writers)
    live = value if is_scalar(value) else codec.loads(data, key)
    chain = begun(rule.name, len(data), seq)
    return Grown((SNAPSHOT, (rule.name, len(data), data)), live, chain)


def begun(rule: str, weight: int, seq: int) -> Chain:
    """Return the chain that begins with a value of this weight in the row at `seq`."""
    return Chain(rule, 0, weight, due_behind(weight), seq)


def _dumps(codec: Codec, value: Any, key: str, nodes: Sequence[str]) -> bytes:
    try:
        return codec.dumps(value, key)
    except UnserializableValueError as error:
        raise blame(error, nodes) from None
