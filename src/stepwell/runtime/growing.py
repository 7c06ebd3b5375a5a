"""What a run knows of the channels that are stored as deltas: the chains that the next ones follow.

In `exit` mode no row is written for a superstep; what it wrote is gathered here until one is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from stepwell.graph.types import MISSING
from stepwell.plan.tables import Plan
from stepwell.superstep.blobs import BlobRef
from stepwell.superstep.body import Chain, Ground, Unwritten, deltas

if TYPE_CHECKING:
    from stepwell.runtime.draft import Draft


class Growing:
    """The chains of one run."""

    __slots__ = ("_plan", "_unwritten", "chains")

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.chains: dict[str, Chain] = {}
        self._unwritten: dict[str, Unwritten] = {}

    def leave(self, draft: Draft | None) -> None:
        """Gather what the superstep of a draft wrote that no row will be written for."""
        if draft is None or draft.before is None:
            return
        for _, outcome, _ in draft.sources:
            for key, value in outcome.writes:
                if key in self._plan.deltas:
                    self._gather(key, value, draft.before)

    def _gather(self, key: str, value: Any, before: Mapping[str, Any]) -> None:
        known = self._unwritten.get(key)
        if known is None:
            known = self._unwritten[key] = Unwritten(before.get(key, MISSING), [])
        known.writes.append(value)
        if len(known.writes) > deltas.LIMITS.unwritten:  # stored whole it is, and need not be remembered
            self.chains.pop(key, None)
            known.writes.clear()

    def ground(self, before: Mapping[str, Any] | None) -> Ground | None:
        """Return what the deltas of the next row stand on, whose superstep began with these values."""
        return None if before is None else Ground(before, self.chains, self._unwritten)

    def follow(
        self, chains: Mapping[str, Chain], holds: Mapping[str, int], seq: int, shelve: Callable[[bytes], BlobRef]
    ) -> None:
        """Take note of the row at `seq`: the chains that it goes on with or begins. `shelve` names what it has apart,
        so that it need not be remembered."""
        self._unwritten.clear()
        for key in self._plan.deltas:
            if key in chains:
                self.chains[key] = chains[key].shelved(shelve)
            elif holds.get(key) == seq:
                self.chains.pop(key, None)
