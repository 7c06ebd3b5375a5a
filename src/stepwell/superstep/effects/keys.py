"""By what an effect is known: its idempotency key, and the lineages in which it may have happened already."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from stepwell.ids import structural_hash

POSITION: Final = "position"
THREAD: Final = "thread"
GLOBAL: Final = "global"
SCOPES: Final = (THREAD, GLOBAL)
"""Scopes of a key that the user gives. Without one, the position is the key."""

BROUGHT: Final = -1
"""The lineage of what came along when a thread was forked off another one."""

Origins = Sequence[tuple[str, int]]
"""The threads a thread was copied from, the first one first, each with how many lineages came from there."""


def position_key(thread_id: str, lineage: int, position: str) -> str:
    """Return the key of an effect known by its position. No step, checkpoint, version, worker or attempt is in it."""
    return structural_hash("effect", thread_id, lineage, position)


def user_key(scope: str, thread_id: str, key: str, tenant: str = "") -> str:
    """Return the key of an effect to which the user gave one."""
    if scope == GLOBAL:
        return structural_hash("effect-global", tenant, key)
    return structural_hash("effect-thread", thread_id, key)


def renewed_key(key: str, thread_id: str = "") -> str:
    """Return the key of a new effect in place of one whose key must not be used again: its receipt has expired, it
    failed and is called with other inputs, or, in the thread given, another thread has the key for something else."""
    return structural_hash("effect-renewed", key, thread_id)


def compensation_key(key: str) -> str:
    """Return the key of what undoes an effect: the same whoever has it undone, so that this happens once."""
    return structural_hash("compensation", key)


def origin_of_lineage(thread_id: str, lineage: int, copied_from: Origins) -> str:
    """Return the thread in which a lineage was opened: a copy goes on under the keys of what it took along."""
    return next((origin for origin, lineages in copied_from if lineage < lineages), thread_id)


def lineages_to_search(lineage: int, forks: Iterable[tuple[int, int | None, int | None]]) -> list[int]:
    """Return the other lineages whose effects count for a call in this one, in the order in which they answer.

    `forks` are lineage, parent lineage and the seq forked from. Ancestors come first, the nearest one first, then the
    lineages forked from the same checkpoint as this one or an ancestor, then those forked from this one: whichever goes
    on first, the others find what it did. Last comes what another thread brought along.
    """
    known = {number: (parent, at) for number, parent, at in forks}
    chain = [lineage]
    while (parent := known.get(chain[-1], (None, None))[0]) is not None and parent not in chain:
        chain.append(parent)
    places = [known[each][1] for each in chain if each in known and known[each][1] is not None]
    beside = [other for at in places for other, (_, its) in sorted(known.items()) if its == at and other not in chain]
    below = [other for other, (parent, _) in sorted(known.items()) if parent == lineage]
    return [*chain[1:], *dict.fromkeys([*beside, *below]), BROUGHT]


def keys_of_place(
    thread_id: str,
    lineage: int,
    position: str,
    forks: Iterable[tuple[int, int | None, int | None]],
    last: Mapping[int, Sequence[str]],
    copied_from: Origins,
) -> list[str]:
    """Return the keys under which an effect at a position may be known in other lineages, in the order in which they
    answer. `last`: the key of what the thread did there last, by lineage; all keys of what was brought along. The key
    of the position itself comes after that: a copy of the thread, or what it was copied from, may have used it.
    """
    keys: list[str] = []
    for each in (lineage, *lineages_to_search(lineage, forks)):
        keys += last.get(each, ())
        if each != BROUGHT:
            keys.append(position_key(origin_of_lineage(thread_id, each, copied_from), each, position))
    return keys
