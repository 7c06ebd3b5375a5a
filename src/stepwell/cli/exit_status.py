"""What the process answers with: the one table from an error's `code` to the exit status.

The rule: a status is chosen by code, never by text, and its meaning does not change between releases.
"""

from __future__ import annotations

from typing import Final

OK: Final = 0
"""Done; a run that paused for an answer too."""
FAILED: Final = 1
"""A run that failed, a database in which `verify` found faults, a graph that `check` found threads stuck under,
migrations that `migrate --check` found pending, a data key that `rekey` could not unwrap, or a `delete` that was
declined."""
USAGE: Final = 2
"""The call cannot be carried out as given. Nothing ran."""
NOT_FOUND: Final = 3
"""No such database, thread, checkpoint, task or run."""
BUSY: Final = 4
"""Another run has the thread."""
CORRUPT: Final = 5
"""A record does not verify."""
STORAGE: Final = 6
"""The database could not be used."""
INTERNAL: Final = 70
"""A bug in Stepwell."""
INTERRUPTED: Final = 130
"""Ctrl-C; what was finished is recorded."""

STATUS_OF: Final = {
    # failed runs
    "run_error": FAILED,
    "node_failed": FAILED,
    "recursion_limit": FAILED,
    "node_timeout": FAILED,
    "node_cancelled": FAILED,
    "wait_timeout": FAILED,
    "awakeable_failed": FAILED,
    "merge_failed": FAILED,
    "invalid_state": FAILED,
    "poisoned_run": FAILED,
    "nested_interrupt": FAILED,
    "stream_closed": FAILED,
    "journal_error": FAILED,
    "non_determinism": FAILED,
    "step_failed": FAILED,
    "step_over": FAILED,
    "cannot_compensate": FAILED,
    "effect_not_performed": FAILED,
    "effect_in_doubt": FAILED,
    "effect_forbidden": FAILED,
    "effect_compensated": FAILED,
    "idempotency_conflict": FAILED,
    "approval_rejected": FAILED,
    "approval_expired": FAILED,
    "codec_error": FAILED,
    "unserializable_value": FAILED,
    "unknown_type": FAILED,
    # calls and graphs that cannot be used as given
    "usage_error": USAGE,
    "empty_input": USAGE,
    "invalid_config": USAGE,
    "invalid_update": USAGE,
    "invalid_namespace": USAGE,
    "invalid_item": USAGE,
    "no_parent_graph": USAGE,
    "nothing_to_retry": USAGE,
    "nothing_to_repair": USAGE,
    "thread_exists": USAGE,
    "file_taken": USAGE,
    "unusable_file": USAGE,
    "pending_work": USAGE,
    "run_conflict": USAGE,
    "message_conflict": USAGE,
    "invalid_wait": USAGE,
    "awakeable_completed": USAGE,
    "nested_thread": USAGE,
    "invalid_key": USAGE,
    "unknown_interrupt": USAGE,
    "interrupt_answered": USAGE,
    "already_decided": USAGE,
    "invalid_decision": USAGE,
    "ambiguous_answer": USAGE,
    "no_checkpointer": USAGE,
    "no_cache": USAGE,
    "invalid_checkpointer": USAGE,
    "read_only_saver": USAGE,
    "graph_error": USAGE,
    "effect_declaration": USAGE,
    "effect_not_in_doubt": USAGE,
    "invalid_resolution": USAGE,
    "invalid_graph": USAGE,
    "generator_entrypoint": USAGE,
    "graph_mismatch": USAGE,
    "incompatible_graph": USAGE,
    "graph_changed": USAGE,
    "unknown_reducer": USAGE,
    "zstd_missing": USAGE,
    "migration_failed": USAGE,
    "duplicate_type": USAGE,
    "import_failed": USAGE,
    # what is not there
    "unknown_database": NOT_FOUND,
    "unknown_thread": NOT_FOUND,
    "unknown_checkpoint": NOT_FOUND,
    "unknown_task": NOT_FOUND,
    "unknown_run": NOT_FOUND,
    "unknown_effect": NOT_FOUND,
    # somebody else's thread
    "thread_busy": BUSY,
    "effect_busy": BUSY,
    "lease_lost": BUSY,
    "run_not_ended": BUSY,
    # the durable side
    "corrupt_record": CORRUPT,
    "cannot_repair": CORRUPT,
    "tampered_record": CORRUPT,
    "plaintext_record": CORRUPT,
    "lost_key": CORRUPT,
    "store_error": STORAGE,
    "commit_unknown": STORAGE,
    "saver_closed": STORAGE,
    "items_closed": STORAGE,
    "unsupported_storage": STORAGE,
    "database_unavailable": STORAGE,
    "schema_outdated": STORAGE,
    "schema_newer": STORAGE,
    "schema_migration_failed": STORAGE,
    "newer_format": STORAGE,
    "thread_file": CORRUPT,
    "thread_file_newer": STORAGE,
    "encryption_error": STORAGE,
    "missing_key": STORAGE,
    "wrong_key": STORAGE,
    "key_service_failed": STORAGE,
    "database_encrypted": STORAGE,
    "plaintext_database": STORAGE,
    "encrypted_thread_file": STORAGE,
    "plaintext_thread_file": STORAGE,
    "key_taken": STORAGE,
    # the rest
    "stepwell_error": INTERNAL,
    "internal_error": INTERNAL,
    "interrupted": INTERRUPTED,
}


def exit_status(code: str) -> int:
    """Return the status for an error with this code. An error class of the user's own counts as a failed run."""
    return STATUS_OF.get(code, FAILED)
