"""What a call means on a thread as it stands: continue it, answer it, command it, or begin with a new input.

Each way sets the run's base and rules and stages in the ledger what must be durable before the first node. Nothing is
written here.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from stepwell.errors import (
    AnswerNotUsedWarning,
    EmptyInputError,
    InvalidUpdateError,
    NothingToRetryError,
    PendingWorkError,
)
from stepwell.graph.types import MISSING, Command
from stepwell.plan.tables import Plan
from stepwell.runtime.answers import answer_base, command_base, expire, fork_base, open_lineage, recorded_positions
from stepwell.runtime.deciding import decides
from stepwell.runtime.draft import Draft
from stepwell.runtime.editing.discarding import base_without
from stepwell.runtime.effects.knowing import open_doubts
from stepwell.runtime.loading import Loaded
from stepwell.runtime.run import Request, Run
from stepwell.runtime.waiting import stirs
from stepwell.store import NO_DIGEST, Reader, RunRow, ThreadRow
from stepwell.superstep import lifecycle
from stepwell.superstep.answer import id_map, resumes
from stepwell.superstep.begin import NOTHING_STEP, empty_state, input_state, start_outcome
from stepwell.superstep.decide import Rules, RunTasks, decide, open_questions, standstill
from stepwell.superstep.given import merge_given
from stepwell.superstep.outcome import Awaited, Cancelled, Failed, Question, Succeeded
from stepwell.superstep.state import Base, Identity

log = logging.getLogger("stepwell.run")


class Place(NamedTuple):
    """Where on the thread a call stands, as one snapshot showed it."""

    thread: ThreadRow | None
    loaded: Loaded | None
    newest: bool
    """The checkpoint is the newest of its lineage."""
    crashed: RunRow | None
    """The run that was driving the thread when its process died."""


def kind_of_call(request: Request, newest: bool) -> str:
    """Return what the call is, as the run's row says it (`lifecycle.RUN_KINDS`)."""
    if isinstance(request.input, Command):
        return lifecycle.ANSWER if resumes(request.input) else "command"
    if request.input is not None:
        return "input"
    if request.retry_only:
        return "retry"
    return "continue" if newest else "replay"


def open_call(run: Run, reader: Reader, place: Place, raw: Any, crashed: RunRow | None) -> tuple[int | None, bytes]:
    """Set base and rules. Returns the seq the run counts from (None: nothing to do), and the input to keep."""
    loaded = place.loaded
    if loaded is not None:
        run.ledger.stand_on(loaded, recorded_positions(loaded.base, loaded.records))
    if raw is None:
        if crashed is not None and crashed.input:
            return _open_input(run, reader, place, run.codec.loads(crashed.input, "input"), admitted=True)
        if loaded is None:
            raise EmptyInputError(thread_id=run.config.thread_id)
        return _open_continued(run, reader, place, loaded, crashed)
    check_command(run, raw)
    if isinstance(raw, Command) and loaded is not None:
        return _open_command(run, reader, place, loaded, raw)
    if isinstance(raw, Command) and (resumes(raw) or run.plan.is_workflow):
        raise EmptyInputError(thread_id=run.config.thread_id)
    return _open_input(run, reader, place, raw)


def _open_continued(
    run: Run, reader: Reader, place: Place, loaded: Loaded, crashed: RunRow | None
) -> tuple[int | None, bytes]:
    base, named = loaded.base, run.request.tasks
    if named is not None and crashed is None:
        base = base_without(run, reader, loaded, place.newest, named)
    elif run.request.retry_only and named is None and not _something_failed(place, base):
        raise NothingToRetryError(thread_id=run.config.thread_id)
    elif not place.newest and base.tasks:
        base = fork_base(run, loaded)
    expire(run, base)
    first = base.state.step + 1 if crashed is None else _first_step(run.plan, reader, crashed)
    run.base, run.rules = base, rules_for(run, first, base)
    if crashed is None and not isinstance(decide(base, run.rules), RunTasks) and not stirs(run, reader, base):
        return None, b""
    return (crashed.base_seq if crashed is not None else base.seq), b""


def _something_failed(place: Place, base: Base) -> bool:
    failed = any(isinstance(outcome, Failed | Cancelled) for outcome in base.outcomes)
    return failed or (place.thread is not None and place.newest and place.thread.status == lifecycle.FAILED)


