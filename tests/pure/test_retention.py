"""Retention as a model: whatever a thread looks like and however often it is pruned, what stays is whole.

A thread here is a list of rows with references; `prune` does to it what a store does with what `mark` says. Nothing is
decoded and no database is asked.
"""

from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings, strategies as st

from stepwell.superstep import lifecycle
from stepwell.superstep.references import Needed, References
from stepwell.superstep.retention import Gap, Marked, Note, Outline, Point, Policy, mark, ranges


class Thread(NamedTuple):
    """The rows of a thread, and what each checkpoint needs."""

    points: list[Point]
    notes: list[Note]
    gaps: list[Gap]
    pinned: frozenset[int]
    needs: dict[int, dict[str, References]]
    """Per channel: the checkpoints that it is read from, and the records."""

    def outline(self) -> Outline:
        return Outline(self.points, self.notes, self.gaps, self.pinned, self.needed)

    def needed(self, seq: int, channels: frozenset[str] | None) -> Needed:
        found: dict[int, frozenset[str]] = {}
        records: set[int] = set()
        for channel in self.needs[seq] if channels is None else channels:
            for other in self.needs[seq][channel].checkpoints:
                found[other] = found.get(other, frozenset()) | {channel}
            records |= self.needs[seq][channel].records
        return Needed(found, frozenset(records))

    def check_reads(self, seq: int, channel: str) -> None:
        """Read a channel, whatever rows it takes."""
        assert seq in {point.seq for point in self.points}
        assert self.needs[seq][channel].records <= {note.seq for note in self.notes}
        for other in self.needs[seq][channel].checkpoints:
            self.check_reads(other, channel)

    def heads(self) -> set[int]:
        return set({(point.namespace, point.lineage): point.seq for point in self.shown()}.values())

    def shown(self) -> list[Point]:
        held = {gap.seq for gap in self.gaps if gap.held}
        return [point for point in self.points if point.seq not in held]


KINDS = (
    lifecycle.SUCCEEDED,
    lifecycle.INTERRUPTED,
    lifecycle.ANSWER,
    lifecycle.STEP,
    lifecycle.INTENT,
    lifecycle.RECEIPT,
)


run_ids = st.sampled_from(["", "r1", "r2", "r3"])
"""Edits are of no run."""


@st.composite
def threads(draw: Any) -> Thread:
    """Return threads that branch, with records, each checkpoint holding some of its channels in rows before it."""
    points: list[Point] = []
    notes: list[Note] = []
    needs: dict[int, dict[str, References]] = {}
    pinned: set[int] = set()
    heads: dict[int, int] = {}
    seq = 0
    for _ in range(draw(st.integers(1, 14))):
        seq += draw(st.integers(1, 2))
        forks = points and draw(st.integers(0, 4)) == 0
        parent = draw(st.sampled_from(points)).seq if forks else None
        lineage = len(heads) if forks or not heads else draw(st.sampled_from(sorted(heads)))
        if parent is None:
            parent = heads.get(lineage)
        elif forks:
            pinned.add(parent)
        line = _line(points, parent)
        own = [note.seq for note in notes if note.base_seq == parent]
        needs[seq] = {
            channel: References(
                frozenset(draw(st.lists(st.sampled_from(line[:4]), max_size=1)) if line else []),
                frozenset(draw(st.lists(st.sampled_from(own), max_size=1)) if own else []),
            )
            for channel in "ab"
        }
        points.append(Point(seq, "", lineage, parent, 10 * len(points), draw(run_ids)))
        heads[lineage] = seq
        for _ in range(draw(st.integers(0, 2))):
            base, seq = seq if not notes or draw(st.booleans()) else draw(st.sampled_from(points)).seq, seq + 1
            notes.append(
                Note(seq, base if base in needs else points[-1].seq, draw(st.sampled_from(KINDS)), draw(run_ids))
            )
    if draw(st.booleans()):
        pinned.add(draw(st.sampled_from(points)).seq)
    return Thread(points, notes, [], frozenset(pinned), needs)


