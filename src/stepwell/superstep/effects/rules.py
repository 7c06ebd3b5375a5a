"""What a call of an effect is to do about what is known of it.

The rules kept (INV-7): the body runs only under an intent that is durable; a receipt answers every later call; the same
key with other inputs is an error; an intent without a receipt is in doubt and follows the declared policy. So of one
effect there is at most one attempt at a time whose outcome nobody knows, and exactly one receipt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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


class Refuse(NamedTuple):
    """Do nothing, and say why."""

    why: str
    """conflict | other_inputs | busy | forbidden | compensated"""
    effect: Known


Verdict = Perform | Reuse | InDoubt | Refuse

LookUp = Callable[[str], Sequence[Known]]
"""Finds what is known under a key, once for each thread that has it."""

CONFLICT: Final = "conflict"
"""A key of the user's with other inputs."""
OTHER_INPUTS: Final = "other_inputs"
"""A position with other inputs, or another action."""
BUSY: Final = "busy"
FORBIDDEN: Final = "forbidden"
IS_COMPENSATED: Final = "compensated"


def judge(asked: Asked, look_up: LookUp, in_lineages: Sequence[Known], now: int) -> Verdict:
    """Return what a call is to do.

    `asked.key` is the key of what the thread did here last, else that of the position; `in_lineages` what counts at the
    position in other lineages, in the order in which they answer. Where what is known under a key must not answer, and
    the key must not be used again, the key renewed from it answers in its place.
    """
    while True:
        found = _judge_at(asked, look_up, in_lineages, now)
        if not isinstance(found, str):
            return found
        asked = asked._replace(key=found)


def counting(asked: Asked, keys: Iterable[str], look_up: LookUp, now: int) -> list[Known]:
    """Return what is known under these keys of other lineages, or under those that were renewed from them."""
    found = (_last(asked, key, look_up, now) for key in keys)
    return list({each.key: each for each in found if each is not None and each.key != asked.key}.values())


def spokesman(under_key: Sequence[Known], thread_id: str) -> Known:
    """Return what speaks for all that is known under one key: it is one effect, whoever did it. What is known somewhere
    settles what is in doubt elsewhere; among equals a thread's own row speaks."""
    return min(under_key, key=lambda each: (_rank(each), each.thread_id != thread_id, each.thread_id))


def _judge_at(asked: Asked, look_up: LookUp, in_lineages: Sequence[Known], now: int) -> Verdict | str:
    """Judge by what is known under the key of the call itself. A text: the key to look at instead."""
    under_key = look_up(asked.key)
    if not under_key:
        return _elsewhere(asked, in_lineages, Perform(asked.key), now)
    known = spokesman(under_key, asked.thread_id)
    if (followed := _followed_by(asked, known, look_up, now)) is not None:
        return followed
    is_same = known.fingerprint == asked.fingerprint
    if asked.by_user and not is_same:
        return Refuse(CONFLICT, known)
    if known.status == FAILED:  # it has not happened, and its key is still for nothing else
        return _elsewhere(asked, in_lineages, Perform(known.key) if is_same else renewed_key(known.key), now)
    is_own = any(each.thread_id == asked.thread_id for each in under_key)
    if is_own and not is_same:
        return Refuse(OTHER_INPUTS, known)
    is_expired = is_same and _expired(asked, known, now)
    if is_own and not is_expired:
        return _answer(known, inherited=known.thread_id != asked.thread_id)
    anew = renewed_key(known.key) if is_expired else renewed_key(known.key, asked.thread_id)
    return _elsewhere(asked, in_lineages if is_own else (known, *in_lineages), anew, now)


def _last(asked: Asked, key: str, look_up: LookUp, now: int) -> Known | None:
    under_key = look_up(key)
    if not under_key:
        return None
    known = spokesman(under_key, asked.thread_id)
    followed = _followed_by(asked, known, look_up, now)
    return known if followed is None else _last(asked, followed, look_up, now)


def _followed_by(asked: Asked, known: Known, look_up: LookUp, now: int) -> str | None:
    """Return the key that was renewed from this effect's, if that was and answers since then."""
    if known.status != FAILED and not _expired(asked, known, now):
        return None
    renewed = renewed_key(known.key)
    return renewed if look_up(renewed) else None


def _elsewhere(asked: Asked, in_lineages: Sequence[Known], anew: Perform | str, now: int) -> Verdict | str:
    """Judge a call of what has not happened here, by what happened elsewhere. `anew`: what to do if nothing did."""
    there = [effect for effect in in_lineages if effect.status != FAILED]
    if asked.on_fork == REISSUE or not there:
        return anew
    if asked.on_fork == FORBID:
        return Refuse(FORBIDDEN, there[0])
    same = (each for each in there if each.fingerprint == asked.fingerprint and not _expired(asked, each, now))
    found = next(same, None)
    return anew if found is None else _answer(found, inherited=True)


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
