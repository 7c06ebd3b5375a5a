"""The whole exception tree. Every error has a stable `code`, typed fields and a next step.

    StepwellError
    ├── GraphError                     what is wrong with the graph as written (also a ValueError)
    │   ├── InvalidGraphError          · GraphMismatchError · DuplicateTypeError
    │   ├── IncompatibleGraphError     · GraphChangedError  · MigrationError
    │   └── GeneratorEntrypointError (also a NotImplementedError)
    ├── UsageError                     what is wrong with a call (also a ValueError)
    │   ├── EmptyInputError            · InvalidConfigError · InvalidUpdateError · NothingToRetryError
    │   ├── PendingWorkError           · RunConflictError   · NestedThreadError
    │   ├── InvalidCheckpointerError (also a TypeError)
    │   ├── InvalidNamespaceError      · InvalidItemError
    │   ├── FileTakenError             · UnusableFileError (`errors/files.py`)
    │   ├── AmbiguousAnswerError (also a RuntimeError)
    │   ├── UnknownInterruptError      · InterruptAnsweredError (AlreadyDecidedError) · InvalidDecisionError
    │   ├── MessageConflictError       · InvalidWaitError · AwakeableCompletedError · NothingToRepairError
    │   └── UnknownTaskError           · NoCheckpointerError · NoCacheError
    │                                · ParentCommand · ReadOnlySaverError (also a NotImplementedError)
    ├── RunError                       a run could not go on; its thread can be resumed
    │   ├── GraphRecursionError        · NodeTimeoutError · NodeCancelledError · MergeError
    │   ├── WaitTimeoutError (also a TimeoutError)  · AwakeableFailedError
    │   ├── StateValidationError       · PoisonedRunError · NestedInterruptError · StreamClosedError
    │   └── ItemsClosedError
    ├── StoreError                     the durable side
    │   ├── ThreadBusyError            · LeaseLostError · CommitUnknownError · SaverClosedError
    │   ├── ThreadExistsError (also a ValueError)
    │   ├── CorruptRecordError         · UnsupportedStorageError · UnknownThreadError · UnknownCheckpointError
    │   ├── UnknownRunError            · DatabaseUnavailableError · UnknownReducerError · ZstdMissingError
    │   ├── EncryptionError            keys, and rows that are not what was written (`errors/encryption.py`)
    │   ├── SchemaOutdatedError        · SchemaNewerError · NewerFormatError (all UnsupportedStorageError)
    │   └── SchemaMigrationError       · CannotRepairError · ThreadFileError · RunNotEndedError (`errors/storage.py`)
    ├── JournalError                   durable steps, effects, approvals (`errors/journal.py, effects.py, answers.py`)
    └── CodecError                     values and bytes
        └── UnserializableValueError   · UnknownTypeError

    AnswerNotUsedWarning (Warning)     an answer at a breakpoint, where nothing was asked
    JoinNotReleasedWarning (Warning)   a run finished although a join still waits
    GraphInterrupt (BaseException)     a pause, not an error: user code must not swallow it by accident

The CLI's exit codes read `code`, never the text. `fields()` gives the ids an operator needs. What every error can do
is `root`'s.
"""

from __future__ import annotations

from typing import Any, Literal

