"""What may be deleted of a thread, and what must stay: decided on an outline of its rows, without a value.

A checkpoint is *kept*, which shows in the history, *held*, which does not, or *cut*. It is kept where the policy says
so, or where something stands on it: it is the newest of its lineage, a lineage was forked from it, a question that is
open was asked on it, an effect is in doubt on it, a run goes on from it. It is held where what stays needs it, directly
or through others. A record stays with a kept base, where a row that stays was made of it, and always where it is about
an effect (receipts answer in every lineage, and are what compensation goes by) or of a repair.

The rule: wherever a row that stays follows one that was cut, a *gap* says so. So the chain of digests goes on over it,
and a row that is missing without a gap was lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from stepwell.superstep import lifecycle
from stepwell.superstep.references import Needed


class Policy(NamedTuple):
    """What to keep. Where both are given, what either keeps stays."""

    keep_last: int | None = None
    """So many of the newest checkpoints of each lineage."""
    created_before: int | None = None
    """Whatever is not older than this moment, in microseconds."""
    written_by: frozenset[str] | None = None
    """Whatever none of these runs wrote, or that another one has worked on. Given alone."""


class Point(NamedTuple):
    """A checkpoint in outline."""

    seq: int
    namespace: str
    lineage: int
    parent_seq: int | None
    created_at: int
    run_id: str = ""


class Note(NamedTuple):
    """A record in outline."""

    seq: int
    base_seq: int
    kind: str
    run_id: str = ""


class Gap(NamedTuple):
    """What stands for a checkpoint that was cut, or that is held."""

    seq: int
    held: bool
    """Whether the row is still there."""
    parent_seq: int | None
    """The nearest checkpoint before it that is still there."""
    shown_seq: int | None
    """The nearest one before it that is kept: the history goes on there."""
    checkpoints: int
    """How many were cut from there on, itself included."""
    records: int
    """How many records were cut of it."""
    notes: int = 0
    """How many of its records are still there."""


class Outline(NamedTuple):
    """A thread in outline, as one snapshot showed it."""

    points: Sequence[Point]
    """In seq order, as all that follows."""
    notes: Sequence[Note]
    gaps: Sequence[Gap]
    """Those that earlier prunings left."""
    pinned: Collection[int]
    """Checkpoints on which something stands."""
    needs: Callable[[int, frozenset[str] | None], Needed]
    """What some channels of a checkpoint that is there, or (None) all of it, need of other rows."""


class Marked(NamedTuple):
    """What is to become of a thread's rows."""

    kept: frozenset[int]
    held: frozenset[int]
    cut_points: frozenset[int]
    cut_notes: frozenset[int]
    gaps: Sequence[Gap]
    """All gaps, as they shall be."""


def mark(outline: Outline, policy: Policy) -> Marked:
    """Return what may be cut and what stays."""
    known = {gap.seq: gap for gap in outline.gaps}
    shown = [point for point in outline.points if point.seq not in known]
    kept = {point.seq for point in _chosen(shown, outline.notes, policy)} | (
        set(outline.pinned) & {point.seq for point in shown}
    )
    held, records = _held(outline, kept)
    cut_points = frozenset(point.seq for point in outline.points if point.seq not in kept and point.seq not in held)
    cut_notes = frozenset(note.seq for note in outline.notes if not _stays(note, kept, records))
    gaps = list(_gaps(outline, known, kept, held, cut_notes))
    return Marked(frozenset(kept), frozenset(held), cut_points, cut_notes, gaps)


def _chosen(shown: Sequence[Point], notes: Sequence[Note], policy: Policy) -> Iterator[Point]:
    """Yield what the policy keeps, and the newest of each lineage in any case."""
    seen: Counter[tuple[str, int]] = Counter()
    runs = policy.written_by
    others = set() if runs is None else {note.base_seq for note in notes if note.run_id not in runs}
    for point in reversed(shown):
        line = point.namespace, point.lineage
        seen[line] += 1
        is_young = policy.created_before is not None and point.created_at >= policy.created_before
        is_others = runs is not None and (point.run_id not in runs or point.seq in others)
        if seen[line] <= (policy.keep_last or 1) or is_young or is_others:
            yield point