def _first_step(plan: Plan, reader: Reader, crashed: RunRow) -> int:
    """Return where a crashed run began to count its supersteps: it goes on with the budget it has left."""
    if crashed.base_seq == 0:
        return NOTHING_STEP + 1 + _to_first(plan)
    (row,) = reader.checkpoints(crashed.thread_id, [crashed.base_seq])
    if crashed.kind == "input" and row.source != "input":  # `exit` durability: the input is on no checkpoint
        return row.step + 1 + _to_first(plan)
    return row.step + (_to_first(plan) if row.source == "input" else 1)


def _to_first(plan: Plan) -> int:
    """Return how many steps after an input's checkpoint the first superstep of the user's nodes is."""
    return 1 if plan.is_workflow else 2


def _open_command(
    run: Run, reader: Reader, place: Place, loaded: Loaded, command: Command[Any]
) -> tuple[int | None, bytes]:
    if resumes(command) and _asks_nothing(place, loaded.base, command):
        text = f"Thread {run.config.thread_id} asks nothing as it stands: it goes on, and the answer is not used"
        warnings.warn(AnswerNotUsedWarning(text), stacklevel=2)
        command = replace(command, resume=MISSING)
    if resumes(command):
        base = answer_base(run, reader, loaded, command, place.newest)
    elif not is_empty(command):
        base = command_base(run, reader, loaded, command, place.newest)
    else:
        base = loaded.base  # its answer, which was all it said, is not used
    run.base, run.rules = base, rules_for(run, base.state.step + 1, base)
    return base.seq, b""


def is_empty(command: Command[Any]) -> bool:
    """Tell whether a command neither writes nor goes anywhere."""
    writes = command.update is not None and (
        bool(command.update) or not isinstance(command.update, dict | list | tuple)
    )
    return not writes and not command.goto


def check_command(run: Run, raw: Any) -> None:
    """Refuse a command that says nothing, which would begin or end something all the same; and to write into a
    workflow, or to jump to it, from outside: it would run without an input."""
    if not isinstance(raw, Command):
        return
    plan, thread_id = run.plan, run.config.thread_id or "-"
    if is_empty(raw) and not resumes(raw):
        raise EmptyInputError(
            f"Thread {thread_id} was given a Command that neither answers (resume=), nor writes (update=), nor goes "
            "anywhere (goto=): nothing ran. invoke(None, config) goes on with a thread as it stands.",
            thread_id=thread_id,
        )
    if plan.is_workflow and not is_empty(raw):
        raise InvalidUpdateError(
            f"Workflow {plan.entry!r} takes no Command(update=..., goto=...): invoke it with an input, answer it "
            "with Command(resume=...), or write what it returned with update_state(config, value).",
            reason="a command to a workflow",
            node=plan.entry,
        )


def _asks_nothing(place: Place, base: Base, command: Command[Any]) -> bool:
    """Tell whether a thread that waits at a breakpoint is given one value to go on with, as LangGraph lets one do."""
    paused = place.newest and place.thread is not None and place.thread.status == lifecycle.PAUSED
    return paused and not (open_questions(base) or decides(command.resume)) and id_map(command.resume) is None


def _open_input(run: Run, reader: Reader, place: Place, raw: Any, admitted: bool = False) -> tuple[int | None, bytes]:
    """Begin with an input. One `admitted` before its process died has been allowed to drop what was pending."""
    loaded = place.loaded
    base = loaded.base if loaded is not None else Base(empty_state(run.plan), new_identity(run))
    newest = loaded is None or place.newest
    if newest and not admitted:
        _check_pending(run, reader, base)
    lineage = base.lineage if newest else open_lineage(run.ledger)
    parent = (loaded.row.seq, loaded.row.digest) if loaded is not None else (None, NO_DIGEST)
    given = plan_input(run, base, lineage, parent, raw)
    if run.durability == "exit":
        return (loaded.row.seq if loaded is not None else 0), run.codec.dumps(given, "input")
    return run.ledger.staged[0].seq, b""


def _check_pending(run: Run, reader: Reader, base: Base) -> None:
    """Refuse a new input over open questions, waits and doubts, unless the caller said what to do with them."""
    chosen, thread_id = run.request.on_pending, run.config.thread_id or ""
    if not base.tasks or chosen not in (None, "raise"):
        return
    questions, awaited = standstill(base)
    doubts = open_doubts(reader, thread_id, base.lineage)
    if doubts:
        assert run.store is not None
        thread = reader.thread(thread_id)
        if thread is None or not run.store.is_held(thread):  # else they are being performed: the thread is busy
            raise _in_doubt(thread_id, doubts)
    if questions or awaited or chosen:
        raise pending_work(thread_id, questions, awaited, "has unfinished tasks")