from stepwell.errors.answers import (
    AlreadyDecidedError as AlreadyDecidedError,
    AmbiguousAnswerError as AmbiguousAnswerError,
    ApprovalExpiredError as ApprovalExpiredError,
    ApprovalRejectedError as ApprovalRejectedError,
    InterruptAnsweredError as InterruptAnsweredError,
    InvalidDecisionError as InvalidDecisionError,
    UnknownInterruptError as UnknownInterruptError,
)
from stepwell.errors.effects import (
    CannotCompensateError as CannotCompensateError,
    EffectBusyError as EffectBusyError,
    EffectCompensatedError as EffectCompensatedError,
    EffectDeclarationError as EffectDeclarationError,
    EffectForbiddenError as EffectForbiddenError,
    EffectInDoubtError as EffectInDoubtError,
    EffectNotInDoubtError as EffectNotInDoubtError,
    EffectNotPerformed as EffectNotPerformed,
    IdempotencyConflictError as IdempotencyConflictError,
    InvalidResolutionError as InvalidResolutionError,
    UnknownEffectError as UnknownEffectError,
)
from stepwell.errors.encryption import (
    DatabaseEncryptedError as DatabaseEncryptedError,
    EncryptedThreadFileError as EncryptedThreadFileError,
    EncryptionError as EncryptionError,
    InvalidKeyError as InvalidKeyError,
    KeyServiceError as KeyServiceError,
    KeyTakenError as KeyTakenError,
    LostKeyError as LostKeyError,
    MissingKeyError as MissingKeyError,
    PlaintextDatabaseError as PlaintextDatabaseError,
    PlaintextRecordError as PlaintextRecordError,
    PlaintextThreadFileError as PlaintextThreadFileError,
    TamperedRecordError as TamperedRecordError,
    WrongKeyError as WrongKeyError,
)
from stepwell.errors.files import (
    FileTakenError as FileTakenError,
    ThreadFileError as ThreadFileError,
    ThreadFileNewerError as ThreadFileNewerError,
    UnusableFileError as UnusableFileError,
)
from stepwell.errors.graph import (
    DuplicateTypeError as DuplicateTypeError,
    GeneratorEntrypointError as GeneratorEntrypointError,
    GraphChangedError as GraphChangedError,
    GraphError as GraphError,
    GraphMismatchError as GraphMismatchError,
    IncompatibleGraphError as IncompatibleGraphError,
    InvalidGraphError as InvalidGraphError,
    MigrationError as MigrationError,
)
from stepwell.errors.journal import (
    JournalError as JournalError,
    NonDeterminismError as NonDeterminismError,
    StepError as StepError,
    StepOverError as StepOverError,
)
from stepwell.errors.root import (
    RunError as RunError,
    StepwellError as StepwellError,
    UsageError as UsageError,
    rebuild,
)
from stepwell.errors.signals import (
    AnswerNotUsedWarning as AnswerNotUsedWarning,
    GraphInterrupt as GraphInterrupt,
    JoinNotReleasedWarning as JoinNotReleasedWarning,
)
from stepwell.errors.storage import (
    CannotRepairError as CannotRepairError,
    CommitUnknownError as CommitUnknownError,
    CorruptRecordError as CorruptRecordError,
    DatabaseUnavailableError as DatabaseUnavailableError,
    LeaseLostError as LeaseLostError,
    NewerFormatError as NewerFormatError,
    NothingToRepairError as NothingToRepairError,
    RunNotEndedError as RunNotEndedError,
    SaverClosedError as SaverClosedError,
    SchemaMigrationError as SchemaMigrationError,
    SchemaNewerError as SchemaNewerError,
    SchemaOutdatedError as SchemaOutdatedError,
    StoreError as StoreError,
    ThreadBusyError as ThreadBusyError,
    ThreadExistsError as ThreadExistsError,
    UnknownCheckpointError as UnknownCheckpointError,
    UnknownReducerError as UnknownReducerError,
    UnknownRunError as UnknownRunError,
    UnknownThreadError as UnknownThreadError,
    UnsupportedStorageError as UnsupportedStorageError,
    ZstdMissingError as ZstdMissingError,
)
from stepwell.errors.waiting import (
    AwakeableCompletedError as AwakeableCompletedError,
    AwakeableFailedError as AwakeableFailedError,
    InvalidWaitError as InvalidWaitError,
    MessageConflictError as MessageConflictError,
    WaitTimeoutError as WaitTimeoutError,
)

# -- the call ---------------------------------------------------------------------------------------------------------


class EmptyInputError(UsageError):
    """Thread {thread_id} has nothing to continue. Received no input for __start__: pass an input to begin."""

    code = "empty_input"


class InvalidConfigError(UsageError):
    """The config is not valid: {reason}"""

    code = "invalid_config"


class InvalidUpdateError(UsageError):
    """The update is not valid: {reason}"""

    code = "invalid_update"


class ParentCommand(InvalidUpdateError):
    """There is no parent graph that could carry out {command}: it came from a graph that nothing else runs."""

    code = "no_parent_graph"

    def __init__(self, message: str | None = None, /, **fields: Any) -> None:
        super().__init__(message, **fields)
        self._message = self.args[0]
        self.args = (fields["command"],)  # LangGraph's name, and where its users look for the command

    def __str__(self) -> str:
        return str(self._message)

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuild, (type(self), self._message, self._fields)


class NothingToRetryError(UsageError):
    """Thread {thread_id} has no failed task to retry. Use invoke(None, config) to continue it, or pass an input."""

    code = "nothing_to_retry"


class UnknownTaskError(UsageError):
    """Checkpoint {checkpoint_id} of thread {thread_id} plans no task {tasks}. Planned there: {planned}."""

    code = "unknown_task"


class PendingWorkError(UsageError):
    """Thread {thread_id} waits for an answer ({interrupts}). Answer with Command(resume=...), or pass
    on_pending="discard" or "finish" with the new input."""

    code = "pending_work"


