"""Which writing each kind of work is. Called inside a transaction, with the member that is to be written."""

from __future__ import annotations

from stepwell.store import Claim, Commit, Counts, Deletion, ItemWrites, KeyWrites, Message, Pruning, Repair, Restoration
from stepwell.stores.shared.member import Member, Renewal
from stepwell.stores.shared.writes import Writes


def apply(writes: Writes, counts: Counts, member: Member) -> None:
    """Write a member; note what it is answered with, and the seal by which it is found after an error at COMMIT."""
    work = member.work
    if type(work) is Commit:
        member.sealed = writes.commit(work)
    elif type(work) is Claim:
        member.result, member.sealed = writes.admit(work) or (None, None)
    elif type(work) is Message:
        member.result = writes.append(work)
        member.sealed = member.result.digest
    elif type(work) is Deletion:
        member.sealed = writes.delete(work)
        member.result = member.sealed is not None
    elif type(work) is Pruning:
        member.result, member.sealed = writes.prune(work) or (None, None)
    elif type(work) is Repair:
        member.sealed = writes.repair(work)
        member.result = member.sealed is not None
    elif type(work) is Restoration:
        member.sealed = writes.restore(work)
        member.result = member.sealed is not None
    elif type(work) is ItemWrites:
        member.result, member.sealed = writes.write_items(work)
    elif type(work) is KeyWrites:
        member.result, member.sealed = writes.write_keys(work)
    else:
        assert type(work) is Renewal
        counts.renewals += 1
        member.result = writes.renew(work)
