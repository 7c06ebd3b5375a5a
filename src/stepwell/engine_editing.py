"""`CompiledGraph`: edits and forks of a thread. What they mean is `runtime/edit.py`'s."""

from __future__ import annotations

from typing import Any

from stepwell.engine_wiring import Config, Wired, async_port, sync_port
from stepwell.runtime.edit import Edit, edit
from stepwell.runtime.run import Request, Run
from stepwell.runtime.sync_driver import drive_sync


class Editing(Wired):
    """The editing side of a compiled graph."""

    def update_state(self, config: Config, values: Any, as_node: str | None = None) -> dict[str, Any]:
        """Write a new checkpoint as if `as_node` had returned `values`; return the config that addresses it.

        Durable on return. At the head, outcomes, answers and questions of the tasks that stay are kept; at an older
        checkpoint a new lineage begins. Without `as_node` the last node that wrote is taken.
        """
        run = self._editing(config, "update_state")
        return self._drive_edit(run, Edit(values, as_node))

    async def aupdate_state(self, config: Config, values: Any, as_node: str | None = None) -> dict[str, Any]:
        """Do as `update_state`, on this event loop."""
        run = self._editing(config, "update_state")
        return await self._adrive_edit(run, Edit(values, as_node))

    def fork(self, config: Config, values: Any = None, as_node: str | None = None) -> dict[str, Any]:
        """Begin a new lineage at a checkpoint, optionally edited; return the config that addresses its first one."""
        run = self._editing(config, "fork")
        return self._drive_edit(run, Edit(values, as_node, fork=True))

    async def afork(self, config: Config, values: Any = None, as_node: str | None = None) -> dict[str, Any]:
        """Do as `fork`, on this event loop."""
        run = self._editing(config, "fork")
        return await self._adrive_edit(run, Edit(values, as_node, fork=True))

    def _editing(self, config: Config, operation: str) -> Run:
        return self._new_run(Request(None, self._addressed(config, operation)))

    def _drive_edit(self, run: Run, change: Edit) -> dict[str, Any]:
        return drive_sync(edit(run, change), sync_port(run))

    async def _adrive_edit(self, run: Run, change: Edit) -> dict[str, Any]:
        from stepwell.runtime.async_driver import drive_async

        return await drive_async(edit(run, change), async_port(run))
