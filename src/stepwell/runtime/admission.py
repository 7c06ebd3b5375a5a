"""How a run begins: read the thread, choose what the call means there, and take the thread with all of it durable.

Everything is decided on one snapshot and lands in one transaction that holds only if the thread is still as it was
read; otherwise it is read again. Functions here block on the store and run no user code but reducers and validators.
"""

from __future__ import annotations

import hashlib
from itertools import takewhile
from typing import Any

from stepwell import points
from stepwell.errors import (
    EmptyInputError,
    GraphMismatchError,
    InvalidConfigError,
    NestedThreadError,
    NoCheckpointerError,
    PoisonedRunError,
    RunConflictError,
    RunError,
    ThreadBusyError,
    UnknownCheckpointError,
)
from stepwell.graph.types import Command
from stepwell.runtime.breakpoints import follow_breakpoints, refuse_to_keep
from stepwell.runtime.changes import check_continued
from stepwell.runtime.deciding import decides
from stepwell.runtime.ledger import LEASE_SECONDS, Ledger
from stepwell.runtime.loading import check_input_kept, load, superseded
from stepwell.runtime.opening import Place, check_command, kind_of_call, new_identity, open_call, plan_input, rules_for
from stepwell.runtime.reporting import note_beginning, report_beginning
from stepwell.runtime.run import Run
from stepwell.store import NO_DIGEST, Claim, Reader, RunRow, ShapeRow
from stepwell.superstep import lifecycle
from stepwell.superstep.answer import resumes
from stepwell.superstep.begin import empty_state
from stepwell.superstep.decide import Wait, decide, ending
from stepwell.superstep.state import Base

MAX_RECOVERIES = 5
ATTEMPTS = 50
"""How often a claim is composed anew because the thread moved while it was read."""


def admit(run: Run) -> bool:
    """Set the run's base, rules and ledger, and take the thread if there is anything to do.

    Returns False, having done nothing, where a live run with the same run id and input is to be joined: ask again.
    """
    if run.store is None:
        _begin_without_store(run)
        run.admitted = True
        return True
    if run.config.thread_id is None:
        reason = "a durable run needs a thread_id: pass {'configurable': {'thread_id': ...}}"
        raise InvalidConfigError(reason=reason, key="thread_id")
    if run.thread in run.driving:
        raise NestedThreadError(thread_id=run.config.thread_id)
    points.reach(points.ADMISSION)
    for _ in range(ATTEMPTS):
        with run.store.reading() as reader:
            claim = _compose(run, reader)
        if claim is None:
            return True
        if claim is _JOIN:
            return False
        try:
            taken = _take(run, claim)
        except ThreadBusyError as busy:
            if run.config.run_id is None or busy.fields()["run_id"] != run.config.run_id:
                _refuse_second_decision(run)
                raise
            return False
        if taken:
            points.reach(points.ADMITTED)
            return True
    raise ThreadBusyError(thread_id=run.config.thread_id, holder="other callers", run_id="?", expires_in=0.0)


_JOIN = object()


def _take(run: Run, claim: Claim) -> bool:
    """Make the claim; False where the thread moved. A poisoned run is refused once its end is durable."""
    assert run.store is not None
    try:
        thread = run.store.admit(claim)
    except Exception:
        raise
    except BaseException:  # Ctrl-C, perhaps after the claim had landed
        with run.store.reading() as reader:
            thread = reader.thread(claim.thread_id)
        if thread is not None and thread.run_id == run.run_id:
            run.ledger.follow(thread)
            run.admitted = True
        raise
    if thread is None:
        return False
    run.ledger.follow(thread)
    run.admitted = True
    report_beginning(run, claim)
    if run.leases is not None and claim.lease_seconds is not None:
        run.leases.hold(run)
    if claim.run is not None and claim.run.error:
        raise PoisonedRunError(run_id=claim.run.run_id, thread_id=claim.thread_id, recoveries=claim.run.recoveries)
    return True


def _refuse_second_decision(run: Run) -> None:
    """Tell who decides what somebody else, whose run has the thread now, has just decided."""
    given = run.request.input
    if isinstance(given, Command) and decides(given.resume):
        assert run.store is not None
        with run.store.reading() as reader:
            _compose(run, reader)


