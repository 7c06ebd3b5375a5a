"""Workflows made up by chance: what they are, what they must end with, how they run, and how they are driven to their
end through crashes.

A workflow is a graph of nodes whose code is data: steps, some at once, some within others, some failing, effects,
questions, and waits for signals.
`expected` says what it ends with, without any engine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, NamedTuple, Protocol

from hypothesis import strategies as st

from stepwell import START, Command, EmptyInputError, RetryPolicy, StateGraph, effect, interrupt, task, wait_for
from stepwell.runtime.scope import current
from stepwell.superstep.step_body import decode_step
from stepwell.superstep.steps import DONE
from tests.steps.nodes import Log

ALWAYS = 99


class Ask(NamedTuple):
    """A question."""

    path: str


class Signal(NamedTuple):
    """A wait for a signal."""

    path: str


class Effect(NamedTuple):
    """A call of an effect, whose other side honours keys."""

    path: str


class Step(NamedTuple):
    """A call of a step: it runs what is within, and fails as often as told."""

    path: str
    callee: str
    is_async: bool = False
    fails: int = 0
    """ALWAYS: its caller handles that."""
    retried: bool = False
    """Whether it is tried again itself; else its node is."""
    within: tuple[Any, ...] = ()


class Together(NamedTuple):
    """Steps at once: called by the node itself or, `beside`, each by a thread or coroutine of its own."""

    steps: tuple[Step, ...]
    beside: bool = False


Part = Ask | Signal | Effect | Step | Together


class Node(NamedTuple):
    name: str
    is_async: bool
    parts: tuple[Part, ...]


Workflow = tuple[Node, ...]
"""All run side by side but the last, which follows them."""


# -- made up by chance ------------------------------------------------------------------------------------------------


@st.composite
def workflows(draw: Any) -> Workflow:
    """Return a strategy of workflows of one to three nodes."""
    names = [f"n{i}" for i in range(draw(st.integers(1, 3)))]
    return tuple(Node(name, draw(st.booleans()), draw(_parts(name, 2))) for name in names)


@st.composite
def _parts(draw: Any, path: str, depth: int) -> tuple[Part, ...]:
    return tuple(draw(_part(f"{path}.{i}", depth)) for i in range(draw(st.integers(1, 3 if depth == 2 else 2))))


@st.composite
def _part(draw: Any, path: str, depth: int) -> Part:
    kind = draw(st.sampled_from(["step", "step", "step", "together", "effect", "ask", "signal"]))
    if kind in _ALONE:
        alone: Part = _ALONE[kind](path)
        return alone
    if kind == "together":
        steps = [draw(_step(f"{path}.{i}", depth)) for i in range(draw(st.integers(2, 3)))]
        return Together(tuple(steps), draw(st.booleans()))
    found: Step = draw(_step(path, depth))
    return found


_ALONE: dict[str, Any] = {"ask": Ask, "signal": Signal, "effect": Effect}


@st.composite
def _step(draw: Any, path: str, depth: int) -> Step:
    return Step(
        path,
        draw(st.sampled_from("ab")),
        draw(st.booleans()),
        draw(st.sampled_from([0, 0, 0, 1, ALWAYS])),
        draw(st.booleans()),
        draw(_parts(path, depth - 1)) if depth > 0 and draw(st.integers(0, 3)) == 0 else (),
    )


# -- what it must end with --------------------------------------------------------------------------------------------


def expected(workflow: Workflow) -> list[Any]:
    """Return the log of the workflow's end."""
    return [_all(node.parts) for node in workflow]


def _all(parts: tuple[Part, ...]) -> list[Any]:
    return [_value(part) for part in parts]


def _value(part: Part) -> Any:
    if isinstance(part, Ask | Signal):
        return answer_to(part.path)
    if isinstance(part, Effect):
        return receipt_for(part.path)
    if isinstance(part, Together):
        return _all(part.steps)
    return f"caught {part.path}" if part.fails == ALWAYS else [part.path, *_all(part.within)]


