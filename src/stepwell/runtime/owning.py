"""In `exit` mode outcomes are stored late, and made the engine's own early: as they would be read back.

A value that cannot be stored is refused where it was made, and what a node goes on changing is not what is stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepwell.errors import UnserializableValueError
from stepwell.superstep import body as layout
from stepwell.superstep.outcome import Succeeded
from stepwell.superstep.state import Base

if TYPE_CHECKING:
    from stepwell.runtime.ledger import Ledger


def own(ledger: Ledger, base: Base) -> None:
    """In `exit` mode: replace what user code still holds by what would be stored.

    UnserializableValueError where a value cannot be stored: it is refused where it was made, not at the end.
    """
    run = ledger.run
    if run.store is None or run.durability != "exit":
        return
    owned = _owned(ledger, base)
    for index, (task, outcome) in enumerate(zip(base.tasks, base.outcomes, strict=True)):
        if isinstance(outcome, Succeeded) and index not in owned:
            base.outcomes[index] = layout.stored_copy(run.codec, run.plan, task, outcome)


def prove(ledger: Ledger, base: Base) -> None:
    """In `exit` mode, before anybody is told of outcomes: own what can be stored; what cannot becomes a failure."""
    run, owned = ledger.run, _owned(ledger, base)
    if run.stream is None and run.tell is None:
        return
    for index in ledger.unrecorded[len(owned) :]:
        task, outcome = base.tasks[index], base.outcomes[index]
        assert outcome is not None
        try:
            if isinstance(outcome, Succeeded):
                base.outcomes[index] = layout.stored_copy(run.codec, run.plan, task, outcome)
            else:
                ledger.encode(task, outcome)
        except UnserializableValueError as error:
            ledger.refuse(base, index, error)
        owned.add(index)


def _owned(ledger: Ledger, base: Base) -> set[int]:
    if ledger.owned[0] is not base:
        ledger.owned = base, set()
    return ledger.owned[1]
