"""What does not decrypt, as faults: what an audit adds to those of the rows as they are stored."""

from __future__ import annotations

from collections.abc import Callable

from stepwell.errors import CorruptRecordError, EncryptionError, PlaintextRecordError, TamperedRecordError
from stepwell.store import Fault


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
