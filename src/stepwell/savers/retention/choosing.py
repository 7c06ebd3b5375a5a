"""Which threads a call of `prune` or `sweep` is about, what it keeps of them, and what is said of it afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Literal
from uuid import UUID

from stepwell.errors import (
    CorruptRecordError,
    DatabaseEncryptedError,
    EncryptionError,
    InvalidConfigError,
    ThreadBusyError,
)
from stepwell.runtime.config import thread_id_of
from stepwell.savers.retention.open_work import open_work
from stepwell.savers.retention.pruning import PrunedThread, prune_thread
from stepwell.savers.runs import ThreadId
from stepwell.savers.threads import list_threads
from stepwell.store import Deletion, Store
from stepwell.superstep.retention import Policy

Strategy = Literal["keep_latest", "delete"]
Threads = ThreadId | Sequence[ThreadId] | Mapping[str, Any]
Age = timedelta | datetime


@dataclass(slots=True)
class PruneReport:
    """What a call took out, of how many threads."""

    threads: int = 0
    """Threads that were pruned and are still there, whether or not there was anything to take out."""
    deleted: int = 0
    """Threads that were deleted as a whole."""
    checkpoints: int = 0
    records: int = 0
    events: int = 0
    runs: int = 0
    held: int = 0
    """Checkpoints that are listed nowhere and stay, since those that are need them."""
    skipped: dict[str, str] = field(default_factory=dict)
    """Threads that were left as they are, each with the reason."""

    def add(self, pruned: PrunedThread) -> None:
        """Count what was taken out of one thread."""
        self.threads += 1
        self.checkpoints += pruned.checkpoints
        self.records += pruned.records
        self.events += pruned.events
        self.runs += pruned.runs
        self.held += pruned.held


@dataclass(frozen=True, slots=True)
class Ttl:
    """How long threads live after they were last changed, and what becomes of them then."""

    after: timedelta
    strategy: Strategy = "delete"


def prune(
    store: Store,
    now: int,
    threads: Threads,
    keep_last: int | None,
    older_than: Age | None,
    strategy: Strategy | None,
    unfinished: bool,
) -> PruneReport:
    """Prune the threads that are named, or that a filter selects."""
    before = None if older_than is None else moment_before(now, older_than)
    chosen = _strategy(strategy, keep_last, before)
    if unfinished and chosen != "delete":
        raise InvalidConfigError(
            reason='unfinished goes with strategy="delete": nothing else takes it', key="unfinished"
        )
    one = isinstance(threads, str | int | UUID)
    report = PruneReport()
    for thread_id, updated_at in _chosen(store, threads, report):
        if chosen != "delete":
            policy = Policy(1 if chosen == "keep_latest" else keep_last, before)
            _each(report, thread_id, one, partial(_prune, store, report, thread_id, policy, now))
        elif before is None or updated_at is None or updated_at < before:
            _each(report, thread_id, one, partial(_delete, store, report, thread_id, now, before, unfinished))
    return report


def sweep(store: Store, now: int, ttl: Ttl, unfinished: bool, filter: Mapping[str, Any]) -> PruneReport:
    """Delete, or prune to their newest checkpoints, the threads that nothing has changed for as long as `ttl` says."""
    before = moment_before(now, ttl.after)
    if not isinstance(filter, Mapping):
        raise InvalidConfigError(reason=f"filter is a mapping, not {filter!r}", key="filter")
    report = PruneReport()
    for thread_id, updated_at in _chosen(store, filter, report):
        if updated_at is None or updated_at < before:
            _each(report, thread_id, False, partial(_expire, store, report, thread_id, now, ttl, before, unfinished))
    return report


def _expire(
    store: Store, report: PruneReport, thread_id: str, now: int, ttl: Ttl, before: int, unfinished: bool
) -> None:
    if ttl.strategy == "delete":
        _delete(store, report, thread_id, now, before, unfinished)
    elif not unfinished and (why := _open_work(store, thread_id)) is not None:
        report.skipped[thread_id] = why
    else:
        _prune(store, report, thread_id, Policy(1, None), now)


def ttl_of(given: Any) -> Ttl:
    """Return a time to live as users write it: a `timedelta`, a `Ttl`, or LangGraph's mapping, which counts minutes."""
    if isinstance(given, timedelta):
        given = Ttl(given)
    elif isinstance(given, Mapping):
        unknown = set(given) - {"default_ttl", "strategy"}
        if unknown:
            told = f"ttl takes default_ttl (minutes) and strategy, not {', '.join(map(repr, sorted(unknown)))}: nothing"
            raise InvalidConfigError(reason=f"{told} is swept by itself, sweep() is called when you choose", key="ttl")
        minutes = given.get("default_ttl")
        if isinstance(minutes, bool) or not isinstance(minutes, int | float):
            raise InvalidConfigError(reason=f"default_ttl is a number of minutes, not {minutes!r}", key="ttl")
        given = Ttl(timedelta(minutes=minutes), given.get("strategy", "delete"))
    if not isinstance(given, Ttl) or not isinstance(given.after, timedelta):
        raise InvalidConfigError(reason=f"ttl is a timedelta or a Ttl, not {given!r}", key="ttl")
    if given.after <= timedelta(0):
        raise InvalidConfigError(reason=f"ttl is longer than nothing, not {given.after}", key="ttl")
    _strategy(given.strategy, None, None)
    return given


