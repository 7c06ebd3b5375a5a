"""Stepwell: durable execution for Python graphs. Every public name, nothing else.

Names load on first use, so that `import stepwell` costs next to nothing and pulls in no dependency.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stepwell.codec import (
        register_type as register_type,
    )
    from stepwell.engine import (
        CompiledGraph as CompiledGraph,
    )
    from stepwell.errors import (
        AmbiguousAnswerError as AmbiguousAnswerError,
    )
    from stepwell.errors import (
        CodecError as CodecError,
    )
    from stepwell.errors import (
        CommitUnknownError as CommitUnknownError,
    )
    from stepwell.errors import (
        CorruptRecordError as CorruptRecordError,
    )
    from stepwell.errors import (
        DuplicateTypeError as DuplicateTypeError,
    )
    from stepwell.errors import (
        EmptyInputError as EmptyInputError,
    )
    from stepwell.errors import (
        GraphError as GraphError,
    )
    from stepwell.errors import (
        GraphInterrupt as GraphInterrupt,
    )
    from stepwell.errors import (
        GraphMismatchError as GraphMismatchError,
    )
    from stepwell.errors import (
        GraphRecursionError as GraphRecursionError,
    )
    from stepwell.errors import (
        InterruptAnsweredError as InterruptAnsweredError,
    )
    from stepwell.errors import (
        InvalidCheckpointerError as InvalidCheckpointerError,
    )
    from stepwell.errors import (
        InvalidConfigError as InvalidConfigError,
    )
    from stepwell.errors import (
        InvalidGraphError as InvalidGraphError,
    )
    from stepwell.errors import (
        InvalidUpdateError as InvalidUpdateError,
    )
    from stepwell.errors import (
        JoinNotReleasedWarning as JoinNotReleasedWarning,
    )
    from stepwell.errors import (
        LeaseLostError as LeaseLostError,
    )
    from stepwell.errors import (
        MergeError as MergeError,
    )
    from stepwell.errors import (
        NestedInterruptError as NestedInterruptError,
    )
    from stepwell.errors import (
        NestedThreadError as NestedThreadError,
    )
    from stepwell.errors import (
        NoCheckpointerError as NoCheckpointerError,
    )
    from stepwell.errors import (
        NodeCancelledError as NodeCancelledError,
    )
    from stepwell.errors import (
        NodeTimeoutError as NodeTimeoutError,
    )
    from stepwell.errors import (
        NothingToRetryError as NothingToRetryError,
    )
    from stepwell.errors import (
        PendingWorkError as PendingWorkError,
    )
    from stepwell.errors import (
        PoisonedRunError as PoisonedRunError,
    )
    from stepwell.errors import (
        RunConflictError as RunConflictError,
    )
    from stepwell.errors import (
        RunError as RunError,
    )
    from stepwell.errors import (
        SaverClosedError as SaverClosedError,
    )
    from stepwell.errors import (
        StateValidationError as StateValidationError,
    )
    from stepwell.errors import (
        StepwellError as StepwellError,
    )
    from stepwell.errors import (
        StoreError as StoreError,
    )
    from stepwell.errors import (
        ThreadBusyError as ThreadBusyError,
    )
    from stepwell.errors import (
        UnknownCheckpointError as UnknownCheckpointError,
    )
    from stepwell.errors import (
        UnknownInterruptError as UnknownInterruptError,
    )
    from stepwell.errors import (
        UnknownThreadError as UnknownThreadError,
    )
    from stepwell.errors import (
        UnknownTypeError as UnknownTypeError,
    )
    from stepwell.errors import (
        UnserializableValueError as UnserializableValueError,
    )
    from stepwell.errors import (
        UnsupportedStorageError as UnsupportedStorageError,
    )
    from stepwell.errors import (
        UsageError as UsageError,
    )
    from stepwell.graph.channels import (
        AnyValue as AnyValue,
    )
    from stepwell.graph.channels import (
        BinaryOperatorAggregate as BinaryOperatorAggregate,
    )
    from stepwell.graph.channels import (
        Channel as Channel,
    )
    from stepwell.graph.channels import (
        EphemeralValue as EphemeralValue,
    )
    from stepwell.graph.channels import (
        LastValue as LastValue,
    )
    from stepwell.graph.channels import (
        LastValueAfterFinish as LastValueAfterFinish,
    )
    from stepwell.graph.channels import (
        NamedBarrierValue as NamedBarrierValue,
    )
    from stepwell.graph.channels import (
        Topic as Topic,
    )
    from stepwell.graph.channels import (
        UntrackedValue as UntrackedValue,
    )
    from stepwell.graph.managed import (
        IsLastStep as IsLastStep,
    )
    from stepwell.graph.managed import (
        RemainingSteps as RemainingSteps,
    )
    from stepwell.graph.messages import (
        REMOVE_ALL_MESSAGES as REMOVE_ALL_MESSAGES,
    )
    from stepwell.graph.messages import (
        MessagesState as MessagesState,
    )
    from stepwell.graph.messages import (
        RemoveMessage as RemoveMessage,
    )
    from stepwell.graph.messages import (
        add_messages as add_messages,
    )
    from stepwell.graph.policies import (
        RetryPolicy as RetryPolicy,
    )
    from stepwell.graph.policies import (
        TimeoutPolicy as TimeoutPolicy,
    )
    from stepwell.graph.retry_rules import (
        default_retry_on as default_retry_on,
    )
    from stepwell.graph.state_graph import (
        StateGraph as StateGraph,
    )
    from stepwell.graph.types import (
        END as END,
    )
    from stepwell.graph.types import (
        START as START,
    )
    from stepwell.graph.types import (
        Answer as Answer,
    )
    from stepwell.graph.types import (
        Command as Command,
    )
    from stepwell.graph.types import (
        Interrupt as Interrupt,
    )
    from stepwell.graph.types import (
        Overwrite as Overwrite,
    )
    from stepwell.graph.types import (
        Send as Send,
    )
    from stepwell.runtime.scope import (
        ExecutionInfo as ExecutionInfo,
    )
    from stepwell.runtime.scope import (
        Runtime as Runtime,
    )
    from stepwell.runtime.scope import (
        StreamWriter as StreamWriter,
    )
    from stepwell.runtime.scope import (
        get_config as get_config,
    )
    from stepwell.runtime.scope import (
        get_runtime as get_runtime,
    )
    from stepwell.runtime.scope import (
        get_store as get_store,
    )
    from stepwell.runtime.scope import (
        get_stream_writer as get_stream_writer,
    )
    from stepwell.runtime.scope import (
        interrupt as interrupt,
    )
    from stepwell.runtime.snapshot import (
        PregelTask as PregelTask,
    )
    from stepwell.runtime.snapshot import (
        StateSnapshot as StateSnapshot,
    )
    from stepwell.savers.sqlite import (
        AsyncSqliteSaver as AsyncSqliteSaver,
    )
    from stepwell.savers.sqlite import (
        InMemorySaver as InMemorySaver,
    )
    from stepwell.savers.sqlite import (
        MemorySaver as MemorySaver,
    )
    from stepwell.savers.sqlite import (
        SqliteSaver as SqliteSaver,
    )

_HOMES = {
    "stepwell.graph.types": ("START", "END", "Send", "Command", "Interrupt", "Overwrite", "Answer"),
    "stepwell.graph.state_graph": ("StateGraph",),
    "stepwell.graph.policies": ("RetryPolicy", "TimeoutPolicy"),
    "stepwell.graph.retry_rules": ("default_retry_on",),
    "stepwell.graph.managed": ("IsLastStep", "RemainingSteps"),
    "stepwell.graph.channels": (
        "AnyValue",
        "BinaryOperatorAggregate",
        "Channel",
        "EphemeralValue",
        "LastValue",
        "LastValueAfterFinish",
        "NamedBarrierValue",
        "Topic",
        "UntrackedValue",
    ),
    "stepwell.graph.messages": ("MessagesState", "RemoveMessage", "REMOVE_ALL_MESSAGES", "add_messages"),
    "stepwell.codec": ("register_type",),
    "stepwell.runtime.scope": (
        "ExecutionInfo",
        "Runtime",
        "StreamWriter",
        "get_config",
        "get_runtime",
        "get_store",
        "get_stream_writer",
        "interrupt",
    ),
    "stepwell.runtime.snapshot": ("PregelTask", "StateSnapshot"),
    "stepwell.savers.sqlite": ("AsyncSqliteSaver", "InMemorySaver", "MemorySaver", "SqliteSaver"),
    "stepwell.engine": ("CompiledGraph",),
    "stepwell.errors": (
        "AmbiguousAnswerError",
        "CodecError",
        "CommitUnknownError",
        "CorruptRecordError",
        "DuplicateTypeError",
        "EmptyInputError",
        "GraphError",
        "GraphInterrupt",
        "GraphMismatchError",
        "GraphRecursionError",
        "InterruptAnsweredError",
        "InvalidCheckpointerError",
        "InvalidConfigError",
        "InvalidGraphError",
        "InvalidUpdateError",
        "JoinNotReleasedWarning",
        "LeaseLostError",
        "MergeError",
        "NestedInterruptError",
        "NestedThreadError",
        "NoCheckpointerError",
        "NodeCancelledError",
        "NodeTimeoutError",
        "NothingToRetryError",
        "PendingWorkError",
        "PoisonedRunError",
        "RunConflictError",
        "RunError",
        "SaverClosedError",
        "StateValidationError",
        "StepwellError",
        "StoreError",
        "ThreadBusyError",
        "UnknownCheckpointError",
        "UnknownInterruptError",
        "UnknownThreadError",
        "UnknownTypeError",
        "UnserializableValueError",
        "UnsupportedStorageError",
        "UsageError",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'stepwell' has no attribute {name!r}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