def answer_to(question: str) -> str:
    return f"yes, {question}"


def receipt_for(path: str) -> str:
    return f"receipt for {path}"


# -- how it runs ------------------------------------------------------------------------------------------------------


class Called(NamedTuple):
    """A step's body that began."""

    epoch: int
    """Of the process that called it."""
    step: str


class World(Protocol):
    """What outlives a process."""

    def begins(self, called: Called) -> None:
        """Note a body that begins."""
        ...

    def failures(self, path: str) -> int:
        """Return how often a step has failed."""
        ...

    def fails(self, path: str) -> None:
        """Note that a step fails."""
        ...

    def pays(self, key: str, path: str) -> None:
        """Note that an effect's body is performed under this key: once, however often it is."""
        ...


class Memory:
    """A world within this process."""

    def __init__(self) -> None:
        self.called: list[Called] = []
        self.paid: dict[str, str] = {}
        """Key → the path of the effect."""
        self._failures: dict[str, int] = {}

    def begins(self, called: Called) -> None:
        self.called.append(called)

    def failures(self, path: str) -> int:
        return self._failures.get(path, 0)

    def fails(self, path: str) -> None:
        self._failures[path] = self.failures(path) + 1

    def pays(self, key: str, path: str) -> None:
        assert self.paid.setdefault(key, path) == path


class Code:
    """The functions of a workflow, and the graph of them."""

    def __init__(self, workflow: Workflow, world: World) -> None:
        self.workflow = workflow
        self.world = world
        thrice, often = (
            RetryPolicy(initial_interval=0, jitter=False, max_attempts=n, retry_on=ValueError) for n in (3, 50)
        )
        self._tasks = {
            (callee, is_async, again): task(
                self._abody if is_async else self._body, name=callee, retry_policy=thrice if again else None
            )
            for callee in "ab"
            for is_async in (False, True)
            for again in (False, True)
        }
        self._pay = effect(name="pay", on_doubt="retry")(self._paid)
        self._apay = effect(name="apay", on_doubt="retry")(self._apaid)
        self._steps = {step.path: step for node in workflow for step in _steps_of(node.parts)}
        self._policy = often

    def graph(self, saver: Any) -> Any:
        builder = StateGraph(Log)
        *first, last = [node.name for node in self.workflow]
        for node in self.workflow:
            code = self._acode(node.parts) if node.is_async else self._code(node.parts)
            builder.add_node(node.name, code, retry_policy=self._policy)
        for name in first or [last]:
            builder.add_edge(START, name)
        if first:
            builder.add_edge(first, last)
        return builder.compile(checkpointer=saver, name="workflow")

    def _code(self, parts: tuple[Part, ...]) -> Any:
        return lambda state: {"log": [self._run(parts)]}

    def _acode(self, parts: tuple[Part, ...]) -> Any:
        async def code(state: Log) -> Any:
            return {"log": [await self._arun(parts)]}

        return code

    # sync code

    def _run(self, parts: tuple[Part, ...]) -> list[Any]:
        return [self._part(part) for part in parts]

    def _part(self, part: Part) -> Any:
        if isinstance(part, Ask | Signal):
            return interrupt(part.path) if isinstance(part, Ask) else wait_for(part.path)
        if isinstance(part, Effect):
            return self._pay(part.path)
        if isinstance(part, Step):
            return _result(self._call(part))
        if not part.beside:
            return [_result(future) for future in [self._call(step) for step in part.steps]]
        with ThreadPoolExecutor(len(part.steps)) as threads:
            found = [threads.submit(copy_context().run, self._part, step) for step in part.steps]
        return [future.result() for future in found]

    def _call(self, step: Step) -> Any:
        return self._tasks[step.callee, step.is_async, step.retried](step.path)

    def _body(self, path: str) -> Any:
        step = self._begun(path)
        found = self._run(step.within)
        return self._over(step, found)

    # async code

    async def _arun(self, parts: tuple[Part, ...]) -> list[Any]:
        return [await self._apart(part) for part in parts]

    async def _apart(self, part: Part) -> Any:
        if isinstance(part, Ask | Signal):
            return interrupt(part.path) if isinstance(part, Ask) else wait_for(part.path)
        if isinstance(part, Effect):
            return await self._apay(part.path)
        if isinstance(part, Step):
            return await _aresult(self._call(part))
        if part.beside:
            return await asyncio.gather(*(self._apart(step) for step in part.steps))
        return await asyncio.gather(*(_aresult(future) for future in [self._call(step) for step in part.steps]))

    async def _abody(self, path: str) -> Any:
        step = self._begun(path)
        await asyncio.sleep(0)
        found = await self._arun(step.within)
        return self._over(step, found)

    # both

    def _paid(self, path: str, idempotency_key: str) -> str:
        self.world.pays(idempotency_key, path)
        return receipt_for(path)

    async def _apaid(self, path: str, idempotency_key: str) -> str:
        await asyncio.sleep(0)
        return self._paid(path, idempotency_key)

    def _begun(self, path: str) -> Step:
        scope: Any = current.get()
        self.world.begins(Called(scope.owner.run.ledger.epoch, f"{scope.owner.task_id()}:{scope.prefix}"))
        return self._steps[path]

    def _over(self, step: Step, found: list[Any]) -> list[Any]:
        if self.world.failures(step.path) < step.fails:
            if step.fails != ALWAYS:
                self.world.fails(step.path)
            raise ValueError(step.path, "always" if step.fails == ALWAYS else "once")
        return [step.path, *found]


