"""What a call of an effect is to do about what is known of it.

The rules kept (INV-7): the body runs only under an intent that is durable; a receipt answers every later call; the same
key with other inputs is an error; an intent without a receipt is in doubt and follows the declared policy. So of one
effect there is at most one attempt at a time whose outcome nobody knows, and exactly one receipt.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from stepwell.superstep.effects.keys import renewed_key

INTENT: Final = "intent"
DONE: Final = "done"
FAILED: Final = "failed"
DOUBT: Final = "doubt"
COMPENSATED: Final = "compensated"

STATUSES: Final = (INTENT, DONE, FAILED, DOUBT, COMPENSATED)

REUSE: Final = "reuse"
REISSUE: Final = "reissue"
FORBID: Final = "forbid"

ON_FORK: Final = (REUSE, REISSUE, FORBID)


class Known(NamedTuple):
    """An effect as far as the rules look at it."""

    key: str
    thread_id: str
    status: str
    fingerprint: str
    finished_at: int
    """Microseconds of wall time."""
    running: bool = False
    """Whether somebody is at it: an intent whose writer still holds its thread and has not given the call up."""


class Asked(NamedTuple):
    """A call of an effect."""

    key: str
    fingerprint: str
    thread_id: str
    by_user: bool
    """Whether the user gave the key. Then it reuses across forks and copies, whatever `on_fork` says."""
    on_fork: str = REUSE
    valid_for: int | None = None
    """For how many microseconds a receipt may be reused."""


class Perform(NamedTuple):
    """Run the body, under a new intent for this key."""

    key: str


class Reuse(NamedTuple):
    """Return the receipt of this effect."""

    effect: Known
    inherited: bool
    """Whether it happened in another lineage or thread."""


class InDoubt(NamedTuple):
    """Follow the declared policy: whether this effect has happened is not known."""

    effect: Known


class Renew(NamedTuple):
    """Look at this key instead: what is known must not answer, and its key must not be used again."""

    key: str


class Refuse(NamedTuple):
    """Do nothing, and say why."""

    why: str
    """conflict | other_inputs | busy | forbidden | compensated"""
    effect: Known


Verdict = Perform | Reuse | InDoubt | Renew | Refuse

CONFLICT: Final = "conflict"
"""A key of the user's with other inputs."""
OTHER_INPUTS: Final = "other_inputs"
"""A position with other inputs, or another action."""
BUSY: Final = "busy"
FORBIDDEN: Final = "forbidden"
IS_COMPENSATED: Final = "compensated"


def judge(
    asked: Asked, under_key: Sequence[Known], in_lineages: Sequence[Known], now: int, renewed: bool = False
) -> Verdict:
    """Return what a call is to do.

    `under_key` is what is known under the key of the call, once for each thread that has it; `in_lineages` what counts
    at its position in other lineages, in the order in which they answer; `renewed` tells whether anything is known
    under the renewed key. Where the verdict is `Renew`, judge again with that key and no lineages.
    """
    own = own_of(asked, under_key)
    if own is None:
        return _first_here(asked, under_key, in_lineages, now)
    if renewed:
        return Renew(renewed_key(own.key))
    if own.fingerprint != asked.fingerprint:
        if asked.by_user:
            return Refuse(CONFLICT, own)
        if own.status == FAILED:  # it has not happened, and the attempt that called it so is over
            return Renew(renewed_key(own.key))
        return Refuse(OTHER_INPUTS, own)
    if own.status == FAILED:
        return Perform(own.key)
    if _expired(asked, own, now):
        return Renew(renewed_key(own.key))
    return _answer(own, inherited=own.thread_id != asked.thread_id)


def spokesman(under_key: Sequence[Known], thread_id: str, fingerprint: str) -> Known:
    """Return what speaks for all that is known under one key of a call with these inputs: it is one effect, whoever did
    it. What is known somewhere settles what is in doubt elsewhere; among equals a thread's own row speaks."""
    same = [each for each in under_key if each.fingerprint == fingerprint]
    return min(same, key=lambda each: (_rank(each), each.thread_id != thread_id, each.thread_id))


def is_renewable(asked: Asked, own: Known) -> bool:
    """Tell whether a new effect may stand under the renewed key of this one: only then it is to be looked for."""
    return own.status == FAILED or (own.status == DONE and asked.valid_for is not None)


def own_of(asked: Asked, under_key: Sequence[Known]) -> Known | None:
    """Return what answers as the call's own: of a position, what its thread did; of a user's key, what anybody did."""
    mine = next((each for each in under_key if asked.by_user or each.thread_id == asked.thread_id), None)
    return None if mine is None else spokesman(under_key, asked.thread_id, mine.fingerprint)


def _first_here(asked: Asked, under_key: Sequence[Known], in_lineages: Sequence[Known], now: int) -> Verdict:
    """Judge a call that its lineage has not made yet, by what happened elsewhere."""
    taken = bool(under_key)
    anew = Renew(renewed_key(asked.key, asked.thread_id)) if taken else Perform(asked.key)
    there = [effect for effect in (*under_key, *in_lineages) if effect.status != FAILED]
    if asked.on_fork == REISSUE or not there:
        return anew
    if asked.on_fork == FORBID:
        return Refuse(FORBIDDEN, there[0])
    same = next((effect for effect in there if effect.fingerprint == asked.fingerprint), None)
    return anew if same is None or _expired(asked, same, now) else _answer(same, inherited=True)


def _answer(effect: Known, inherited: bool) -> Verdict:
    if effect.status == COMPENSATED:
        return Refuse(IS_COMPENSATED, effect)
    if effect.status == DONE:
        return Reuse(effect, inherited)
    return Refuse(BUSY, effect) if effect.running else InDoubt(effect)


def _expired(asked: Asked, effect: Known, now: int) -> bool:
    return effect.status == DONE and asked.valid_for is not None and now - effect.finished_at > asked.valid_for


def _rank(effect: Known) -> int:
    """Compensated, done, running, in doubt, failed: what is nearer to the truth speaks first."""
    if effect.status == INTENT:
        return 2 if effect.running else 3
    return {COMPENSATED: 0, DONE: 1, DOUBT: 3}.get(effect.status, 4)
