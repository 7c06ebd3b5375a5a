"""The durable side: threads that somebody else has, rows that do not verify, databases that cannot be used."""

from __future__ import annotations

from stepwell.errors.root import StepwellError


class StoreError(StepwellError):
    """The store could not do what was asked."""

    code = "store_error"


class ThreadBusyError(StoreError):
    """Thread {thread_id} is being run by {holder} (run {run_id}). Wait for it, or for its lease to expire in
    {expires_in:.1f}s."""

    code = "thread_busy"


class ThreadExistsError(StoreError, ValueError):
    """Thread {thread_id} is not empty, and nothing is written over it. Give another thread_id, or delete that thread
    first."""

    code = "thread_exists"


class LeaseLostError(StoreError):
    """Run {run_id} lost its lease on thread {thread_id}: another run took over. Nothing was written; read the
    thread's state."""

    code = "lease_lost"


class CommitUnknownError(StoreError):
    """The store could not say whether a commit to thread {thread_id} landed: {reason}. Read the thread's state before
    going on; invoke(None, config) continues from whatever is there."""

    code = "commit_unknown"


class SaverClosedError(StoreError):
    """The saver is closed: {reason}. Keep it open as long as graphs use it, or make a long-lived one with
    SqliteSaver(path)."""

    code = "saver_closed"


class CorruptRecordError(StoreError):
    """The record {record} does not verify: {reason}. Restore it from a backup, or fork from an earlier checkpoint."""

    code = "corrupt_record"


class UnsupportedStorageError(StoreError, ValueError):
    """This storage cannot hold durable state: {reason}"""

    code = "unsupported_storage"


class UnknownThreadError(StoreError, KeyError):
    """There is no thread {thread_id}."""

    code = "unknown_thread"

    def __str__(self) -> str:
        return str(self.args[0])


class UnknownCheckpointError(StoreError, KeyError):
    """Thread {thread_id} has no checkpoint {checkpoint_id}."""

    code = "unknown_checkpoint"

    def __str__(self) -> str:
        return str(self.args[0])


class UnknownRunError(StoreError, KeyError):
    """There is no run {run_id}."""

    code = "unknown_run"

    def __str__(self) -> str:
        return str(self.args[0])
