"""Which effects a thread begins with that was copied or forked from another one: their rows, as its own.

The keys stay what they were, so what the other side has seen under them is recognised, and so that a doubt which is
settled in one of the threads is settled in all. Effects of the scope "global" are nobody's, and are not taken along.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stepwell.runtime.effects.knowing import said
from stepwell.store import EffectChange, EffectRow, EffectsQuery, Reader, Sealer
from stepwell.superstep.effects.keys import BROUGHT, GLOBAL, POSITION, lineages_to_search
from stepwell.superstep.effects.layout import encode_ended


def copied_effects(
    sealer: Sealer, reader: Reader, source: str, target: str, names: Mapping[str, str]
) -> tuple[EffectChange, ...]:
    """Return all effects of a thread as those of its copy. `names`: run ids, as the copy has them."""
    return _as_own(
        sealer, target, (row._replace(run_id=names.get(row.run_id, "")) for row in _effects_of(reader, source))
    )


def brought_effects(sealer: Sealer, reader: Reader, source: str, lineage: int, target: str) -> tuple[EffectChange, ...]:
    """Return what a thread that is forked off a lineage begins with: what would have answered there."""
    forks = [(row.lineage, row.parent_lineage, row.parent_seq) for row in reader.lineages(source)]
    order = {each: rank for rank, each in enumerate((lineage, *lineages_to_search(lineage, forks)))}
    chosen: dict[tuple[object, ...], EffectRow] = {}
    for row in sorted(_effects_of(reader, source), key=lambda row: (order.get(row.lineage, 0), -row.seq)):
        if row.scope != POSITION:
            chosen[row.scope, row.key] = row
        elif row.lineage == BROUGHT:
            chosen[row.position, row.lineage, row.key] = row
        elif row.lineage in order:  # what each lineage did there last
            chosen.setdefault((row.position, row.lineage), row)
    return _as_own(sealer, target, (whole(reader, row) for row in chosen.values()))


def _effects_of(reader: Reader, thread_id: str) -> list[EffectRow]:
    return [row for row in reader.effects(EffectsQuery(thread_id)) if row.scope != GLOBAL]


def whole(reader: Reader, row: EffectRow) -> EffectRow:
    """Return a row that says itself what its record says: the record stays behind."""
    _, ended = said(reader, row)
    return row._replace(lineage=BROUGHT, seq=0, body=encode_ended(ended) if ended is not None else b"", run_id="")


def _as_own(sealer: Sealer, target: str, rows: Iterable[EffectRow]) -> tuple[EffectChange, ...]:
    # no epoch of the new thread is 0: whatever was being performed is in doubt there
    return tuple(EffectChange(sealer.effect(row._replace(thread_id=target, epoch=0)), None) for row in rows)
