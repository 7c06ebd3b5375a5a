"""A run as a value: how it ended, where it stands, what it cost. What `graph.run` returns.

A failure is an outcome here, not an exception: whoever drives many runs wants to look before they raise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from stepwell.errors import RunError
from stepwell.graph.types import Interrupt, Waiting
from stepwell.runtime.drive import Ending, drive_to_ending
from stepwell.runtime.editing.edit import address
from stepwell.runtime.run import Run
from stepwell.runtime.stream.payloads import as_interrupt, as_waiting, typed_output, visible_values
from stepwell.store import Counts
from stepwell.superstep import lifecycle


class Cost(NamedTuple):
    """What a run has written, as the store counted it. Renewals of the lease are not in it."""

    transactions: int = 0
    """Those the run took part in: one that it shared with other runs counts for each."""
    statements: int = 0
    bytes: int = 0
    """Bytes of bodies, inputs, metadata and events handed to the database."""
    syncs: int = 0
    """Transactions that were not answered before the disk had them."""


@dataclass(frozen=True, slots=True)
class GraphExecution:
    """One run of a graph, from its call to its end."""

    value: Any
    """The output, in the type of the output schema: what `invoke` returns or, where the run paused or failed, the state
    so far. None where a run is repeated that had failed."""
    status: Literal["finished", "paused", "waiting", "failed", "cancelled"]
    """`cancelled` only where the call repeats the id of a run that was."""
    interrupts: tuple[Interrupt, ...]
    """The open questions."""
    waiting: tuple[Waiting, ...]
    """What nodes wait for: times, signals and awakeables."""
    error: Exception | None
    """What the run failed with."""
    run_id: str
    thread_id: str | None
    config: Mapping[str, Any] | None
    """The config that addresses the last checkpoint; None without a checkpointer."""
    steps: int
    """Supersteps this run has finished, those of earlier attempts included."""
    cost: Cost
    """What this call has cost: of a run that was taken over, the last attempt."""

    def result(self) -> Any:
        """Return the value; raise the error where the run failed."""
        if self.error is not None:
            raise self.error
        return self.value


async def execution(run: Run) -> GraphExecution:
    """Drive the run to its end and return it. Raises what kept it from beginning, stopped it or broke the store."""
    run.cost = cost = Counts()
    try:
        ending = await drive_to_ending(run)
    except RunError as error:  # the end of another call's run, or of one that was given up when it was admitted
        if "run_id" not in error.fields():
            raise
        return _known(run, error, _cost(cost))
    return _driven(run, ending, _cost(cost))


def _driven(run: Run, ending: Ending, cost: Cost) -> GraphExecution:
    error, base = ending.error, ending.base
    assert error is None or isinstance(error, Exception)
    return GraphExecution(
        value=typed_output(run.plan, visible_values(run.plan, base)),
        status=ending.status,  # type: ignore[arg-type]  # the lifecycle's words
        interrupts=tuple(as_interrupt(question) for question in ending.questions),
        waiting=tuple(as_waiting(awaited) for awaited in ending.awaited),
        error=error,
        run_id=run.run_id,
        thread_id=run.config.thread_id,
        config=address(base.identity) if run.store is not None else None,
        steps=max(0, base.state.step - run.rules.first_step + 1),
        cost=cost,
    )


def _known(run: Run, error: RunError, cost: Cost) -> GraphExecution:
    facts = error.fields()
    thread = {"thread_id": run.config.thread_id or "", "checkpoint_ns": run.config.namespace}
    return GraphExecution(
        value=None,
        status=facts.get("status", lifecycle.FAILED),
        interrupts=(),
        waiting=(),
        error=error,
        run_id=facts.get("run_id", run.run_id),
        thread_id=run.config.thread_id,
        config={"configurable": thread},
        steps=0,
        cost=cost,
    )


def _cost(counts: Counts) -> Cost:
    return Cost(counts.transactions, counts.statements, counts.bytes, counts.syncs)
