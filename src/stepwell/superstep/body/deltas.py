"""When a channel is stored as what was written to it, and what then stands in the body.

A chain is a value that is stored whole, the snapshot, and the deltas that follow it. It ends where the deltas weigh
more than the snapshot, or number `LIMITS.deltas`: so all snapshots together weigh about what was written, and reading
follows a bounded chain. Each delta names those before it back to the last whose number divides by `LIMITS.links`, so
that a reader goes back in steps of that many.

The rule kept: the live value after a commit is folded from what was stored and decoded again, as a reader folds it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from stepwell.codec import Codec, is_scalar
from stepwell.errors import UnserializableValueError
from stepwell.graph.deltas import DeltaRule
from stepwell.graph.types import MISSING
from stepwell.plan.tables import Plan
from stepwell.superstep.body.channels import DELTA, SNAPSHOT, Opened, delta_of
from stepwell.superstep.body.values import blame
from stepwell.superstep.outcome import Succeeded
from stepwell.superstep.state import State, Task


class Limits(NamedTuple):
    """How long chains may get."""

    deltas: int = 256
    links: int = 16
    outweigh: int = 3
    """How many times the snapshot's bytes its deltas may have."""


LIMITS = Limits()


class Chain(NamedTuple):
    """A channel's value as the rows hold it, where deltas may follow."""

    rule: str
    number: int
    """Deltas since the snapshot."""
    weight: int
    """Bytes of their writes."""
    snapshot: int
    """Bytes of the snapshot."""
    rows: tuple[int, ...]
    """Seqs that the next delta names, the newest first."""


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


def chain_of(opened: Opened, key: str, seq: int, record: str) -> Chain | None:
    """Return the chain that ends in the row at `seq`, which holds a channel; None where no delta may follow it."""
    kind, payload = opened.channels[key]
    if kind == SNAPSHOT:
        return Chain(payload[0], 0, 0, payload[1], (seq,))
    delta = delta_of(opened, key, record)
    if delta is None:
        return None
    rows = (seq,) if delta.number % LIMITS.links == 0 else (seq, *(seq - link for link in delta.links))
    return Chain(*delta[:4], rows)


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
        found = _delta(codec, rule, key, seq, writes, ground) if not _renamed(plan, key, outcomes) else None
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
    codec: Codec, rule: DeltaRule, key: str, seq: int, writes: Sequence[tuple[Any, bytes]], ground: Ground
) -> Grown | None:
    """Return the channel as a delta, unless its chain is at its end or these writes do not fit its rule."""
    chain = ground.chains.get(key)
    if chain is None or chain.rule != rule.name or chain.number >= min(rule.most, LIMITS.deltas):
        return None
    value, earlier = ground.unwritten.get(key) or (ground.before.get(key, MISSING), [])
    if not rule.fits(value, [*earlier, *(write for write, _ in writes)]):
        return None
    apart = [_dumps(codec, write, key, ()) for write in earlier]
    datas = [*apart, *(data for _, data in writes)]
    weight = chain.weight + sum(map(len, datas))
    if weight > chain.snapshot * LIMITS.outweigh:
        return None
    links = [seq - row for row in chain.rows]
    payload = (rule.name, chain.number + 1, weight, chain.snapshot, links, apart)
    rows = (seq,) if (chain.number + 1) % LIMITS.links == 0 else (seq, *chain.rows)
    following = Chain(rule.name, chain.number + 1, weight, chain.snapshot, rows)
    return Grown((DELTA, payload), rule.fold(value, [codec.loads(data, key) for data in datas]), following)


def _snapshot(codec: Codec, rule: DeltaRule, key: str, seq: int, state: State) -> Grown:
    value = state.values[key]
    data = _dumps(codec, value, key, state.writers)
    live = value if is_scalar(value) else codec.loads(data, key)
    return Grown((SNAPSHOT, (rule.name, len(data), data)), live, Chain(rule.name, 0, 0, len(data), (seq,)))


def _dumps(codec: Codec, value: Any, key: str, nodes: Sequence[str]) -> bytes:
    try:
        return codec.dumps(value, key)
    except UnserializableValueError as error:
        raise blame(error, nodes) from None