def _held(outline: Outline, kept: Collection[int]) -> tuple[set[int], set[int]]:
    """Return the checkpoints that what is kept cannot do without, and the records that these were made of. What is held
    for one channel holds nothing for its others."""
    pinned = (point.seq for point in outline.points if point.seq in outline.pinned and point.seq not in kept)
    held: dict[int, frozenset[str]] = dict.fromkeys((*_answerable(outline, kept), *pinned), frozenset())
    records: set[int] = set()
    waiting: list[tuple[int, frozenset[str] | None]] = [(seq, None) for seq in kept]
    while waiting:
        found = outline.needs(*waiting.pop())
        records |= found.records
        for other, channels in found.checkpoints.items():
            fresh = channels - held.get(other, frozenset())
            if other not in kept and (fresh or other not in held):
                held[other] = held.get(other, frozenset()) | fresh
                waiting.append((other, fresh))
    return set(held), records


def _answerable(outline: Outline, kept: Collection[int]) -> Iterator[int]:
    """Yield what followed where a question was asked: who answers it anew keeps what its siblings came to there."""
    asked = {note.base_seq for note in outline.notes if note.kind in lifecycle.PAUSES and note.base_seq in kept}
    lineages = {point.seq: point.lineage for point in outline.points} if asked else {}
    for point in outline.points if asked else ():
        if point.parent_seq in asked and point.lineage == lineages.get(point.parent_seq) and point.seq not in kept:
            yield point.seq


_LASTING = (*lifecycle.EFFECT_KINDS, lifecycle.REPAIRED)
"""Kinds of records that stay whatever becomes of their base: what a repair has left behind is told by its record."""


def _stays(note: Note, kept: Collection[int], records: Collection[int]) -> bool:
    return not note.base_seq or note.base_seq in kept or note.seq in records or note.kind in _LASTING


class _Before(NamedTuple):
    """What is before a checkpoint: the nearest that is there, the nearest that is kept, how many were cut up to it."""

    there: int | None
    shown: int | None
    cut: int


def _gaps(
    outline: Outline, known: Mapping[int, Gap], kept: Collection[int], held: Collection[int], cut_notes: Collection[int]
) -> Iterator[Gap]:
    before = _before(outline, known, kept, held)
    cut, left = Counter({gap.seq: gap.records for gap in outline.gaps}), Counter[int]()
    for note in outline.notes:
        (cut if note.seq in cut_notes else left)[note.base_seq] += 1
    followed = {point.parent_seq for point in outline.points if point.seq in kept or point.seq in held}
    followed |= {*held, *left}
    for seq in sorted(seq for seq in followed if seq and seq not in kept):
        there, shown, gone = before[seq]
        yield Gap(seq, seq in held, there, shown, gone, cut[seq], left[seq])


def _before(
    outline: Outline, known: Mapping[int, Gap], kept: Collection[int], held: Collection[int]
) -> dict[int, _Before]:
    """Return what is before each checkpoint that is not kept, there or not: one pass, since parents are older."""
    gone = [Point(gap.seq, "", 0, gap.parent_seq, 0) for gap in outline.gaps if not gap.held]
    found: dict[int, _Before] = {}
    for point in sorted([*outline.points, *gone]):
        if point.seq in kept:
            continue
        parent = point.parent_seq
        above = _Before(parent, parent, 0)
        if parent is not None and parent not in kept:
            above = found[parent] if parent not in held else found[parent]._replace(there=parent, cut=0)
        own = known[point.seq].checkpoints if point.seq in known and not known[point.seq].held else 1
        found[point.seq] = above._replace(cut=0 if point.seq in held else above.cut + own)
    return found


def ranges(seqs: Collection[int], among: Iterable[int]) -> list[tuple[int, int]]:
    """Return ranges, first and last, that hold exactly these of all seqs of a table; `among` is in order."""
    found: list[tuple[int, int]] = []
    goes_on = False
    for seq in among:
        if seq in seqs:
            found[len(found) - goes_on :] = [(found[-1][0] if goes_on else seq, seq)]
        goes_on = seq in seqs
    return found
