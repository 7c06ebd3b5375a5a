"""Which members go into one transaction: claims and commits of many threads, in one round trip.

A write goes in where everything it writes is known beforehand, and no other of its thread is before it. What has to
look first (events, effects, items, messages, large values, a lineage that changes) goes on its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stepwell.store import CheckpointRow, Claim, Commit
from stepwell.stores.shared.member import Member
from stepwell.stores.shared.writes import Writes


class Places:
    """Which lineage each thread that is driven here is in: while it stays there, a commit need not look."""

    def __init__(self) -> None:
        self._of: dict[str, tuple[int, int]] = {}

    def stays(self, commit: Commit) -> bool:
        """Tell whether the root checkpoints of a commit are of the lineage that the thread is known to be in."""
        if commit.rows.lineages <= 1:
            return True
        known = self._of.get(commit.thread_id)
        if known is None or known[0] != commit.epoch:
            return not any(row.namespace == "" for row in commit.rows.checkpoints)
        return all(row.lineage == known[1] for row in commit.rows.checkpoints if row.namespace == "")

    def note(self, thread_id: str, epoch: int, lineages: int, checkpoints: Sequence[CheckpointRow]) -> None:
        """Take note of where a thread is now."""
        if lineages > 1:
            for row in checkpoints:
                if row.namespace == "":
                    self._of[thread_id] = (epoch, row.lineage)

    def forget(self, thread_id: str) -> None:
        """A thread that is not driven here any more needs no note."""
        self._of.pop(thread_id, None)


def is_plain(member: Member, writes: Writes, places: Places) -> bool:
    """Tell whether all that a member writes is known beforehand."""
    work = member.work
    if type(work) is Commit:
        known = not (work.consumed or work.items or any(work.rows[5:]))
        return known and writes.knows(work) and places.stays(work)
    return type(work) is Claim and _is_plain(work)


def _is_plain(claim: Claim) -> bool:
    """Tell whether a claim brings no more than its rows, and the runs that it begins and ends."""
    if claim.rows.lineages > 1 or any(claim.rows[5:]):
        return False
    copied = claim.runs or claim.at_work or claim.anchors or claim.lineages
    return not (copied or claim.items or claim.key or claim.whole)


def waves(batch: Sequence[Member], writes: Writes, places: Places) -> Iterator[list[Member]]:
    """Yield the members in turns that keep the order of each thread: plain ones together, any other alone."""
    left = list(batch)
    while left:
        wave: list[Member] = []
        behind: list[Member] = []
        seen: set[str] = set()
        for member in left:
            thread_id = member.work.thread_id
            if thread_id in seen or not is_plain(member, writes, places):
                behind.append(member)
            else:
                wave.append(member)
            seen.add(thread_id)
        if not wave:
            wave = [behind.pop(0)]
        left = behind
        yield wave