def _begin_without_store(run: Run) -> None:
    raw = run.request.input
    if run.request.retry_only:
        raise NoCheckpointerError(operation="retry")
    if raw is None:
        text = "Without a checkpointer there is nothing to continue. Received no input for __start__: pass an input."
        raise EmptyInputError(text, thread_id="-")
    check_command(run, raw)
    if isinstance(raw, Command) and resumes(raw):
        raise NoCheckpointerError("Cannot use Command(resume=...) without checkpointer", operation="resume")
    refuse_to_keep(run)
    run.run_id = run.config.run_id or run.ids.new()
    run.ledger = Ledger(run)
    base = Base(empty_state(run.plan), new_identity(run))
    plan_input(run, base, 0, (None, NO_DIGEST), raw)
    if run.tell is not None:
        run.tell.started(kind_of_call(run.request, True), 1)
        run.tell.publish()


# -- one snapshot -----------------------------------------------------------------------------------------------------


def _compose(run: Run, reader: Reader) -> Any:
    """Return the claim that begins this run; None where there is nothing to do; `_JOIN` where another does it."""
    place = _locate(run, reader)
    run.ledger = ledger = Ledger(run)
    ledger.follow(place.thread)
    raw = run.request.input
    digest = _input_digest(run, raw)
    known = reader.run(run.config.run_id) if run.config.run_id else None
    if known is not None:
        if known.thread_id != run.config.thread_id or known.input_digest != digest:
            raise RunConflictError(run_id=known.run_id)
        if known.status in lifecycle.ENDED:
            return _stand_on_result(run, reader, known)
        if place.crashed is None or place.crashed.run_id != known.run_id:
            return _JOIN
    discards = run.request.tasks is not None
    if known is None and (discards or isinstance(raw, Command)):
        check_input_kept(place.crashed)
    crashed = place.crashed if known is not None or (not discards and _adopts(place, raw)) else None
    if crashed is not None:
        place = _where_it_died(run, reader, place, crashed)
        raw = None if known is not None else raw
    run.run_id = crashed.run_id if crashed is not None else run.config.run_id or run.ids.new()
    if place.thread is not None or run.request.keep_breakpoints:
        follow_breakpoints(run, reader)
    if place.loaded is not None and (raw is not None or place.loaded.base.tasks):
        begins = not isinstance(raw, Command) if raw is not None else crashed is not None and bool(crashed.input)
        check_continued(run, reader, place.loaded, keeps_tasks=not begins)
    base_seq, stored_input = open_call(run, reader, place, raw, crashed)
    if base_seq is None:
        return None
    row = _run_row(run, place, crashed, base_seq, stored_input, digest)
    return _claim(run, place, row)


def _adopts(place: Place, raw: Any) -> bool:
    """Tell whether a call goes on with the run whose process died: it stands where that run stood, and continues."""
    if place.crashed is None or not place.newest or place.crashed.kind == lifecycle.COMPENSATE:
        return False
    continues = raw is None or (isinstance(raw, Command) and resumes(raw))
    here = place.loaded is None or place.loaded.row.lineage == place.crashed.lineage
    return continues and (here or bool(place.crashed.input))


def _where_it_died(run: Run, reader: Reader, place: Place, crashed: RunRow) -> Place:
    """Return the place of a dead process's run, wherever the call pointed."""
    thread_id, namespace = crashed.thread_id, run.config.namespace
    if crashed.input:
        row = reader.checkpoints(thread_id, [crashed.base_seq])[0] if crashed.base_seq else None
    else:
        row = reader.newest(thread_id, namespace, crashed.lineage)
    if row is None or (place.loaded is not None and place.loaded.row == row):
        return place if row is not None else place._replace(loaded=None)
    newest = reader.head_seq(thread_id, namespace, row.lineage) == row.seq
    return Place(place.thread, load(reader, run.codec, run.plan, row, crashed.run_id), newest, crashed)


def _locate(run: Run, reader: Reader) -> Place:
    """Return the checkpoint the config addresses, and who was at work there."""
    thread_id, namespace, wanted = run.config.thread_id, run.config.namespace, run.config.checkpoint_id
    assert thread_id is not None
    thread = reader.thread(thread_id)
    if thread is None:
        if wanted is not None:
            raise UnknownCheckpointError(thread_id=thread_id, checkpoint_id=wanted)
        return Place(None, None, True, None)
    if thread.graph_id != run.plan.graph_id:
        raise GraphMismatchError(thread_id=thread_id, recorded=thread.graph_id, attempted=run.plan.graph_id)
    reader.expect("records", thread_id, 0)  # where its breakpoints are
    if thread.run_id:
        reader.expect("run", thread.run_id)
    row = reader.checkpoint(thread_id, namespace, wanted) if wanted else reader.newest(thread_id, namespace)
    if wanted is not None and row is None:
        raise UnknownCheckpointError(thread_id=thread_id, checkpoint_id=wanted)
    crashed = reader.run(thread.run_id) if thread.run_id else None
    if row is None:
        return Place(thread, None, True, crashed)
    newest = wanted is None or reader.head_seq(thread_id, namespace, row.lineage) == row.seq
    loaded = load(reader, run.codec, run.plan, row, crashed.run_id if crashed is not None else "")
    return Place(thread, loaded, newest, crashed)