def _line(points: list[Point], seq: int | None) -> list[int]:
    parents = {point.seq: point.parent_seq for point in points}
    line = []
    while seq is not None:
        line.append(seq)
        seq = parents[seq]
    return line


deletions = st.sets(st.sampled_from(["r1", "r2", "r3"])).map(lambda runs: Policy(written_by=frozenset(runs)))
policies = st.builds(Policy, st.none() | st.integers(1, 4), st.none() | st.integers(0, 150)) | deletions


def prune(thread: Thread, policy: Policy) -> tuple[Thread, Marked]:
    marked = mark(thread.outline(), policy)
    left = thread._replace(
        points=[point for point in thread.points if point.seq not in marked.cut_points],
        notes=[note for note in thread.notes if note.seq not in marked.cut_notes],
        gaps=list(marked.gaps),
    )
    return left, marked


@given(threads(), st.lists(policies, min_size=1, max_size=3))
def test_whatever_is_pruned_what_stays_has_all_that_it_needs(thread: Thread, chosen: list[Policy]) -> None:
    """G11: heads, fork points and pinned checkpoints are kept; all that a row needs is there; every gap is named."""
    for policy in chosen:
        before, (thread, marked) = thread, prune(thread, policy)
        there = {point.seq for point in thread.points}
        assert there == marked.kept | marked.held
        assert marked.kept >= before.heads() | (before.pinned & {point.seq for point in before.shown()})
        for seq in marked.kept:
            for channel in "ab":
                thread.check_reads(seq, channel)
        assert {note.seq for note in before.notes if note.base_seq in marked.kept} <= {
            note.seq for note in thread.notes
        }
        _check_gaps(thread)
        assert prune(thread, policy) == (thread, marked._replace(cut_points=frozenset(), cut_notes=frozenset()))


def _check_gaps(thread: Thread) -> None:
    there = {point.seq for point in thread.points}
    gaps = {gap.seq: gap for gap in thread.gaps}
    shown = there - {gap.seq for gap in thread.gaps if gap.held}
    for point in thread.points:
        assert point.parent_seq is None or point.parent_seq in there or not gaps[point.parent_seq].held
    for note in thread.notes:
        assert note.base_seq in shown or note.base_seq in gaps
    for gap in thread.gaps:
        assert gap.held == (gap.seq in there)
        assert gap.parent_seq is None or gap.parent_seq in there
        assert gap.shown_seq is None or gap.shown_seq in shown
        assert gap.notes == sum(note.base_seq == gap.seq for note in thread.notes)
        assert (gap.checkpoints == 0) == gap.held


@settings(max_examples=15)
@given(threads(), st.lists(policies, min_size=1, max_size=2))
def test_the_history_goes_on_over_a_gap_with_the_nearest_checkpoint_that_is_kept(
    thread: Thread, chosen: list[Policy]
) -> None:
    whole = {point.seq: _line(thread.points, point.seq) for point in thread.points}
    for policy in chosen:
        thread, marked = prune(thread, policy)
        gaps = {gap.seq: gap for gap in thread.gaps}
        parents = {point.seq: point.parent_seq for point in thread.points}
        for seq in marked.kept:
            line, at = [], seq
            while at is not None:
                line.append(at)
                parent = parents[at]
                at = gaps[parent].shown_seq if parent in gaps else parent  # type: ignore[assignment]
            assert line == [each for each in whole[seq] if each in marked.kept]


@given(threads(), policies)
def test_what_the_gaps_count_is_what_was_cut(thread: Thread, policy: Policy) -> None:
    left, marked = prune(thread, policy)
    bases = {gap.seq for gap in marked.gaps}
    cut = {note.seq for note in thread.notes if note.seq in marked.cut_notes and note.base_seq in bases}
    assert sum(gap.records for gap in marked.gaps) == len(cut)
    lines = {gap.seq: _line(thread.points, gap.seq) for gap in marked.gaps}
    for gap in marked.gaps:
        since = [seq for seq in lines[gap.seq] if seq > (gap.parent_seq or 0)]
        assert gap.checkpoints == (0 if gap.held else len(since))
        assert gap.held or marked.cut_points >= set(since)
    assert left.heads() == thread.heads()


