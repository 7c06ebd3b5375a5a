"""What a user can see of a thread, without ids and times, which no two runs share."""

from dataclasses import dataclass, field
from typing import Any

FAILED = "failed"
"""The error of a step that left its thread failed; any other is the code of a StepwellError."""


@dataclass
class Seen:
    """A thread as it stands after a step."""

    error: str
    values: Any
    next: tuple[str, ...]
    questions: list[Any]
    history: list[Any] = field(default_factory=list)
    """Newest first: lineage, step, source, values, next, joins, and (name, path, error, questions, result) per task."""
