"""Stepwell: durable execution for Python graphs. Every public name, nothing else.

Names load on first use, so that `import stepwell` costs next to nothing and pulls in no dependency.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from stepwell.homes import HOMES

if TYPE_CHECKING:
    from stepwell.codec import (
        register_type as register_type,
    )
    from stepwell.codec.raw_value import (
        RawValue as RawValue,
    )
    from stepwell.engine import (
        CompiledGraph as CompiledGraph,
    )
    from stepwell.engine.entrypoint import (
        entrypoint as entrypoint,
    )
    from stepwell.errors import (
        AlreadyDecidedError as AlreadyDecidedError,
        AmbiguousAnswerError as AmbiguousAnswerError,
        AnswerNotUsedWarning as AnswerNotUsedWarning,
        ApprovalExpiredError as ApprovalExpiredError,
        ApprovalRejectedError as ApprovalRejectedError,
        AwakeableCompletedError as AwakeableCompletedError,
        AwakeableFailedError as AwakeableFailedError,
        CannotCompensateError as CannotCompensateError,
        CannotRepairError as CannotRepairError,
        CodecError as CodecError,
        CommitUnknownError as CommitUnknownError,
        CorruptRecordError as CorruptRecordError,
        DatabaseEncryptedError as DatabaseEncryptedError,
        DatabaseUnavailableError as DatabaseUnavailableError,
        DuplicateTypeError as DuplicateTypeError,
        EffectBusyError as EffectBusyError,
        EffectCompensatedError as EffectCompensatedError,
        EffectDeclarationError as EffectDeclarationError,
        EffectForbiddenError as EffectForbiddenError,
        EffectInDoubtError as EffectInDoubtError,
        EffectNotInDoubtError as EffectNotInDoubtError,
        EffectNotPerformed as EffectNotPerformed,
        EmptyInputError as EmptyInputError,
        EncryptedThreadFileError as EncryptedThreadFileError,
        EncryptionError as EncryptionError,
        FileTakenError as FileTakenError,
        GeneratorEntrypointError as GeneratorEntrypointError,
        GraphChangedError as GraphChangedError,
        GraphError as GraphError,
        GraphInterrupt as GraphInterrupt,
        GraphMismatchError as GraphMismatchError,
        GraphRecursionError as GraphRecursionError,
        IdempotencyConflictError as IdempotencyConflictError,
        IncompatibleGraphError as IncompatibleGraphError,
        InterruptAnsweredError as InterruptAnsweredError,
        InvalidCheckpointerError as InvalidCheckpointerError,
        InvalidConfigError as InvalidConfigError,
        InvalidDecisionError as InvalidDecisionError,
        InvalidGraphError as InvalidGraphError,
        InvalidItemError as InvalidItemError,
        InvalidKeyError as InvalidKeyError,
        InvalidNamespaceError as InvalidNamespaceError,
        InvalidResolutionError as InvalidResolutionError,
        InvalidUpdateError as InvalidUpdateError,
        InvalidWaitError as InvalidWaitError,
        ItemsClosedError as ItemsClosedError,
        JoinNotReleasedWarning as JoinNotReleasedWarning,
        JournalError as JournalError,
        KeyServiceError as KeyServiceError,
        KeyTakenError as KeyTakenError,
        LeaseLostError as LeaseLostError,
        LostKeyError as LostKeyError,
        MergeError as MergeError,
        MessageConflictError as MessageConflictError,
        MigrationError as MigrationError,
        MissingKeyError as MissingKeyError,
        NestedInterruptError as NestedInterruptError,
        NestedThreadError as NestedThreadError,
        NewerFormatError as NewerFormatError,
        NoCacheError as NoCacheError,
        NoCheckpointerError as NoCheckpointerError,
        NodeCancelledError as NodeCancelledError,
        NodeTimeoutError as NodeTimeoutError,
        NonDeterminismError as NonDeterminismError,
        NothingToRepairError as NothingToRepairError,
        NothingToRetryError as NothingToRetryError,
        ParentCommand as ParentCommand,
        PendingWorkError as PendingWorkError,
        PlaintextDatabaseError as PlaintextDatabaseError,
        PlaintextRecordError as PlaintextRecordError,
        PlaintextThreadFileError as PlaintextThreadFileError,
        PoisonedRunError as PoisonedRunError,
        ReadOnlySaverError as ReadOnlySaverError,
        RunConflictError as RunConflictError,
        RunError as RunError,
        RunNotEndedError as RunNotEndedError,
        SaverClosedError as SaverClosedError,
        SchemaMigrationError as SchemaMigrationError,
        SchemaNewerError as SchemaNewerError,
        SchemaOutdatedError as SchemaOutdatedError,
        StateValidationError as StateValidationError,
        StepError as StepError,
        StepOverError as StepOverError,
        StepwellError as StepwellError,
        StoreError as StoreError,
        StreamClosedError as StreamClosedError,
        TamperedRecordError as TamperedRecordError,
        ThreadBusyError as ThreadBusyError,
        ThreadExistsError as ThreadExistsError,
        ThreadFileError as ThreadFileError,
        ThreadFileNewerError as ThreadFileNewerError,
        UnknownCheckpointError as UnknownCheckpointError,
        UnknownEffectError as UnknownEffectError,
        UnknownInterruptError as UnknownInterruptError,
        UnknownReducerError as UnknownReducerError,
        UnknownRunError as UnknownRunError,
        UnknownTaskError as UnknownTaskError,
        UnknownThreadError as UnknownThreadError,
        UnknownTypeError as UnknownTypeError,
        UnserializableValueError as UnserializableValueError,
        UnsupportedStorageError as UnsupportedStorageError,
        UnusableFileError as UnusableFileError,
        UsageError as UsageError,
        WaitTimeoutError as WaitTimeoutError,
        WrongKeyError as WrongKeyError,
        ZstdMissingError as ZstdMissingError,
    )
    from stepwell.graph.approval import (
        Approval as Approval,
        ApprovalRequest as ApprovalRequest,
        Approve as Approve,
        Decision as Decision,
        Reject as Reject,
    )
    from stepwell.graph.channels import (
        AnyValue as AnyValue,
        BinaryOperatorAggregate as BinaryOperatorAggregate,
        Channel as Channel,
        DeltaChannel as DeltaChannel,
        EphemeralValue as EphemeralValue,
        LastValue as LastValue,
        LastValueAfterFinish as LastValueAfterFinish,
        NamedBarrierValue as NamedBarrierValue,
        Topic as Topic,
        UntrackedValue as UntrackedValue,
    )
    from stepwell.graph.managed import (
        IsLastStep as IsLastStep,
        RemainingSteps as RemainingSteps,
    )
    from stepwell.graph.messages import (
        REMOVE_ALL_MESSAGES as REMOVE_ALL_MESSAGES,
        MessagesState as MessagesState,
        RemoveMessage as RemoveMessage,
        add_messages as add_messages,
    )
    from stepwell.graph.policies import (
        CachePolicy as CachePolicy,
        RetryPolicy as RetryPolicy,
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
        START as START,
        Answer as Answer,
        Command as Command,
        Interrupt as Interrupt,
        Overwrite as Overwrite,
        Send as Send,
        StateUpdate as StateUpdate,
        Waiting as Waiting,
    )
    from stepwell.items import (
        BaseStore as BaseStore,
        GetOp as GetOp,
        Item as Item,
        ListNamespacesOp as ListNamespacesOp,
        MatchCondition as MatchCondition,
        PutOp as PutOp,
        SearchItem as SearchItem,
        SearchOp as SearchOp,
        TTLConfig as TTLConfig,
    )
    from stepwell.plan.compatibility import (
        GraphChange as GraphChange,
    )
    from stepwell.runtime.effects.compensating import (
        Undone as Undone,
    )
    from stepwell.runtime.effects.decorator import (
        effect as effect,
        wrap_tool as wrap_tool,
    )
    from stepwell.runtime.effects.doubting import (
        Doubt as Doubt,
    )
    from stepwell.runtime.execution import (
        Cost as Cost,
        GraphExecution as GraphExecution,
    )
    from stepwell.runtime.reading.journal_entry import (
        JournalEntry as JournalEntry,
    )
    from stepwell.runtime.reading.lineages import (
        Lineage as Lineage,
    )
    from stepwell.runtime.reading.snapshot import (
        PregelTask as PregelTask,
        StateSnapshot as StateSnapshot,
    )
    from stepwell.runtime.scope import (
        ExecutionInfo as ExecutionInfo,
        MessageWriter as MessageWriter,
        Runtime as Runtime,
        ServerInfo as ServerInfo,
        StreamWriter as StreamWriter,
        get_config as get_config,
        get_runtime as get_runtime,
        get_store as get_store,
        get_stream_writer as get_stream_writer,
        interrupt as interrupt,
    )
    from stepwell.runtime.steps.task import (
        task as task,
    )
    from stepwell.runtime.stream.parts import (
        All as All,
        CheckpointPayload as CheckpointPayload,
        CheckpointStreamPart as CheckpointStreamPart,
        CheckpointTask as CheckpointTask,
        CustomStreamPart as CustomStreamPart,
        DebugPayload as DebugPayload,
        DebugStreamPart as DebugStreamPart,
        Durability as Durability,
        GraphOutput as GraphOutput,
        MessagesStreamPart as MessagesStreamPart,
        StreamMode as StreamMode,
        StreamPart as StreamPart,
        TaskPayload as TaskPayload,
        TaskResultPayload as TaskResultPayload,
        TasksStreamPart as TasksStreamPart,
        UpdatesStreamPart as UpdatesStreamPart,
        ValuesStreamPart as ValuesStreamPart,
    )
    from stepwell.runtime.waits import (
        Awakeable as Awakeable,
        awakeable as awakeable,
        sleep as sleep,
        sleep_until as sleep_until,
        wait_for as wait_for,
    )
    from stepwell.savers.items import (
        AsyncSqliteStore as AsyncSqliteStore,
        InMemoryStore as InMemoryStore,
        SqliteStore as SqliteStore,
    )
    from stepwell.savers.postgres import (
        AsyncPostgresSaver as AsyncPostgresSaver,
        AsyncPostgresStore as AsyncPostgresStore,
        PostgresSaver as PostgresSaver,
        PostgresStore as PostgresStore,
    )
    from stepwell.savers.raw import (
        RawChannel as RawChannel,
        RawCheckpoint as RawCheckpoint,
    )
    from stepwell.savers.retention.choosing import (
        PruneReport as PruneReport,
        Ttl as Ttl,
    )
    from stepwell.savers.retention.deleting import (
        RunsReport as RunsReport,
    )
    from stepwell.savers.retention.pruning import (
        RunLeft as RunLeft,
    )
    from stepwell.savers.runs import (
        RunPage as RunPage,
        RunRecord as RunRecord,
    )
    from stepwell.savers.sqlite import (
        AsyncSqliteSaver as AsyncSqliteSaver,
        InMemorySaver as InMemorySaver,
        MemorySaver as MemorySaver,
        SqliteSaver as SqliteSaver,
    )
    from stepwell.savers.threads import (
        ThreadSummary as ThreadSummary,
    )
    from stepwell.savers.tuples import (
        Checkpoint as Checkpoint,
        CheckpointTuple as CheckpointTuple,
    )
    from stepwell.store.cache import (
        Cache as Cache,
        CacheKey as CacheKey,
    )
    from stepwell.stores.encrypted.cache import (
        EncryptedCache as EncryptedCache,
    )
    from stepwell.stores.encrypted.encryption import (
        Encryption as Encryption,
    )
    from stepwell.stores.encrypted.services import (
        KeyContext as KeyContext,
        KeyService as KeyService,
        LocalKeys as LocalKeys,
    )
    from stepwell.stores.encrypted.wrapping import (
        Rekeyed as Rekeyed,
    )
    from stepwell.stores.sqlite.cache import (
        InMemoryCache as InMemoryCache,
        SqliteCache as SqliteCache,
    )

_HOME_OF = {name: home for home, names in HOMES.items() for name in names}

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
