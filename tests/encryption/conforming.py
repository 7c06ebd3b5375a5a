"""An encrypted store that takes rows as the store suite makes them: sealed in plain, chained by their plain digests.

It seals them anew on their way in, and shows the plain digests on their way out. So the suite, which knows nothing of
encryption, says whether an encrypted store keeps the contract.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar

from stepwell.store import (
    AnchorRow,
    CheckpointRow,
    Claim,
    Commit,
    Deletion,
    EffectChange,
    ItemWrites,
    Pruned,
    Pruning,
    RecordRow,
    Rows,
    ThreadRow,
    seal_anchor,
)
from stepwell.store.queued import Queued
from stepwell.stores.encrypted.store import EncryptedStore

DIGESTS = ("digest", "parent_digest", "base_digest", "head_digest", "row_digest")


class ConformingStore(EncryptedStore):
    """Translates digests between the suite and the store."""

    plain: ClassVar[dict[bytes, bytes]] = {}
    stored: ClassVar[dict[bytes, bytes]] = {}
    futures: ClassVar[dict[Queued, Queued]] = {}

    def admit(self, claim: Claim) -> ThreadRow | None:
        copy = replace(claim, rows=self._sealed(claim.rows), items=self.sealer.items(claim.items))
        return self._shown(super().admit(copy))  # type: ignore[no-any-return]

    def commit(self, commit: Commit) -> None:
        copy = self._copy(commit)
        super().commit(copy)
        commit.refused = self._refused(copy)

    def queue(self, commit: Commit | ItemWrites, wake: bool = True) -> Queued:
        if isinstance(commit, ItemWrites):
            return super().queue(replace(commit, writes=self.sealer.items(commit.writes)), wake)
        told, copy = Queued(), self._copy(commit)
        inner = super().queue(copy, wake)
        self.futures[told] = inner

        def tell(done: Queued) -> None:
            commit.refused = self._refused(copy)
            told.answer(done.exception())

        inner.add_done_callback(tell)
        return told

    def settle(self, future: Queued) -> None:
        super().settle(self.futures.get(future, future))

    def write_items(self, writes: ItemWrites) -> int:
        return super().write_items(replace(writes, writes=self.sealer.items(writes.writes)))

    def prune(self, pruning: Pruning) -> Pruned | None:
        seen = pruning.seen._replace(head_digest=self._of(pruning.seen.head_digest))
        return super().prune(replace(pruning, seen=seen, anchors=[self._anchor(each) for each in pruning.anchors]))

    def delete(self, deletion: Deletion) -> bool:
        seen = deletion.seen
        if seen is not None:
            deletion = replace(deletion, seen=seen._replace(head_digest=self._of(seen.head_digest)))
        return super().delete(deletion)

    @contextmanager
    def reading(self) -> Iterator[Any]:
        with super().reading() as reader:
            yield _Reader(reader, self._shown)

    def _copy(self, commit: Commit) -> Commit:
        return replace(commit, rows=self._sealed(commit.rows), items=self.sealer.items(commit.items))

    def _refused(self, commit: Commit) -> tuple[bytes, ...]:
        return tuple(self.plain.get(digest, digest) for digest in commit.refused)

    def _sealed(self, rows: Rows) -> Rows:
        made: dict[int, Any] = {}
        given: list[CheckpointRow | RecordRow] = [*rows.checkpoints, *rows.records]
        for row in sorted(given, key=lambda row: row.seq):
            if isinstance(row, RecordRow):
                made[row.seq] = self.sealer.record(row._replace(base_digest=self._of(row.base_digest)))
            else:
                moved = row._replace(parent_digest=self._of(row.parent_digest))
                made[row.seq] = self.sealer.checkpoint(moved[:-1])
            self._note(row.digest, made[row.seq].digest)
        return rows._replace(
            head_digest=self._of(rows.head_digest),
            checkpoints=[made[row.seq] for row in rows.checkpoints],
            records=[made[row.seq] for row in rows.records],
            effects=[self._effect(change) for change in rows.effects],
        )

    def _effect(self, change: EffectChange) -> EffectChange:
        row = self.sealer.effect(change.row)
        self._note(change.row.digest, row.digest)
        return EffectChange(row, None if change.seen is None else tuple(map(self._of, change.seen)))

    def _anchor(self, plain: AnchorRow) -> AnchorRow:
        before, of = self._of(plain.parent_digest), self._of(plain.row_digest)
        row = seal_anchor(plain._replace(parent_digest=before, row_digest=of))
        self._note(plain.digest, row.digest)
        return row

    def _note(self, plain: bytes, stored: bytes) -> None:
        self.stored[plain] = stored
        self.plain[stored] = plain

    def _of(self, plain: bytes) -> bytes:
        return self.stored.get(plain, plain)

    def _shown(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._shown(each) for each in value]
        if isinstance(value, Iterator):
            return map(self._shown, value)
        if isinstance(value, dict):
            return {key: self._shown(each) for key, each in value.items()}
        if isinstance(value, tuple):
            if not hasattr(value, "_replace"):
                return tuple(self._shown(each) for each in value)
            found = {name: getattr(value, name) for name in DIGESTS if hasattr(value, name)}
            shown: Any = value
            return shown._replace(**{name: self.plain.get(digest, digest) for name, digest in found.items()})
        return value


class _Reader:
    """A reader that shows plain digests."""

    def __init__(self, inner: Any, shown: Callable[[Any], Any]) -> None:
        self._inner, self._shown = inner, shown

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)
        return lambda *args, **options: self._shown(method(*args, **options))
