"""A real engine on a real store, played through a script by its public API; it dies where the script says so.

A crash is a hook that raises at a named point and at every point after it, so that the dead process writes nothing
more. Then the store is opened anew (a file) or taken over (memory), the clock passes the lease, and the caller tries
again.
"""

import asyncio
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from stepwell import END, Command, RunError, StateSnapshot, StateUpdate, StepwellError, points
from stepwell.events import (
    CheckpointCommitted,
    Event,
    RunCancelled,
    RunFailed,
    RunFinished,
    RunPaused,
    RunStarted,
    event_of,
)
from stepwell.runtime.blobs import reading, reading_records
from stepwell.runtime.ledger import LEASE_SECONDS
from stepwell.runtime.loading import load
from stepwell.savers.copying import copy_thread
from stepwell.store import CheckpointRow, HistoryQuery, Store
from stepwell.stores.sqlite import SqliteStore
from stepwell.superstep import body as layout, lifecycle
from stepwell.superstep.merge import merge
from stepwell.superstep.outcome import Succeeded
from stepwell.superstep.state import State
from stepwell.testing import FakeClock, SimulatedCrash
from stepwell.testing.graphs import GraphScript, ScheduledFailure, World
from tests.pure.model.scripts import (
    Begin,
    Continue,
    Crash,
    Edit,
    Fork,
    Op,
    Redeploy,
    Redirect,
    Replay,
    Reply,
    ReplyByOldId,
    ReplyEarlier,
    Retry,
    Rewrite,
    Step,
    chosen_of,
)
from tests.pure.model.seen import FAILED, Seen

ENDS: dict[str, type[Event]] = {
    lifecycle.FINISHED: RunFinished,
    lifecycle.PAUSED: RunPaused,
    lifecycle.FAILED: RunFailed,
    lifecycle.CANCELLED: RunCancelled,
}
Opened = Callable[..., Store]
"""How a store is opened: at a path, by a clock."""
THREAD = {"configurable": {"thread_id": "t"}}


class Saver:
    """A store by a test's clock, in the place of a saver."""

    def __init__(self, path: Path | None, clock: FakeClock, opened: Opened = SqliteStore) -> None:
        self.store = opened(path or ":memory:", clock=clock)
        self.on_unknown_type = None


