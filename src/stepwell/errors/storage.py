"""The durable side: threads that somebody else has, rows that do not verify, databases that cannot be used."""

from __future__ import annotations

from typing import Any

from stepwell.errors.root import StepwellError, UsageError


class StoreError(StepwellError):
    """The store could not do what was asked."""

    code = "store_error"


class ThreadBusyError(StoreError):
    """Thread {thread_id} is being run by {holder} (run {run_id}). Wait for it, or for its lease to expire in
    {expires_in:.1f}s."""

    code = "thread_busy"

    def _said(self) -> dict[str, Any]:
        """Return the fields, and of the holder what a person can look for: its process id, and which boot of a host."""
        boot, _, rest = str(self._fields.get("holder", "?")).partition("|")
        pid = rest.split("|")[1:2]
        return {**self._fields, "holder": f"process {pid[0]} (boot {boot[:8]})"} if pid else self._fields


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
    """The saver is closed: {reason}. Keep it open as long as graphs use it: made by SqliteSaver(path) or
    PostgresSaver(conninfo), outside of any block, it lives until close()."""

    code = "saver_closed"


class CorruptRecordError(StoreError):
    """The record {record} does not verify: {reason}. `stepwell verify` says what depends on it, and from where
    `stepwell repair` goes on; or restore it from a backup."""

    code = "corrupt_record"


class UnknownReducerError(StoreError):
    """Channel {channel} of thread {thread_id} is stored as what was written to it, to be folded by {reducer} (row
    {seq}), which is not at hand. Declare the channel as DeltaChannel(reducer, name=...) with the name after "delta:",
    say --graph where you asked on the command line, or give it a new value by update_state(config, {{...}})."""

    code = "unknown_reducer"


class ZstdMissingError(StoreError, ImportError):
    """What is stored is compressed, or is to be, and no zstd is installed. pip install 'stepwell[zstd]', or run Python
    3.14 or newer."""

    code = "zstd_missing"


class UnsupportedStorageError(StoreError, ValueError):
    """This storage cannot hold durable state: {reason}"""

    code = "unsupported_storage"


class DatabaseUnavailableError(StoreError):
    """{where} cannot be reached: {reason}. Nothing was written by this call; try again when the server answers."""

    code = "database_unavailable"


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


class RunNotEndedError(StoreError):
    """Run {run_id} of thread {thread_id} has not ended, and nothing was deleted. Wait for it, cancel it, or go on with
    it by invoke(None, config) if its process died; delete_thread deletes the thread, whatever runs on it."""

    code = "run_not_ended"


class SchemaOutdatedError(UnsupportedStorageError):
    """{where} has schema version {found}; this release writes version {newest}. Stop what still uses the old release,
    and run `stepwell migrate`; or open it with migrate=True."""

    code = "schema_outdated"


class SchemaNewerError(UnsupportedStorageError):
    """{where} has schema version {found}; this release knows {newest}. Install the release that wrote it, or a newer
    one. Nothing was changed."""

    code = "schema_newer"


class SchemaMigrationError(StoreError):
    """Migration {migration} of {where} failed: {reason}. Nothing of it is kept: the schema is at version {found}, and
    the release that knows it can go on."""

    code = "schema_migration_failed"


class NewerFormatError(UnsupportedStorageError):
    """The {record} is written in format {found}; this release reads up to {known}. It is not damaged: read it with the
    release that wrote it, or a newer one."""

    code = "newer_format"


class NothingToRepairError(UsageError):
    """Thread {thread_id} is sound: nothing was written."""

    code = "nothing_to_repair"


class CannotRepairError(StoreError):
    """Thread {thread_id} cannot go on from {checkpoint_id}: {reason}. Checkpoints it can go on from: {sound}."""

    code = "cannot_repair"