class RunConflictError(UsageError):
    """Run {run_id} was started with another input or thread. Use a new run_id, or the same input to get its result."""

    code = "run_conflict"


class NestedThreadError(UsageError):
    """Thread {thread_id} is being driven by this call's own node. Use another thread_id there, or no checkpointer."""

    code = "nested_thread"


class NoCheckpointerError(UsageError):
    """{operation} needs a checkpointer. No checkpointer set: compile the graph, or decorate the entrypoint, with
    checkpointer=SqliteSaver("file.db") or InMemorySaver()."""

    code = "no_checkpointer"


class NoCacheError(UsageError):
    """No cache is set for this graph, so there is nothing to clear: compile it with cache=."""

    code = "no_cache"


class InvalidCheckpointerError(UsageError, TypeError):
    """Invalid checkpointer provided: a {given}. Expected an instance of stepwell.SqliteSaver, PostgresSaver
    or InMemorySaver, as in SqliteSaver("threads.db")."""

    code = "invalid_checkpointer"


class ReadOnlySaverError(UsageError, NotImplementedError):
    """A saver does not take writes through {operation}(): checkpoints are written by runs, fenced and chained. To write
    state use graph.update_state(config, values, as_node=...), to copy a thread saver.copy_thread(source, target)."""

    code = "read_only_saver"


class InvalidNamespaceError(UsageError):
    """{namespace!r} is no namespace of the item store: {reason}. Give a tuple of labels, as in ("users", "ada")."""

    code = "invalid_namespace"


class InvalidItemError(UsageError):
    """The item store does not take this: {reason}."""

    code = "invalid_item"


# -- a run that could not go on ---------------------------------------------------------------------------------------


class GraphRecursionError(RunError, RecursionError):
    """Recursion limit of {limit} reached without hitting a stop condition (thread {thread_id}, checkpoint
    {checkpoint_id}). The state is saved: invoke(None, config) continues with a fresh limit; config["recursion_limit"]
    raises it."""

    code = "recursion_limit"


class NodeTimeoutError(RunError, TimeoutError):
    """Node {node!r} exceeded its {kind} timeout of {timeout:.3f}s (elapsed: {elapsed:.3f}s)."""

    code = "node_timeout"
    node: str
    kind: Literal["run", "idle"]
    timeout: float
    """Seconds: that of the two limits which was passed."""
    run_timeout: float | None
    idle_timeout: float | None
    elapsed: float
    """Seconds from the beginning of the attempt to the end of its time."""


class NodeCancelledError(RunError):
    """Node {node!r} raised CancelledError although the run was not cancelled."""

    code = "node_cancelled"


class MergeError(RunError):
    """The writes of {tasks} to channel {channel!r} could not be combined: {reason}. Their results are kept: fix the
    reducer, then retry(config) merges again."""

    code = "merge_failed"


class StateValidationError(RunError, ValueError):
    """Node {node!r} wrote an invalid value to field {field!r}: {reason}"""

    code = "invalid_state"


class PoisonedRunError(RunError):
    """Run {run_id} of thread {thread_id} was taken over {recoveries} times without progress and is given up. Fix what
    kills the process, then retry(config)."""

    code = "poisoned_run"


class NestedInterruptError(RunError):
    """A graph run inside node {node!r} asked a question, and nothing could carry the answer back to it. Ask from the
    outer graph's own nodes, or give the inner graph a checkpointer and a thread_id of its own."""

    code = "nested_interrupt"


class StreamClosedError(RunError):
    """Nobody takes what is sent to the stream mode {mode!r} any more: the run has ended, or its consumer has left. Send
    while the node runs, and wait for its helpers before it returns."""

    code = "stream_closed"


class ItemsClosedError(RunError):
    """The item {key!r} of {namespace!r} was written too late: the call that wrote it is over, and what it wrote is part
    of its outcome. Write while the node runs, and wait for its helpers before it returns."""

    code = "items_closed"


# -- values and bytes -------------------------------------------------------------------------------------------------


class CodecError(StepwellError):
    """A value could not be turned into bytes, or bytes into a value."""

    code = "codec_error"


class UnserializableValueError(CodecError, TypeError):
    """{path} is a {type_name}, which cannot be stored exactly{reason}. Store plain data, or register the type with
    stepwell.register_type()."""

    code = "unserializable_value"


class UnknownTypeError(CodecError):
    """{path} holds a {type_name}, which this graph's registry does not list. Register it, or give the saver
    on_unknown_type=."""

    code = "unknown_type"
