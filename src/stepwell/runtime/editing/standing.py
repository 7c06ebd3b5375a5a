"""Where an edit stands: the thread as one snapshot showed it, and the place of the next checkpoint.

Nothing is written here, and nothing of the edit itself is decided.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from stepwell.errors import GraphMismatchError, ThreadExistsError, UnknownCheckpointError
from stepwell.plan.compatibility import Problem
from stepwell.runtime.answers import recorded_positions, records_on
from stepwell.runtime.changes import in_the_way
from stepwell.runtime.editing.origins import root_of
from stepwell.runtime.effects.bringing import brought_effects
from stepwell.runtime.ledger import Ledger
from stepwell.runtime.loading import Loaded, check_input_kept, load
from stepwell.runtime.reading.unreadable import LenientCodec
from stepwell.runtime.run import Run
from stepwell.store import NO_DIGEST, CheckpointRow, Reader, RunRow, ThreadRow
from stepwell.superstep.begin import empty_state
from stepwell.superstep.carry import Record
from stepwell.superstep.origin import FORKED, Origin
from stepwell.superstep.state import Base, Identity

Parent = tuple[int | None, bytes]
"""Seq and digest of the row that a checkpoint follows."""


@dataclass(frozen=True, slots=True)
class Edit:
    """What to write, superstep by superstep. A `fork` may have none, or one."""

    supersteps: Any
    fork: bool = False
    into: str | None = None
    """The thread that a fork begins; None for a lineage of the same."""


class Spot(NamedTuple):
    """Where the next superstep of an edit is written."""

    base: Base
    follows: Parent
    """The row that the next checkpoint follows."""
    parent: Parent
    """The row that the base's own follows: a copy stands beside it."""
    lineage: int | None
    """The lineage that is continued; None: the next checkpoint opens one, and its base's tasks stay behind."""
    records: Sequence[Record] = ()
    row: CheckpointRow | None = None
    """The base's row, where it was read and not made by this edit."""
    problems: Sequence[Problem] = ()
    """Stored values that do not fit this graph: the first superstep replaces them, or is refused."""


class Standing(NamedTuple):
    """The thread as one snapshot showed it."""

    thread: ThreadRow | None
    spot: Spot
    crashed: RunRow | None
    """The run of a dead process that the edit leaves behind."""
    origin: Origin | None = None
    """Where the thread comes from that the edit begins."""


def stand(run: Run, change: Edit) -> Standing:
    """Read the thread, and set the run's ledger on what is there."""
    assert run.store is not None
    with run.store.reading() as reader:
        return _read(run, reader, change)


def _read(run: Run, reader: Reader, change: Edit) -> Standing:
    thread_id, namespace, wanted = run.config.thread_id or "", run.config.namespace, run.config.checkpoint_id
    thread = reader.thread(thread_id)
    if thread is not None and thread.graph_id != run.plan.graph_id:
        raise GraphMismatchError(thread_id=thread_id, recorded=thread.graph_id, attempted=run.plan.graph_id)
    row = None
    if thread is not None:
        row = reader.checkpoint(thread_id, namespace, wanted) if wanted else reader.newest(thread_id, namespace)
    if row is None and (wanted is not None or change.fork):
        raise UnknownCheckpointError(thread_id=thread_id, checkpoint_id=wanted or "(none yet)")
    run.ledger = Ledger(run)
    if change.into is not None:
        assert row is not None
        return _stand_outside(run, reader, load(reader, run.codec, run.plan, row), change.into)
    run.ledger.follow(thread)
    crashed = reader.run(thread.run_id) if thread is not None and thread.run_id else None
    check_input_kept(crashed)
    if row is None:
        identity = Identity(run.plan.graph_id, run.plan.version, thread_id, namespace, "")
        nothing: Parent = (None, NO_DIGEST)
        return Standing(thread, Spot(Base(empty_state(run.plan), identity), nothing, nothing, 0), crashed)
    codec = LenientCodec(run.codec) if change.supersteps else run.codec  # what an edit replaces need not be readable
    loaded = load(reader, codec, run.plan, row)
    newest = not change.fork and reader.head_seq(thread_id, namespace, row.lineage) == row.seq
    return Standing(thread, _spot(run, reader, loaded, newest), crashed)


def _stand_outside(run: Run, reader: Reader, loaded: Loaded, thread_id: str) -> Standing:
    """Return the beginning of a thread that has this checkpoint's state, whole, and nothing of its rows."""
    if reader.thread(thread_id) is not None:
        raise ThreadExistsError(thread_id=thread_id)
    row, nothing = loaded.row, (None, NO_DIGEST)
    base = Base(loaded.base.state, loaded.base.identity._replace(thread_id=thread_id))
    problems = in_the_way(reader, run.plan, loaded, keeps_tasks=False)
    run.ledger.lineages = 0  # the fork opens the first
    assert run.store is not None
    brought = brought_effects(run.store.sealer, reader, row.thread_id, row.lineage, thread_id)
    run.ledger.staged_effects = brought
    keys = tuple((effect.key, effect.position) for effect, _ in brought)
    origin = Origin(FORKED, row.thread_id, row.seq, row.digest, 0, root_of(reader, row.thread_id), keys)
    return Standing(None, Spot(base, nothing, nothing, None, (), row, problems), None, origin)


def _spot(run: Run, reader: Reader, loaded: Loaded, newest: bool) -> Spot:
    row, base = loaded.row, loaded.base
    run.ledger.stand_on(loaded, recorded_positions(base, loaded.records) if newest else {})
    records = records_on(run, reader, loaded) if newest else []
    parent = row.parent_seq, row.parent_digest
    problems = in_the_way(reader, run.plan, loaded, keeps_tasks=False)
    return Spot(base, (row.seq, row.digest), parent, row.lineage if newest else None, records, row, problems)
