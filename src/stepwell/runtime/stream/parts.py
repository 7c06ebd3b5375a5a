"""The shapes a consumer meets: stream parts, the payloads in them, and what `invoke` returns with `version="v2"`.

Names and keys are LangGraph's. Nothing here makes them; `stream_payloads` does.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, NotRequired, TypedDict

from typing_extensions import TypeAliasType, TypeVar

from stepwell.graph.types import Interrupt, Waiting

StreamMode = Literal["values", "updates", "checkpoints", "tasks", "debug", "messages", "custom"]
Durability = Literal["sync", "async", "exit"]
All = Literal["*"]

StateT = TypeVar("StateT", default=Any)
OutputT = TypeVar("OutputT", default=Any)


class TaskPayload(TypedDict):
    """A task is about to run."""

    id: str
    name: str
    input: Any
    triggers: tuple[str, ...]
    metadata: NotRequired[dict[str, Any]]
    """The caller's metadata and tags; from the second attempt on, `stepwell_attempt`."""


class TaskResultPayload(TypedDict):
    """What became of a task."""

    id: str
    name: str
    error: str | None
    result: Any
    """Channel → what was written; the bare value with `output_keys` a single name or a state without keys."""
    interrupts: list[dict[str, Any]]
    waiting: NotRequired[tuple[Waiting, ...]]
    """What the task waits for, where it waits."""


class CheckpointTask(TypedDict):
    """A task of a checkpoint: with its error, or its result, or neither while it is open."""

    id: str
    name: str
    error: NotRequired[str]
    result: NotRequired[Any]
    interrupts: NotRequired[tuple[dict[str, Any], ...]]
    waiting: NotRequired[tuple[Waiting, ...]]
    state: Any


class CheckpointPayload(TypedDict, Generic[StateT]):
    """A checkpoint, as `get_state` of its config shows it."""

    config: Mapping[str, Any] | None
    parent_config: Mapping[str, Any] | None
    values: StateT
    metadata: Mapping[str, Any]
    next: list[str]
    tasks: list[CheckpointTask]


class DebugPayload(TypedDict):
    """A checkpoint, a task or a task's result, with the step and the time it was seen."""

    step: int
    timestamp: str
    """ISO 8601, UTC."""
    type: Literal["checkpoint", "task", "task_result"]
    payload: Any


class ValuesStreamPart(TypedDict, Generic[OutputT]):
    """The state after a superstep, and the questions it ends with."""

    type: Literal["values"]
    ns: tuple[str, ...]
    data: OutputT
    interrupts: tuple[Interrupt, ...]
    waiting: NotRequired[tuple[Waiting, ...]]
    """What else it ends with: what the thread waits for."""


class UpdatesStreamPart(TypedDict):
    """What one task wrote: node → update; or `__interrupt__` → questions, `__waiting__` → what is awaited."""

    type: Literal["updates"]
    ns: tuple[str, ...]
    data: dict[str, Any]


class MessagesStreamPart(TypedDict):
    """A message, or a piece of one, and where it comes from."""

    type: Literal["messages"]
    ns: tuple[str, ...]
    data: tuple[Any, dict[str, Any]]


class CustomStreamPart(TypedDict):
    """Whatever a node passed to its writer, with the task and the attempt that did."""

    type: Literal["custom"]
    ns: tuple[str, ...]
    data: Any
    task_id: str
    attempt: int


class CheckpointStreamPart(TypedDict, Generic[StateT]):
    """A checkpoint."""

    type: Literal["checkpoints"]
    ns: tuple[str, ...]
    data: CheckpointPayload[StateT]


class TasksStreamPart(TypedDict):
    """A task that starts, or what became of it."""

    type: Literal["tasks"]
    ns: tuple[str, ...]
    data: TaskPayload | TaskResultPayload


class DebugStreamPart(TypedDict):
    """A checkpoint or task, wrapped."""

    type: Literal["debug"]
    ns: tuple[str, ...]
    data: DebugPayload


StreamPart = TypeAliasType(
    "StreamPart",
    ValuesStreamPart[OutputT]
    | UpdatesStreamPart
    | MessagesStreamPart
    | CustomStreamPart
    | CheckpointStreamPart[StateT]
    | TasksStreamPart
    | DebugStreamPart,
    type_params=(StateT, OutputT),
)
"""Any of them: `part["type"]` tells which."""


@dataclass(frozen=True, slots=True)
class GraphOutput(Generic[OutputT]):
    """What `invoke` returns with `version="v2"`: the output, in the type of the output schema, and the open questions.

    `result["key"]` and `"key" in result` still work, as on the values of "v1", with a DeprecationWarning.
    """

    value: OutputT
    interrupts: tuple[Interrupt, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    """What the thread waits for: times and signals."""

    def __getitem__(self, key: str) -> Any:
        _deprecated("result[key]")
        if key == "__interrupt__":
            return self.interrupts
        if key == "__waiting__":
            return self.waiting
        if isinstance(self.value, Mapping):
            return self.value[key]
        try:
            return getattr(self.value, key)
        except AttributeError:
            raise KeyError(key) from None

    def __contains__(self, key: object) -> bool:
        _deprecated("key in result")
        if key == "__interrupt__":
            return bool(self.interrupts)
        if key == "__waiting__":
            return bool(self.waiting)
        return (
            key in self.value if isinstance(self.value, Mapping) else isinstance(key, str) and hasattr(self.value, key)
        )


def _deprecated(spelling: str) -> None:
    text = f"`{spelling}` on a GraphOutput is deprecated: use `result.value` and `result.interrupts`"
    warnings.warn(text, DeprecationWarning, stacklevel=3)
