"""What `get_journal` finds: the records of steps and effects, newest first, page by page.

Order is `seq`. Each page is read in a snapshot of its own. The rule: what is read is what is shown, with the
checkpoints it stands on; a row that does not verify, or does not stand on the checkpoint it names, is an error.
"""

from __future__ import annotations

from collections.abc import Sequence

from stepwell.codec import Codec
from stepwell.errors import InvalidConfigError, UnknownThreadError
from stepwell.runtime.config import RunConfig
from stepwell.runtime.reading.history import Line, line_head, seq_at
from stepwell.runtime.reading.journal_entry import JournalEntry
from stepwell.runtime.reading.journal_page import Page, entry_of, said_by
from stepwell.runtime.reading.paging import Paged, checked_limit
from stepwell.runtime.reading.unreadable import LenientCodec
from stepwell.store import JournalQuery, Reader, RecordRow, Store, ThreadRow
from stepwell.superstep import lifecycle
from stepwell.superstep.effects.layout import Intent
from stepwell.superstep.effects.resolution import Resolved

Before = int | JournalEntry | None


def journal(
    store: Store,
    codec: Codec,
    address: RunConfig,
    *,
    before: Before = None,
    limit: int | None = None,
    lineage: Line | None = None,
) -> Paged[JournalEntry]:
    """Return the entries these arguments select, newest first. Whatever is wrong with them is raised here."""
    checked_limit(limit)
    with store.reading() as reader:
        query = _start(reader, address, before, lineage)
    return Paged(_Walk(store, codec, query).turn, limit)


def entry_at(store: Store, codec: Codec, thread_id: str, seq: int) -> JournalEntry:
    """Return the entry of one record, whatever else can be read of the journal."""
    with store.reading() as reader:
        record = reader.record(thread_id, seq)
        page = Page(reader, None, [record])
    return entry_of(LenientCodec(codec), record, page)


class _Walk:
    """Where in a journal its reader stands."""

    def __init__(self, store: Store, codec: Codec, query: JournalQuery | None) -> None:
        self._store = store
        self._codec = LenientCodec(codec)
        self._query = query
        self._expected: RecordRow | None = None
        self._ended: set[int] = set()
        """Intents whose end was told, and that are still to come."""
        self._starts_midway = query is not None and query.before_seq is not None

    def turn(self, size: int) -> tuple[Sequence[JournalEntry], int | None]:
        """Read the next page that has something to tell, or the last one."""
        while True:
            found, at = self._read(size)
            if found or at is None:
                return found, at

    def _read(self, size: int) -> tuple[Sequence[JournalEntry], int | None]:
        """Read a page. One row more is read than shown: it says whether anything is left."""
        query = self._query
        if query is None:
            return (), None
        with self._store.reading() as reader:
            thread = self._thread(reader, query.thread_id)
            rows = reader.journal(_bounded(query, query.before_seq, size + 1))
            if self._expected is not None and rows[:1] != [self._expected]:
                told = f"Thread {query.thread_id} was deleted while its journal was read: list it again."
                raise UnknownThreadError(told, thread_id=query.thread_id)
            shown = [row for i, row in enumerate(rows[:size]) if not _is_twin(rows, i) and self._is_told(reader, row)]
            page = Page(reader, thread, shown)
        found = [entry_of(self._codec, row, page) for row in shown]
        if len(rows) <= size:
            return found, None
        self._expected = rows[size]
        self._query = _bounded(query, rows[size].seq + 1, None)
        return found, rows[size - 1].seq if size else None

    def _thread(self, reader: Reader, thread_id: str) -> ThreadRow | None:
        if self._expected is None:
            reader.newest(thread_id, "")  # a lost tail is noticed, not listed around
        thread = reader.thread(thread_id)
        return thread if thread is not None and thread.run_id and self._store.is_held(thread) else None

    def _is_told(self, reader: Reader, record: RecordRow) -> bool:
        """Tell whether a record is an entry: an intent is not, where its end is one."""
        if record.kind not in lifecycle.EFFECT_KINDS:
            return True
        said = said_by(record)
        if not isinstance(said, Intent):
            ended = said.ended if isinstance(said, Resolved) else said
            self._ended.add(ended.intent_seq)
            return True
        if record.seq in self._ended:
            self._ended.discard(record.seq)
            return False
        return not (self._starts_midway and _has_ended(reader, record))


def _has_ended(reader: Reader, intent: RecordRow) -> bool:
    """Tell whether the end of an intent is recorded, behind where the list began."""
    for record in reader.records(intent.thread_id, intent.base_seq):
        if record.seq > intent.seq and record.kind in lifecycle.EFFECT_KINDS:
            said = said_by(record)
            ended = said.ended if isinstance(said, Resolved) else said
            if not isinstance(ended, Intent) and ended.intent_seq == intent.seq:
                return True
    return False


def _is_twin(newest_first: Sequence[RecordRow], index: int) -> bool:
    """Tell whether a row stands beside the failure of an effect and says the same, for the node that runs again."""
    if index + 1 == len(newest_first):
        return False
    row, older = newest_first[index], newest_first[index + 1]
    failed = row.kind == lifecycle.STEP and older.kind == lifecycle.EFFECT_FAILED
    return failed and older.seq == row.seq - 1 and older.task_id == row.task_id


# -- which records ----------------------------------------------------------------------------------------------------


def _bounded(query: JournalQuery, before_seq: int | None, limit: int | None) -> JournalQuery:
    return JournalQuery(query.thread_id, before_seq, query.base_seq, query.line, limit)


def _start(reader: Reader, address: RunConfig, before: Before, lineage: Line | None) -> JournalQuery | None:
    """Return the query that the first page begins with; None where nothing can be found."""
    thread_id, here = address.thread_id or "", address.checkpoint_id
    older = before.seq if isinstance(before, JournalEntry) else before
    if older is not None and (isinstance(older, bool) or not isinstance(older, int)):
        raise InvalidConfigError(reason=f"before= is an entry, or its seq, not {before!r}", key="before")
    if lineage is not None:
        head = line_head(reader, address, lineage)
        return None if head is None else JournalQuery(thread_id, older, line=_line(reader, thread_id, head, here))
    if here is None:
        return JournalQuery(thread_id, older)
    return JournalQuery(thread_id, older, base_seq=seq_at(reader, thread_id, address.namespace, here))


def _line(reader: Reader, thread_id: str, head: int, here: str | None) -> list[tuple[int, int]]:
    """Return a lineage and its ancestors, each up to where the next one was forked off: without the work on that
    checkpoint, which no fork takes along."""
    lineages = {row.lineage: row for row in reader.lineages(thread_id)}
    at, until = reader.lineage_of(thread_id, head), head if here is not None else _NO_END
    line: list[tuple[int, int]] = []
    while at is not None:
        line.append((at, until))
        row = lineages.get(at)
        at, until = (row.parent_lineage, row.parent_seq or 0) if row is not None else (None, 0)
    return line


_NO_END = 2**62