@given(threads(), policies)
def test_receipts_and_intents_are_never_pruned(thread: Thread, policy: Policy) -> None:
    """INV-7: what was done to the world stays known, whatever is forgotten of how it came to it."""
    left, _ = prune(thread, policy)
    told = [note for note in thread.notes if note.kind in lifecycle.EFFECT_KINDS]
    assert [note for note in left.notes if note.kind in lifecycle.EFFECT_KINDS] == told


@given(threads(), deletions)
def test_what_runs_wrote_goes_unless_something_stands_on_it_or_another_worked_on_it(
    thread: Thread, policy: Policy
) -> None:
    left, marked = prune(thread, policy)
    runs = policy.written_by or frozenset()
    others = {note.base_seq for note in thread.notes if note.run_id not in runs}
    theirs = {point.seq for point in thread.points if point.run_id not in runs or point.seq in others}
    assert marked.kept == theirs | thread.heads() | thread.pinned
    lost = [note for note in thread.notes if note not in left.notes]
    assert {note.run_id for note in lost} <= runs


def chain(length: int) -> Thread:
    points = [Point(seq, "", 0, seq - 1 or None, seq) for seq in range(1, length + 1)]
    return Thread(points, [], [], frozenset(), {seq: {} for seq in range(1, length + 1)})


@pytest.mark.parametrize(
    "policy, kept",
    [
        (Policy(keep_last=2), {8, 9}),
        (Policy(created_before=5), {5, 6, 7, 8, 9}),
        (Policy(created_before=99), {9}),
        (Policy(keep_last=2, created_before=8), {8, 9}),
        (Policy(keep_last=3, created_before=9), {7, 8, 9}),
        (Policy(keep_last=99), set(range(1, 10))),
    ],
    ids=str,
)
def test_what_a_policy_keeps_of_a_thread_in_one_line(policy: Policy, kept: set[int]) -> None:
    assert mark(chain(9).outline(), policy).kept == kept


def test_what_is_held_for_one_channel_holds_nothing_for_its_others() -> None:
    """The log is a chain of deltas; each of its rows has another value of `big` that was held elsewhere."""

    def on(*seqs: int) -> References:
        return References(frozenset(seqs), frozenset())

    needs = {1: {"log": on(), "big": on()}, 2: {"log": on(1), "big": on(1)}, 3: {"log": on(2), "big": on()},
             4: {"log": on(3), "big": on(3)}}  # fmt: skip
    marked = mark(chain(4)._replace(needs=needs).outline(), Policy(keep_last=1))
    assert (set(marked.kept), set(marked.held)) == ({4}, {1, 2, 3})
    needs[2]["log"] = on()
    assert set(mark(chain(4)._replace(needs=needs).outline(), Policy(keep_last=1)).held) == {2, 3}


def test_what_followed_a_question_is_held_for_those_who_answer_it_once_more() -> None:
    thread = chain(6)._replace(notes=[Note(7, 3, lifecycle.INTERRUPTED)], pinned=frozenset({3}))
    marked = mark(thread.outline(), Policy(keep_last=1))
    assert (set(marked.kept), set(marked.held)) == ({3, 6}, {4})
    assert marked.gaps == [
        Gap(2, False, None, None, 2, 0),
        Gap(4, True, 3, 3, 0, 0),
        Gap(5, False, 4, 3, 1, 0),
    ]


@given(st.sets(st.integers(0, 30)), st.sets(st.integers(0, 30)))
def test_ranges_hold_exactly_what_is_to_go(seqs: set[int], others: set[int]) -> None:
    among = sorted(seqs | others)
    found = ranges(seqs, among)
    assert {seq for seq in among if any(first <= seq <= last for first, last in found)} == seqs
    assert len(found) <= len(others - seqs) + 1
