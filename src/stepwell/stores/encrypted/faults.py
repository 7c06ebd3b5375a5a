"""What does not decrypt, as faults: what an audit adds to those of the rows as they are stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from stepwell.errors import CorruptRecordError, EncryptionError, PlaintextRecordError, TamperedRecordError
from stepwell.store import EffectsQuery, Fault, Reader
from stepwell.stores.shared.referring import Referring


def faults_of(thread_id: str, *reads: Callable[[], object]) -> list[Fault]:
    """Return why these reads of a thread are refused, the first fault of each; what is damaged is told elsewhere."""
    found = []
    for read in reads:
        try:
            read()
        except (TamperedRecordError, PlaintextRecordError) as error:
            at = error.fields()
            told = (at["table"], at["thread_id"], at["seq"], at["reason"])
            found.append(Fault.of(str(error), *told, is_row=True))
        except EncryptionError as error:  # no key: it is the same for every table
            return [Fault.of(str(error), "keys", thread_id, "", str(error))]
        except CorruptRecordError:
            pass
    return found


def missing_of(reader: Reader, thread_id: str) -> Iterator[Fault]:
    """Yield what the rows of a thread refer to that is not there: only decrypted do they say what that is."""
    checkpoints, records = reader.everything(thread_id)
    anchors = {anchor.seq: anchor.held for anchor in reader.anchors(thread_id)}
    referring = Referring(thread_id)
    for checkpoint in checkpoints:
        referring.checkpoint(checkpoint, bool(anchors.get(checkpoint.seq)))
    for record in records:
        referring.record(record)
    for effect in reader.effects(EffectsQuery(thread_id)):
        referring.effect(effect)
    seqs = {row.seq for row in checkpoints}, {row.seq for row in records}
    for table, at, reason in referring.missing(*seqs, reader.blob_names(thread_id), reader.effect, anchors):
        yield Fault.of(f"{table} row of thread {thread_id!r} at {at}: {reason}", table, thread_id, at, reason)
