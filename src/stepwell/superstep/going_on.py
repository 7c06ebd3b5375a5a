"""The body of a checkpoint that goes on from another one with nothing changed, made without the graph that wrote it.

Every channel is where it was, what was planned is planned, nothing that ran comes along: a fork, as bytes.
"""

from __future__ import annotations

from stepwell.superstep import body as layout
from stepwell.superstep.blobs import pack


def going_on(opened: layout.Opened, seq: int, new_seq: int) -> bytes:
    """Return the body at `new_seq` of a fork of the checkpoint at `seq`."""
    held: dict[int, list[str]] = {}
    for key, holder in layout.holds_of(opened, seq).items():
        held.setdefault(new_seq - holder, []).append(key)
    kept = (opened.next, opened.barriers, opened.deferred, opened.activations, opened.writers)
    return pack((layout.FORMAT, [], {}, [*held.items()], *kept, []))
