"""What can be wrong with an effect: how it is declared, called, or what became of it."""

from __future__ import annotations

from stepwell.errors.journal import JournalError


class EffectDeclarationError(JournalError, ValueError):
    """Effect {name!r} cannot be safe as it is declared: {reason}"""

    code = "effect_declaration"


class EffectNotPerformed(JournalError):
    """The effect has not happened. Raise it in the body of an effect, or in its `on_doubt`, to say so for sure."""

    code = "effect_not_performed"


class EffectInDoubtError(JournalError, RuntimeError):
    """Whether effect {name!r} (key {key}) has happened is not known: {error}. Thread {thread_id} does not repeat it.
    Look at the other side, then say what happened: graph.resolve_effect(config, {key!r}, ...)."""

    code = "effect_in_doubt"


class EffectBusyError(JournalError, RuntimeError):
    """Effect {name!r} (key {key}) is being performed by run {run_id} of thread {thread_id}. Call it again when that is
    over."""

    code = "effect_busy"


class EffectForbiddenError(JournalError, RuntimeError):
    """Effect {name!r} is declared on_fork="forbid", and has been called here before: key {key} of thread {thread_id} is
    {status}. Go on in the lineage that called it, or declare it "reuse" or "reissue"."""

    code = "effect_forbidden"


class EffectCompensatedError(JournalError, RuntimeError):
    """Effect {name!r} (key {key}) happened and was compensated: its receipt is not used again. Fork from a checkpoint
    before it and declare on_fork="reissue", or give the call another key, to have it happen anew."""

    code = "effect_compensated"


class CannotCompensateError(JournalError, RuntimeError):
    """Effect {name!r} (key {key}) of thread {thread_id} cannot be compensated here: {reason} Nothing was done."""

    code = "cannot_compensate"


class UnknownEffectError(JournalError, LookupError):
    """Thread {thread_id} has no effect under the key {key}. `stepwell effects` lists those there are."""

    code = "unknown_effect"


class EffectNotInDoubtError(JournalError, ValueError):
    """Effect {name!r} (key {key}) of thread {thread_id} is not in doubt: it is {status}. Nothing was changed."""

    code = "effect_not_in_doubt"


class InvalidResolutionError(JournalError, ValueError):
    """Effect {key} cannot be resolved like this: {reason}. Nothing was changed."""

    code = "invalid_resolution"


class IdempotencyConflictError(JournalError, RuntimeError):
    """Key {user_key!r} of effect {name!r} was used for something else: for {recorded} then, for {attempted} now (key
    {key}, thread {thread_id}). One key is for one call: give this one a key of its own."""

    code = "idempotency_conflict"