class Machine:
    """The engine under test: one thread of one graph, over as many lives of the process as it takes."""

    def __init__(
        self,
        graph: GraphScript,
        path: Path | None = None,
        *,
        durability: str = "sync",
        failing: bool = True,
        asynchronous: bool = False,
        opened: Opened = SqliteStore,
    ) -> None:
        self.opened = opened
        self.script, self.path, self.durability, self.asynchronous = graph, path, durability, asynchronous
        self.clock = FakeClock()
        self.saver = Saver(path, self.clock, opened)
        self.world = World(failing)
        self.version = 1
        self.crashes = 0
        self.answered: set[str] = set()
        self._runs = itertools.count(1)
        self._deploy()

    def check_logs(self) -> None:
        """INV-1: the log of each run holds its checkpoints, each once and in order, and ends as its row says."""
        with self.saver.store.reading() as reader:
            history = reader.history(HistoryQuery("t")) if reader.thread("t") is not None else []
            for run in reader.runs("t"):
                log = [event_of(row.kind, row.body, run.run_id, "t", 0) for row in reader.events(run.run_id)]
                told = [event.seq for event in log if isinstance(event, CheckpointCommitted)]
                assert told == sorted(row.seq for row in history if row.run_id == run.run_id)
                assert isinstance(log[0], RunStarted)
                assert isinstance(log[-1], ENDS[run.status])

    def close(self) -> None:
        """Release the store."""
        self.saver.store.close()

    # -- lives of the process ----------------------------------------------------------------------------------------

    def _deploy(self) -> None:
        graph = self.script.build(self.world)
        self.graph = graph.compile(checkpointer=self.saver, version=f"v{self.version}", events=True)

    def _restart(self) -> None:
        """Come back after a crash, as another process would."""
        self.crashes += 1
        self.world = self.world.following()
        if self.path is not None:
            self.saver.store.close()
        points.hook = None
        self.clock.advance(LEASE_SECONDS + 1)
        if self.path is not None:
            self.saver = Saver(self.path, self.clock, self.opened)
        self._deploy()

    # -- operations --------------------------------------------------------------------------------------------------

    def play(self, step: Step) -> Seen:
        """Carry out a step to its end, whatever goes wrong meanwhile; return what there is to see then."""
        self.world.broken = step.broken
        self._discarding = set()
        self._check_sleepers_and_successes()
        if isinstance(step.op, Redeploy):
            self.version += 1
            self._deploy()
            error = ""
        elif isinstance(step.op, Edit | Rewrite | Fork):
            error = self._edit(step.op, list(step.crashes))
            self.world.calls.clear()  # an edit runs routers in the name of its node
        else:
            error = self._run(step)
        self._check_sleepers_and_successes()
        return self.look(error)

    def _edit(self, op: Edit | Rewrite | Fork, crashes: list[Crash]) -> str:
        before, at = self._head(), self._at(op.back)
        while True:
            try:
                with dying(crashes.pop(0) if crashes else None):
                    self._write(op, at)
                return ""
            except SimulatedCrash:
                self._restart()
                if self._head() != before:
                    return ""
            except ScheduledFailure:
                if self.world.broken:
                    return FAILED
            except StepwellError as error:
                return error.code

    def _write(self, op: Edit | Rewrite | Fork, at: Any) -> None:
        if isinstance(op, Fork):
            self.graph.fork(at)
        elif isinstance(op, Edit):
            self.graph.update_state(at, *self._update(op.node, op.text))
        else:
            self.graph.bulk_update_state(at, [self._updates(*superstep, op.text) for superstep in op.supersteps])

    def _updates(self, kind: str, nodes: tuple[int, ...], text: str) -> list[StateUpdate]:
        acts = [self._update(number, text) for number in nodes]
        if kind == "act":
            return acts
        if kind == "input":
            return [StateUpdate({"log": [text]}, "__input__")]
        return [StateUpdate(None, END) if kind == "clear" else StateUpdate(acts, "__copy__")]

    def _update(self, node: int, text: str) -> StateUpdate:
        nodes = self.script.nodes
        return StateUpdate({"log": [text], "total": 1}, nodes[node % len(nodes)].name)

    def _run(self, step: Step) -> str:
        given, config = self._call(step.op)
        self._named = self._tasks_of(step.op)
        crashes, before = list(step.crashes), self._head()
        run_id: str | None = f"run {next(self._runs)}"
        while True:
            try:
                with dying(crashes.pop(0) if crashes else None):
                    self._invoke(given, {**config, "run_id": run_id, "recursion_limit": 200})
                return ""
            except SimulatedCrash:
                self._restart()
                self._check_sleepers_and_successes()
                if config is THREAD and not step.same_call and self._head() != before:
                    given, config, run_id, self._named = None, THREAD, None, []
            except (ScheduledFailure, RunError) as error:
                if isinstance(error, RunError) and type(error) is not RunError:
                    return error.code
                if self.world.broken:
                    return FAILED
                given, config, run_id = None, self._where(), f"run {next(self._runs)}"
                self._named = []
            except StepwellError as error:
                return error.code

    def _where(self) -> Any:
        """Return the checkpoint at which the newest run ended."""
        with self.saver.store.reading() as reader:
            run = reader.runs("t")[0]
        return {"configurable": {"thread_id": "t", "checkpoint_id": run.checkpoint_id}}

    def _invoke(self, given: Any, config: Any) -> Any:
        options: Any = {"durability": self.durability, "on_pending": "discard"}
        if self._named:
            if self.asynchronous:
                return asyncio.run(self.graph.aretry(config, self._named, **options))
            return self.graph.retry(config, self._named, **options)
        if self.asynchronous:
            return asyncio.run(self.graph.ainvoke(given, config, **options))
        return self.graph.invoke(given, config, **options)

    def _call(self, op: Op) -> tuple[Any, Any]:
        """Return input and config of a call."""
        match op:
            case Begin(text):
                return {"log": [text]}, THREAD
            case Redirect(text, goto):
                return Command(
                    update={"log": [text]}, goto=self.script.nodes[goto % len(self.script.nodes)].name
                ), THREAD
            case Replay(back):
                return None, self._at(back)
            case Reply(which, value):
                asked = self.graph.get_state(THREAD).interrupts
                return (Command(resume=self._answers(asked, which, value)) if asked else None), THREAD
            case ReplyEarlier(back, value):
                at = self._at(back)
                asked = self.graph.get_state(at).interrupts
                return (Command(resume=self._answers(asked, 0, value)) if asked else None), at
            case ReplyByOldId(number, value):
                ids = self._ids()
                return (Command(resume={ids[number % len(ids)]: value}) if ids else None), THREAD
            case Continue() | Retry():
                return None, THREAD
        raise AssertionError(op)

    def _tasks_of(self, op: Op) -> list[str]:
        """Return the ids of the tasks that a retry names."""
        if not isinstance(op, Retry):
            return []
        tasks = self.graph.get_state(self._at(0)).tasks
        named = [tasks[i].id for i in chosen_of(tasks, op.which)]
        self._settled, self._kept = self._settled - set(named), self._kept - set(named)
        self._discarding = set(named)
        return named

    def _ids(self) -> list[str]:
        """Return every id that the thread shows, oldest first."""
        shown = reversed(list(self.graph.get_state_history(THREAD)))
        return list(dict.fromkeys(question.id for snapshot in shown for question in snapshot.interrupts))

    def _answers(self, asked: Any, which: int, value: Any) -> dict[str, Any]:
        chosen = [question for i, question in enumerate(asked) if which >> i & 1] or [asked[which % len(asked)]]
        self.answered |= {question.id for question in chosen}
        return {question.id: value for question in chosen}

    # -- looking -----------------------------------------------------------------------------------------------------

    def _at(self, back: int) -> Any:
        history = list(self.graph.get_state_history(THREAD))
        return history[back % len(history)].config

    def _head(self) -> int:
        with self.saver.store.reading() as reader:
            thread = reader.thread("t")
            return 0 if thread is None else thread.head_seq

    def look(self, error: str = "") -> Seen:
        """Return what a user sees."""
        now: StateSnapshot = self.graph.get_state(THREAD)
        history = [_plain(snapshot) for snapshot in self.graph.get_state_history(THREAD)]
        return Seen(error, now.values, now.next, [question.value for question in now.interrupts], history)

    # -- branches ----------------------------------------------------------------------------------------------------

    def reopen(self) -> None:
        """Come back as another process, without a crash."""
        if self.path is not None:
            self.saver.store.close()
            self.saver = Saver(self.path, self.clock, self.opened)
        self._deploy()

    def branches(self, thread_id: str = "t") -> list[Any]:
        """Return what each lineage's newest checkpoint shows: lineage, values, next, joins, tasks."""
        heads: dict[int, StateSnapshot] = {}
        for snapshot in self.graph.get_state_history({"configurable": {"thread_id": thread_id}}):
            heads.setdefault(snapshot.lineage, snapshot)
        return [
            (lineage, shown.values, shown.next, dict(shown.joins), _plain(shown)[6])
            for lineage, shown in sorted(heads.items(), key=lambda head: head[0])
        ]

    def copied(self) -> list[Any]:
        """Copy the thread; return the branches of the copy."""
        copy_thread(self.saver.store, "t", "copy", self.clock.now())
        return self.branches("copy")

    def forked(self) -> list[Any]:
        """Fork the head of each branch into a thread of its own; return what those show."""
        found = []
        for lineage, config in self._heads():
            address = self.graph.fork(config, thread_id=f"fork {lineage}")
            snapshot = self.graph.get_state(address)
            found.append((snapshot.values, snapshot.next, dict(snapshot.joins)))
        return found

    def folded(self) -> list[Any]:
        """Return, per branch, the values that its recorded outcomes make, superstep by superstep from its beginning."""
        with self.saver.store.reading() as reader:
            found = []
            for _, config in self._heads():
                row = reader.checkpoint("t", "", config["configurable"]["checkpoint_id"])
                assert row is not None
                state = self._fold(reader, row)
                found.append({key: state.values[key] for key in self.graph.plan.channels if key in state.values})
            return found

    def _heads(self) -> list[tuple[int, Any]]:
        heads: dict[int, Any] = {}
        for snapshot in self.graph.get_state_history(THREAD):
            heads.setdefault(snapshot.lineage, snapshot.config)
        return sorted(heads.items())

    def _fold(self, reader: Any, row: CheckpointRow) -> State:
        """Return a checkpoint's state, its values made anew from its parent's where it is a superstep."""
        plan, codec = self.graph.plan, self.graph.codec
        loaded = load(reader, codec, plan, row)
        if row.source != "loop":
            return loaded.base.state
        (parent,) = reader.checkpoints("t", [row.parent_seq])
        before = self._fold(reader, parent)
        base = load(reader, codec, plan, parent).base
        held = {record.seq: record for record in reader.records("t", row.parent_seq)}
        codec = reading(reader, codec, "t", [row.body, *(record.body for record in held.values())])
        outcomes = {}
        for node, index, _, *outcome in loaded.opened.outcomes:
            if len(outcome) == 1:
                outcomes[node, index] = layout.decode_succeeded(codec, held[outcome[0]].body, "r")
            else:
                routes = layout.decode_routes(codec, outcome[1])
                outcomes[node, index] = Succeeded(layout.decode_writes(codec, outcome[0]), routes)
        made = merge(plan, before, base.tasks, [outcomes[task.node, task.index] for task in base.tasks]).state
        assert made._replace(values={}) == loaded.base.state._replace(values={})
        return made

    def _check_sleepers_and_successes(self) -> None:
        """INV-4 and INV-8: what the disk holds as done, and what waits for an answer, has not been called since."""
        called = {call.task_id for call in self.world.calls}
        returned = {call.task_id for call in self.world.calls if not call.router}
        self.world.calls.clear()
        assert called.isdisjoint(self._settled), "a success that was durable ran again"
        assert returned.isdisjoint(self._kept), "a node whose router failed or asked ran again"
        history = [] if self._head() == 0 else list(self.graph.get_state_history(THREAD))
        tasks = [task for snapshot in history for task in snapshot.tasks]
        self._settled = {task.id for task in tasks if task.result is not None} - self._discarding
        self._kept = self._kept_tasks() - self._discarding
        asked = {question.id for task in tasks if task.result is None for question in task.interrupts}
        assert asked.isdisjoint(self.answered & self._landed), "an answered question was asked again"
        self._landed = self.answered - asked

    def _kept_tasks(self) -> set[str]:
        """Return the tasks whose node has returned, durably, while their router has yet to succeed."""
        found = set()
        with self.saver.store.reading() as reader:
            failed = reader.records_of_kind("t", lifecycle.FAILED)
            interrupted = reader.records_of_kind("t", lifecycle.INTERRUPTED)
            codec = reading_records(reader, self.graph.codec, [*failed, *interrupted])
            for row in failed:
                found |= {row.task_id} if layout.decode_failed(codec, row.body, "r").kept is not None else set()
            for row in interrupted:
                found |= {row.task_id} if layout.decode_interrupted(codec, row.body, "r").kept is not None else set()
        return found

    _kept: set[str] = set()
    _named: list[str] = []
    _discarding: set[str] = set()
    """Tasks that are being run anew: their success may come again."""
    _settled: set[str] = set()
    _landed: set[str] = set()


def _plain(snapshot: StateSnapshot) -> Any:
    assert snapshot.metadata is not None
    tasks = [
        (task.name, task.path, task.error, [question.value for question in task.interrupts], task.result)
        for task in snapshot.tasks
    ]
    return (
        snapshot.lineage,
        snapshot.metadata["step"],
        snapshot.metadata["source"],
        snapshot.values,
        snapshot.next,
        dict(snapshot.joins),
        tasks,
    )


@contextmanager
def dying(crash: Crash | None) -> Iterator[None]:
    """Die at a point, and stay dead until somebody takes the hook away; without a crash, live."""
    left = 0 if crash is None else crash[1]

    def hook(point: str) -> None:
        nonlocal left
        if crash is not None and (left == 0 or (point == crash[0] and (left := left - 1) == 0)):
            raise SimulatedCrash(point)

    points.hook = None if crash is None else hook
    try:
        yield
    except SimulatedCrash:
        raise
    except BaseException:
        points.hook = None
        raise
    points.hook = None
