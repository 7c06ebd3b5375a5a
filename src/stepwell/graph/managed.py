"""State keys that are computed for each superstep instead of stored: `RemainingSteps` and `IsLastStep`.

Only their names live here; their values are the superstep layer's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated


@dataclass(frozen=True, slots=True)
class Managed:
    """Marks a key as managed, by the name of what it holds."""

    name: str


RemainingSteps = Annotated[int, Managed("remaining_steps")]
"""How many supersteps the recursion limit still allows after this one."""

IsLastStep = Annotated[bool, Managed("is_last_step")]
"""Whether the recursion limit allows at most one superstep after this one: time to come to an end."""