def moment_before(now: int, age: Age) -> int:
    """Return the moment, in microseconds, before which something is older than this."""
    if isinstance(age, timedelta):
        if age < timedelta(0):
            raise InvalidConfigError(reason=f"older_than is not negative: {age}", key="older_than")
        return now - age // timedelta(microseconds=1)
    if not isinstance(age, datetime):
        raise InvalidConfigError(reason=f"older_than is a timedelta or a datetime, not {age!r}", key="older_than")
    if age.tzinfo is None:
        raise InvalidConfigError(reason=f"older_than has a time zone, and {age!r} has none", key="older_than")
    return (age - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def _strategy(strategy: Any, keep_last: Any, before: int | None) -> str | None:
    """Return the strategy; None where `keep_last` and `older_than` say it all."""
    if strategy not in (None, "keep_latest", "delete"):
        raise InvalidConfigError(reason=f'strategy is "keep_latest" or "delete", not {strategy!r}', key="strategy")
    if keep_last is not None:
        if isinstance(keep_last, bool) or not isinstance(keep_last, int) or keep_last < 1:
            told = f'keep_last is a number from 1 on, not {keep_last!r}; strategy="delete" deletes whole threads'
            raise InvalidConfigError(reason=told, key="keep_last")
        if strategy is not None:
            raise InvalidConfigError(
                reason=f"keep_last says what to keep: leave strategy={strategy!r} out", key="strategy"
            )
    if strategy is None and keep_last is None and before is None:
        return "keep_latest"
    return strategy if isinstance(strategy, str) else None


def _chosen(store: Store, threads: Threads, report: PruneReport) -> Iterator[tuple[str, int | None]]:
    """Yield ids, and when the thread was last changed, where that is at hand. A filter selects no thread whose metadata
    cannot be read: it is listed as damaged, and left as it is."""
    if isinstance(threads, Mapping):
        for summary in list_threads(store, None, threads or None, None, None):
            if threads and summary.damage is not None:
                report.skipped[summary.thread_id] = summary.damage
                continue
            yield (
                summary.thread_id,
                (summary.updated_at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1),
            )
        return
    if isinstance(threads, Sequence) and not isinstance(threads, str | bytes):
        for thread_id in dict.fromkeys(map(thread_id_of, threads)):
            yield thread_id, None
        return
    if isinstance(threads, Iterable) and not isinstance(threads, str | bytes):
        kind = type(threads).__name__
        raise InvalidConfigError(reason=f"threads is an id, a list of ids or a filter, not a {kind}", key="threads")
    yield thread_id_of(threads), None


def _each(report: PruneReport, thread_id: str, one: bool, work: Callable[[], None]) -> None:
    """Do it; of many threads, one that is busy, damaged, or whose key is not at hand keeps the others from nothing."""
    try:
        work()
    except DatabaseEncryptedError:
        raise
    except (ThreadBusyError, CorruptRecordError, EncryptionError) as error:
        if one:
            raise
        report.skipped[thread_id] = str(error)


def _prune(store: Store, report: PruneReport, thread_id: str, policy: Policy, now: int) -> None:
    pruned = prune_thread(store, thread_id, policy, now)
    if pruned is not None:
        report.add(pruned)


def _open_work(store: Store, thread_id: str) -> str | None:
    with store.reading() as reader:
        thread = reader.thread(thread_id)
        return None if thread is None else open_work(reader, thread)


def _delete(store: Store, report: PruneReport, thread_id: str, now: int, before: int | None, unfinished: bool) -> None:
    """Delete a thread that nobody is at work on, that has not been changed since, and of which nothing is to come."""
    with store.reading() as reader:
        seen = reader.thread(thread_id)
    if seen is None or (before is not None and seen.updated_at >= before):
        return
    if store.is_held(seen):
        raise ThreadBusyError(thread_id=thread_id, holder=seen.holder, run_id=seen.run_id, expires_in=0.0)
    if not unfinished and (why := _open_work(store, thread_id)) is not None:
        report.skipped[thread_id] = why
    elif store.delete(Deletion(thread_id, now, seen=seen)):
        report.deleted += 1
    else:
        report.skipped[thread_id] = "it was changed meanwhile"