def _steps_of(parts: tuple[Any, ...]) -> Iterator[Step]:
    for part in parts:
        if isinstance(part, Step):
            yield part
            yield from _steps_of(part.within)
        elif isinstance(part, Together):
            yield from _steps_of(part.steps)


def _result(future: Any) -> Any:
    try:
        return future.result()
    except ValueError as error:
        return _handled(error)


async def _aresult(future: Any) -> Any:
    try:
        return await future
    except ValueError as error:
        return _handled(error)


def _handled(error: ValueError) -> str:
    path, kind = error.args
    if kind != "always":
        raise error
    return f"caught {path}"


# -- driven to its end ------------------------------------------------------------------------------------------------


def drive(graph: Any, config: Any, api: str, durability: str) -> list[Any]:
    """Drive a thread to its end wherever it stands, as a user would who knows nothing of crashes."""
    given: Any = None
    while True:
        try:
            found = _invoke(graph, config, api, given, durability)
        except EmptyInputError:
            given = {"log": []}
            continue
        state = graph.get_state(config)
        if not state.next:
            log: list[Any] = state.values["log"]
            return log
        for wait in found.get("__waiting__", ()):
            graph.signal(config, wait.key, answer_to(wait.key), id=wait.key)
        answers = {question.id: answer_to(question.value) for question in state.interrupts}
        given = Command(resume=answers) if answers else None


def _invoke(graph: Any, config: Any, api: str, given: Any, durability: str) -> Any:
    if api == "async":
        return asyncio.run(graph.ainvoke(given, config, durability=durability))
    return graph.invoke(given, config, durability=durability)


def recorded(saver: Any, thread_id: str) -> tuple[int, set[str]]:
    """Return the thread's epoch, and the steps whose success is on record, as they are noted when they begin."""
    with saver.store.reading() as reader:
        thread = reader.thread(thread_id)
        steps = [(row.task_id, decode_step(row.body, "step")) for row in reader.records_of_kind(thread_id, "step")]
    done = {f"{task_id}:{step.call_id}" for task_id, step in steps if step.status == DONE}
    return 0 if thread is None else thread.epoch, done
