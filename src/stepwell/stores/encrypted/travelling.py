"""Effects of the scope "global" on their way to another database.

In a database they are encrypted with the database's key, which stays there. So in the file of a thread they are
encrypted with the thread's, which goes along, and where they arrive with that database's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from stepwell.errors import LostKeyError, TamperedRecordError
from stepwell.store import EffectRow, KeyRow, Restoration, Sealer, StoredRow, is_encrypted
from stepwell.stores.encrypted.cipher import DataKey, NotAuthentic
from stepwell.stores.encrypted.keyring import Keyring
from stepwell.stores.encrypted.sealer import opened_effect
from stepwell.superstep.effects.keys import GLOBAL


def travelling(row: StoredRow) -> EffectRow | None:
    """Return a row as that of an effect that changes its key on the way; None where it is none."""
    if row[0] != "effects":
        return None
    effect = EffectRow._make(row[1])
    return effect if effect.scope == GLOBAL and is_encrypted(effect.body) else None


def arriving(restoration: Restoration, keys: Keyring, sealer: Sealer) -> Restoration:
    """Return what is restored, with such effects under the key of the database that they come into."""
    wrapped, found = None, list[EffectRow]()
    for row in restoration.rows():
        if row[0] == "keys":
            wrapped = KeyRow._make(row[1])
        elif (effect := travelling(row)) is not None:
            found.append(effect)
    if not found:
        return restoration
    if wrapped is None:
        raise LostKeyError(**_place(found[0], "the data key of its thread is missing"))
    key = keys.key_of(wrapped)
    changed = {effect.key: tuple(sealer.effect(_opened(key, effect))) for effect in found}

    def rows() -> Iterator[StoredRow]:
        for row in restoration.rows():
            effect = travelling(row)
            yield row if effect is None else ("effects", changed[effect.key])

    return replace(restoration, rows=rows)


def _opened(key: DataKey, row: EffectRow) -> EffectRow:
    try:
        return opened_effect(key, row)
    except NotAuthentic as error:
        raise TamperedRecordError(**_place(row, str(error))) from None


def _place(row: EffectRow, reason: str) -> dict[str, object]:
    record = f"effects row of thread {row.thread_id!r} at {row.key!r}"
    return {"record": record, "reason": reason, "table": "effects", "thread_id": row.thread_id, "seq": row.key}