def _input_digest(run: Run, raw: Any) -> bytes:
    if raw is None or not run.config.run_id:
        return b""
    return hashlib.blake2b(run.codec.dumps(raw, "input"), digest_size=16).digest()


def _stand_on_result(run: Run, reader: Reader, known: RunRow) -> None:
    """The run is over: show what it ended with, whatever has come of the thread since."""
    if known.status in (lifecycle.FAILED, lifecycle.CANCELLED):
        raise RunError(
            f"Run {known.run_id} ended as {known.status}: {known.error}. Go on with retry(config) or "
            "invoke(None, config), or begin anew under another run_id.",
            run_id=known.run_id,
            status=known.status,
        )
    row = reader.checkpoint(known.thread_id, run.config.namespace, known.checkpoint_id)
    if row is None:
        raise UnknownCheckpointError(
            f"Run {known.run_id} is over, and the checkpoint it ended at is not there any more: begin anew under "
            "another run_id.",
            thread_id=known.thread_id,
            checkpoint_id=known.checkpoint_id,
        )
    later = {each.run_id for each in takewhile(lambda each: each.run_id != known.run_id, reader.runs(known.thread_id))}
    then = [record for record in reader.records(row.thread_id, row.seq) if record.run_id not in later]
    loaded = load(reader, run.codec, run.plan, row, records=then)
    run.run_id = known.run_id
    run.ended_before = True
    run.base = loaded.base
    run.rules = rules_for(run, loaded.base.state.step + 1, loaded.base)


# -- the claim --------------------------------------------------------------------------------------------------------


def _run_row(run: Run, place: Place, crashed: RunRow | None, base_seq: int, stored: bytes, digest: bytes) -> RunRow:
    if crashed is not None:
        stuck = place.thread is not None and place.thread.head_seq == crashed.progress_seq
        tries = (crashed.recoveries if stuck else 0) + 1
        takeovers = crashed.takeovers + 1
        return crashed._replace(recoveries=tries, progress_seq=run.ledger.head_seq, takeovers=takeovers)
    return RunRow(
        run_id=run.run_id,
        thread_id=run.config.thread_id or "",
        lineage=run.base.lineage,
        status=lifecycle.RUNNING,
        durability=run.durability,
        input=stored,
        input_digest=digest,
        base_seq=base_seq,
        started_at=run.clock.now(),
        finished_at=0,
        recoveries=0,
        progress_seq=run.ledger.head_seq,
        checkpoint_id=run.base.checkpoint_id if run.ledger.draft is None else "",
        error="",
        kind=kind_of_call(run.request, place.newest),
        takeovers=0,
        events=0,
    )


def _over(run: Run) -> str | None:
    """Return how a run ends that is over before it begins; what waits is looked after by the run."""
    decision = decide(run.base, run.rules)
    if isinstance(decision, Wait) and decision.awaited:
        return None
    return ending(decision, run.request.on_limit == "raise")


def _claim(run: Run, place: Place, row: RunRow) -> Claim:
    """Return the claim of the thread; it is left free at once where the run is over before it began."""
    note_beginning(run, place, row)
    status, now = lifecycle.RUNNING, run.clock.now()
    if row.recoveries > MAX_RECOVERIES:
        status = lifecycle.FAILED
        row = row._replace(status=status, finished_at=now, error="PoisonedRunError")
    elif (over := _over(run)) is not None:
        status = over
        if run.ledger.draft is not None:
            run.ledger.stage_outcomes(run.base)
        row = row._replace(status=status, finished_at=now, checkpoint_id=run.base.checkpoint_id)
    running = status == lifecycle.RUNNING
    if run.tell is not None and not running:
        run.tell.ended(run.base, status, row.error)
    run.ledger.run_row = row if running else None
    return Claim(
        thread_id=row.thread_id,
        graph_id=run.plan.graph_id,
        seen=place.thread,
        run=row,
        rows=run.ledger.take_rows(),
        lease_seconds=LEASE_SECONDS if running else None,
        status=status,
        now=now,
        ended=superseded(place.crashed, row.run_id, now),
        cost=run.cost,
        shape=ShapeRow(run.plan.fingerprint, run.plan.shape),
    )
