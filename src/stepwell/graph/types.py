"""The small values users and the engine exchange: START, END, Send, Command, Interrupt, Overwrite, Answer,
StateUpdate, MISSING.

What they mean is decided elsewhere (routing and merging in `superstep`, pausing in `runtime`). The rule kept here:
every value compares by content, and "not given" is never spelled None, because None is a value a user may mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar, Final, Generic, Literal, NamedTuple, final

from typing_extensions import TypeVar

from stepwell.graph.policies import TimeoutPolicy

START: Final = "__start__"
"""The virtual node before the first one: edges from it are the graph's entry."""

END: Final = "__end__"
"""The virtual node after the last one: an edge to it ends a branch of the run."""

ROOT: Final = "__root__"
"""The one channel of a state without keys."""

PREVIOUS: Final = "__previous__"
"""The channel of what a workflow keeps for its next run; END is the one of what it returned."""

OVERWRITE: Final = "__overwrite__"
"""Marks an `Overwrite` spelled as a dict, for updates that arrive as JSON."""


@final
class Missing:
    """The type of `MISSING`. It has one instance, which copies and pickles as itself."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "MISSING"

    def __copy__(self) -> Missing:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Missing:
        return self

    def __reduce__(self) -> str:
        return "MISSING"


MISSING: Final = Missing()
"""Stands where no value was given, or where a channel holds none."""

NodeNameT = TypeVar("NodeNameT", default=str)


class Send:
    """Run `node` in the next superstep with `arg` as its input instead of the state.

    `timeout` limits each attempt of this one task, in place of the node's own; a number is a run timeout. It is kept as
    a policy in seconds. An idle timeout for a sync node is refused when the packet is sent.
    """

    __slots__ = ("arg", "node", "timeout")

    def __init__(self, /, node: str, arg: Any, *, timeout: float | timedelta | TimeoutPolicy | None = None) -> None:
        self.node = node
        self.arg = arg
        self.timeout = TimeoutPolicy.coerce(timeout)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Send):
            return NotImplemented
        return (self.node, self.timeout) == (other.node, other.timeout) and bool(self.arg == other.arg)

    def __hash__(self) -> int:
        return hash((self.node, self.arg, self.timeout))

    def __repr__(self) -> str:
        limit = "" if self.timeout is None else f", timeout={self.timeout!r}"
        return f"Send(node={self.node!r}, arg={self.arg!r}{limit})"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Command(Generic[NodeNameT]):
    """Update the state, answer a question and choose the next nodes, in one value.

    A node returns one, or a caller passes one as the input. `resume` is `MISSING` unless given, so that None is an
    answer; a dict whose keys all look like interrupt ids answers several questions. `goto` adds to the node's static
    edges. `graph=Command.PARENT` addresses the graph that contains this one.
    """

    graph: str | None = None
    update: Any = None
    resume: Any = MISSING
    goto: Send | Sequence[Send | NodeNameT] | NodeNameT = ()

    PARENT: ClassVar[Literal["__parent__"]] = "__parent__"

    def __repr__(self) -> str:
        shown = [f"{name}={getattr(self, name)!r}" for name in ("graph", "update") if getattr(self, name) is not None]
        if self.resume is not MISSING:
            shown.append(f"resume={self.resume!r}")
        if self.goto != ():
            shown.append(f"goto={self.goto!r}")
        return f"Command({', '.join(shown)})"


@dataclass(frozen=True, slots=True)
class Interrupt:
    """A question a node asked: what it showed (`value`) and the id to answer it by."""

    value: Any
    id: str = "placeholder-id"

    def __hash__(self) -> int:
        return hash(self.id)


@dataclass(frozen=True, slots=True)
class Waiting:
    """What a node waits for, as a waiting thread shows it."""

    key: str
    """The signal's key, or the awakeable's id; "" for a timer."""
    until: datetime | None
    """When the waiting is over in any case, in UTC. None: only a message ends it."""
    kind: Literal["timer", "signal", "awakeable"]


@dataclass(frozen=True, slots=True)
class Overwrite:
    """Replace the channel's value by `value` instead of reducing into it.

    In the superstep that overwrites a channel every other write to it is ignored, whatever its position; a second
    `Overwrite` of the same channel is an error.
    """

    value: Any
    type: Literal["__overwrite__"] = OVERWRITE


@dataclass(frozen=True, slots=True)
class Answer:
    """Pass `value` as one answer, even where it looks like a map of interrupt ids: `Command(resume=Answer(value))`."""

    value: Any


class StateUpdate(NamedTuple):
    """One update of `bulk_update_state`: write `values` as if `as_node` had returned them.

    `task_id` names the planned task that the update stands for; without it, it is the next one of that node.
    """

    values: Any
    as_node: str | None = None
    task_id: str | None = None