def _in_doubt(thread_id: str, doubts: Sequence[str]) -> PendingWorkError:
    text = (
        f"Thread {thread_id} has effects in doubt ({', '.join(doubts)}): it is not known whether they happened. Go on "
        "with invoke(None, config), say what happened with resolve_effect(), or pass "
        'on_pending="discard" with the new input.'
    )
    return PendingWorkError(text, thread_id=thread_id, interrupts="", doubts=doubts)


def pending_work(
    thread_id: str | None, questions: Sequence[Question], awaited: Sequence[Awaited], otherwise: str
) -> PendingWorkError:
    """Return the error for a new input that is not let past what a thread asks or waits for."""
    asked = ", ".join(question.interrupt_id for question in questions)
    if asked:
        return PendingWorkError(thread_id=thread_id, interrupts=asked)
    if not awaited:
        return PendingWorkError(_unfinished(thread_id, otherwise), thread_id=thread_id, interrupts="")
    keys = ", ".join((each.key and f"{each.kind} {each.key!r}") or each.kind for each in awaited)
    text = (
        f"Thread {thread_id} waits ({keys}). Continue it with invoke(None, config) once that has come, or pass "
        'on_pending="discard" with the new input.'
    )
    return PendingWorkError(text, thread_id=thread_id, interrupts="", waiting=keys)


def _unfinished(thread_id: str | None, what: str) -> str:
    return (
        f"Thread {thread_id} {what}. Finish it with invoke(None, config), or pass "
        'on_pending="discard" or "finish" with the new input.'
    )


def plan_input(run: Run, base: Base, lineage: int, parent: tuple[int | None, bytes], raw: Any) -> Any:
    """Stage the input's checkpoint and, where START routes without user code, the one after it. Returns the input."""
    following, given = stage_input(run, base, lineage, parent, raw, drops=lineage == base.lineage)
    first = following.state.step + _to_first(run.plan)
    if run.plan.is_workflow:
        run.input_wrote = ()
        run.base, run.rules = following, rules_for(run, first, None)
        return given
    outcome = start_outcome(run.plan, given, lambda: following.tasks[0].id)
    if not run.plan.start.branches:
        following.outcomes[0] = succeeded = Succeeded(*outcome)
        merged = merge_given(run.plan, following.state, following.tasks, [succeeded])
        following = run.ledger.advance(following, merged)
        run.input_wrote = merged.changed
    run.base, run.rules = following, rules_for(run, first, None)
    return given


def stage_input(
    run: Run, base: Base, lineage: int, parent: tuple[int | None, bytes], raw: Any, *, drops: bool
) -> tuple[Base, Any]:
    """Stage the checkpoint that plans START, or a workflow, with the input. Return its base, and the validated input.

    `drops` says that what was planned ends here; an older lineage keeps its own tasks.
    """
    given = validated_input(run.plan, base, raw)
    identity = base.identity.following(run.ids.new(), run.plan.version)
    dropped = base.tasks if drops else ()
    if dropped:
        nodes = ", ".join(sorted({task.node for task in dropped}))
        log.warning("thread %s: a new input drops unfinished work: %s", run.config.thread_id, nodes)
    state = input_state(base.state, given, dropped, run.plan.entry)
    draft = Draft(identity, state, lineage, "input", *parent, (), dropped)
    return run.ledger.add(draft, ()), given


def validated_input(plan: Plan, base: Base, raw: Any) -> Any:
    """Return the input as its schema makes it, where it validates."""
    if not plan.input.validates or isinstance(raw, Command):
        return raw
    return plan.input.validate_input(raw, base.state.values if base.state.step > NOTHING_STEP else None)


def rules_for(run: Run, first_step: int, resumed: Base | None) -> Rules:
    request = run.request
    at = resumed.checkpoint_id if resumed is not None else ""
    breaks = (run.plan.with_aliases(request.before), run.plan.with_aliases(request.after))
    limits = (run.config.recursion_limit, *breaks, request.thread_step_limit)
    return Rules(first_step, *limits, at)


def new_identity(run: Run) -> Identity:
    plan = run.plan
    return Identity(plan.graph_id, plan.version, run.config.thread_id or "", run.config.namespace, run.ids.new())
