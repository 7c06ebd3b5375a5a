"""`retry(config, tasks=...)`: the named tasks run anew, and that their outcomes were discarded is recorded.

At the newest checkpoint of a lineage the discard is a record on the base, durable before anything runs. At an older one
a new lineage is written first, as for an answer there: what is not named keeps everything. Answers stay in both: a
question that was answered is not asked again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stepwell.plan.tables import Plan
from stepwell.runtime.answers import bring, fork_base, records_on
from stepwell.runtime.loading import Loaded
from stepwell.runtime.run import Run
from stepwell.store import Reader
from stepwell.superstep import body as layout, lifecycle
from stepwell.superstep.carry import carry
from stepwell.superstep.edit import unknown_tasks
from stepwell.superstep.state import Base


def base_without(run: Run, reader: Reader, loaded: Loaded, newest: bool, names: Sequence[str]) -> Base:
    """Return the base on which the named tasks have no outcome. UnknownTaskError where one is not planned there."""
    chosen = _named(run.plan, loaded.base, names)
    if not newest:
        return _forked_without(run, reader, loaded, chosen)
    base = loaded.base
    for index in chosen:
        task_id = base.tasks[index].id
        if base.outcomes[index] is not None or task_id in base.steps:
            run.ledger.add_record(base, task_id, lifecycle.DISCARDED, layout.encode_discarded())
            base.discard(index)
            run.ledger.recorded.pop(index, None)
    return base


def _forked_without(run: Run, reader: Reader, loaded: Loaded, chosen: Iterable[int]) -> Base:
    named = {loaded.base.tasks[index].id for index in chosen}
    base = fork_base(run, loaded)
    records = records_on(run, reader, loaded)
    kept = [record for record in records if record.task_id not in named or record.kind in lifecycle.ANSWERS]
    bring(run, base, carry(loaded.base, base, kept, lambda old, new: True))
    return base


def _named(plan: Plan, base: Base, names: Sequence[str]) -> list[int]:
    """Return the positions of the tasks with these ids or of these nodes, by the name recorded or today's."""
    called = [{task.id, task.node, plan.changed.nodes.get(task.node, task.node)} for task in base.tasks]
    missing = set(names).difference(*called) if called else set(names)
    if missing:
        raise unknown_tasks(base, [name for name in names if name in missing])
    return [i for i, known in enumerate(called) if not known.isdisjoint(names)]
