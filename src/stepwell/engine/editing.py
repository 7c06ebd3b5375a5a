"""`CompiledGraph`: edits and forks of a thread. What they mean is `runtime/editing/edit.py`'s."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stepwell.engine.wiring import Config, Wired, async_port, sync_port
from stepwell.graph.types import StateUpdate
from stepwell.runtime.config import thread_id_of
from stepwell.runtime.editing.edit import edit
from stepwell.runtime.editing.standing import Edit
from stepwell.runtime.run import Request, Run
from stepwell.runtime.sync_driver import drive_sync


class Editing(Wired):
    """The editing side of a compiled graph."""

    def update_state(
        self, config: Config, values: Any, as_node: str | None = None, task_id: str | None = None
    ) -> dict[str, Any]:
        """Write a new checkpoint as if `as_node` had returned `values`; return the config that addresses it.

        Durable on return. At the head, outcomes, answers and questions of the tasks that stay are kept; at an older
        checkpoint a new lineage begins. Without `as_node` the last node that ran is taken; `task_id` names the planned
        task that the update stands for. Three names are no nodes: END with no values clears what is planned, keeping
        what of it had finished; "__input__" begins as a new input does, without running it; "__copy__" writes the same
        checkpoint again beside it, and then the updates in `values`, a list of (values, as_node).

        Raises InvalidUpdateError for a node that does not exist, an ambiguous one, and values it cannot take;
        UnknownTaskError; UnknownCheckpointError; ThreadBusyError while a run holds the thread.
        """
        run = self._editing(config, "update_state")
        return drive_sync(edit(run, Edit([[StateUpdate(values, as_node, task_id)]])), sync_port(run))

    async def aupdate_state(
        self, config: Config, values: Any, as_node: str | None = None, task_id: str | None = None
    ) -> dict[str, Any]:
        """Do as `update_state`, on this event loop."""
        run = self._editing(config, "update_state")
        return await self._adrive_edit(run, Edit([[StateUpdate(values, as_node, task_id)]]))

    def bulk_update_state(self, config: Config, supersteps: Sequence[Sequence[StateUpdate]]) -> dict[str, Any]:
        """Write one checkpoint for each superstep of updates, in one transaction; return the config of the last one.

        The updates of a superstep are folded in the order given. Either all are durable on return or nothing is
        written. Raises as `update_state` does.
        """
        run = self._editing(config, "bulk_update_state")
        return drive_sync(edit(run, Edit(supersteps)), sync_port(run))

    async def abulk_update_state(self, config: Config, supersteps: Sequence[Sequence[StateUpdate]]) -> dict[str, Any]:
        """Do as `bulk_update_state`, on this event loop."""
        run = self._editing(config, "bulk_update_state")
        return await self._adrive_edit(run, Edit(supersteps))

    def fork(
        self, config: Config, values: Any = None, as_node: str | None = None, thread_id: str | None = None
    ) -> dict[str, Any]:
        """Begin a new lineage at a checkpoint, optionally edited; return the config that addresses its first one.

        With another `thread_id`, begin that thread with this checkpoint alone: it must be empty (ThreadExistsError).
        Nothing that ran or was asked or answered on the checkpoint comes along. Durable on return. Raises
        UnknownCheckpointError where there is nothing to fork, and what `update_state` raises.
        """
        run = self._editing(config, "fork")
        return drive_sync(edit(run, _forked(run, values, as_node, thread_id)), sync_port(run))

    async def afork(
        self, config: Config, values: Any = None, as_node: str | None = None, thread_id: str | None = None
    ) -> dict[str, Any]:
        """Do as `fork`, on this event loop."""
        run = self._editing(config, "fork")
        return await self._adrive_edit(run, _forked(run, values, as_node, thread_id))

    def _editing(self, config: Config, operation: str) -> Run:
        return self._new_run(Request(None, self._addressed(config, operation)))

    async def _adrive_edit(self, run: Run, change: Edit) -> dict[str, Any]:
        from stepwell.runtime.async_driver import drive_async

        return await drive_async(edit(run, change), async_port(run))


def _forked(run: Run, values: Any, as_node: str | None, thread_id: str | None) -> Edit:
    nothing = values is None and as_node is None
    into = thread_id_of(thread_id) if thread_id is not None else None
    updates = [] if nothing else [[StateUpdate(values, as_node)]]
    return Edit(updates, fork=True, into=into if into != run.config.thread_id else None)
