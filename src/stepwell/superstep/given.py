"""Merging what a caller gives: an input, an edit, a command. It is no superstep's outcome, so where it does not fit
nothing of it is kept, and the error says so.
"""

from __future__ import annotations

from collections.abc import Sequence

from stepwell.errors import MergeError
from stepwell.plan.tables import Plan
from stepwell.superstep.merge import Merged, merge
from stepwell.superstep.outcome import Succeeded
from stepwell.superstep.state import State, Task


def merge_given(plan: Plan, state: State, tasks: Sequence[Task], outcomes: Sequence[Succeeded]) -> Merged:
    """Return the state after what a caller gave. Raises MergeError where a reducer does not take it."""
    try:
        return merge(plan, state, tasks, outcomes)
    except MergeError as error:
        raise MergeError(
            f"What was given for channel {error.fields()['channel']!r} could not be combined with what it holds: "
            f"{error.fields()['reason']}. Nothing was written: give what its reducer takes, or Overwrite(value).",
            **error.fields(),
        ) from error.__cause__
