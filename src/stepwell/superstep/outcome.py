"""What became of a task, as types. A node's return value becomes writes and jumps here; nothing here runs user code.

A task succeeds only with its routing: a node that returned while its router failed is `Failed` (or `Interrupted`) with
its writes kept, so that the router alone runs again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from stepwell.errors import InvalidUpdateError, ParentCommand
from stepwell.graph.policies import idle_needs_async
from stepwell.graph.types import END, ROOT, Command, Send
from stepwell.graph.updates import items_of
from stepwell.graph.workflow import writes_of
from stepwell.ids import holdable, structural_hash
from stepwell.plan.tables import NodePlan, Plan
from stepwell.superstep.items import ItemWrite

Write = tuple[str, Any]
Route = str | Send
"""Where to go next: a node's name, or a send."""


class Question(NamedTuple):
    """One occurrence of an interrupt, not answered yet."""

    interrupt_id: str
    call_id: str
    value: Any


class Awaited(NamedTuple):
    """One thing from outside that a task waits for: a time, a signal, the completion of an awakeable."""

    call_id: str
    kind: str
    """timer | signal | awakeable"""
    key: str
    """The signal's, or the awakeable's id; "" for a timer."""
    until: int | None
    """When the waiting is over in any case: wall time in microseconds, set when the task first asked. None: never."""


class Returned(NamedTuple):
    """What a node returned, before its routers ran."""

    writes: tuple[Write, ...]
    routes: tuple[Route, ...]
    """Jumps by Command, then static edges."""
    items: tuple[ItemWrite, ...] = ()


class Succeeded(NamedTuple):
    """The task is done: these writes, this way on."""

    writes: tuple[Write, ...]
    routes: tuple[Route, ...]
    items: tuple[ItemWrite, ...] = ()
    """What it wrote to the item store, routers included."""


class Failed(NamedTuple):
    """User code raised and no retry is left."""

    text: str
    error: BaseException | None = None
    """The live exception; None after a reload."""
    kept: Returned | None = None
    """What the node returned, where only its router failed."""


class Interrupted(NamedTuple):
    """The task waits for answers, or for what else is to come from outside."""

    questions: tuple[Question, ...]
    kept: Returned | None = None
    awaited: tuple[Awaited, ...] = ()


class Cancelled(NamedTuple):
    """The task was stopped from outside before it was done."""

    text: str = "CancelledError()"
    kept: Returned | None = None


def paused(noted: Iterable[Question | Awaited], kept: Returned | None) -> Interrupted:
    """Return the outcome of a task that noted these before it left its node."""
    noted = tuple(noted)
    questions = tuple(each for each in noted if isinstance(each, Question))
    return Interrupted(questions, kept, tuple(each for each in noted if isinstance(each, Awaited)))


LONGEST_TEXT = 10_000
"""Characters of an error that are stored."""


def text_of(error: BaseException) -> str:
    """Return the exception as it is stored: its repr, cut where it is very long, in letters a database can hold."""
    try:
        text = repr(error)
    except Exception:
        text = f"{type(error).__name__}(<its repr raised>)"
    text = holdable(text)
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}… ({len(text)} characters)"


Outcome = Succeeded | Failed | Interrupted | Cancelled


def returned(plan: Plan, table: NodePlan, value: Any, task_id: Callable[[], str]) -> Returned:
    """Return the writes and jumps that a node's return value means. `task_id` is asked only where ids must be made."""
    if type(value) is dict and not plan.state.is_root:  # by far the most common: an update and nothing else
        channels = plan.channels
        known = tuple(value.items())
        if not value.keys() <= channels.keys():
            known = tuple([item for item in known if item[0] in channels])
        return Returned(_with_ids(plan, known, task_id) if plan.inventive else known, table.edges)
    writes: list[Write] = []
    jumps: list[Route] = []
    if plan.is_workflow:  # whatever it returns is a value
        return Returned(writes_of(value), ())
    if plan.state.is_root:
        _add_root(value, writes, jumps)
    else:
        for part in _parts(value):
            _add_part(plan, part, writes, jumps)
    if jumps:
        check_jumps(plan, f"Node {table.name!r}", jumps)
    edges = () if jumps and table.goto_replaces else table.edges
    routes = (*jumps, *edges) if jumps else edges
    return Returned(_with_ids(plan, writes, task_id) if plan.inventive else tuple(writes), routes)


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, list | tuple) and any(isinstance(part, Command) for part in value):
        return value
    return (value,)


def _add_root(value: Any, writes: list[Write], jumps: list[Route]) -> None:
    parts = value if isinstance(value, list | tuple) and any(isinstance(part, Command) for part in value) else (value,)
    for part in parts:
        if isinstance(part, Command):
            jumps.extend(goto_of(part))
            part = part.update
        if part is not None:
            writes.append((ROOT, part))


def _add_part(plan: Plan, part: Any, writes: list[Write], jumps: list[Route]) -> None:
    if isinstance(part, Command):
        jumps.extend(goto_of(part))
        part = part.update
    if part is None:
        return
    writes.extend(update_items(part, plan.channels))


def update_items(update: Any, keys: Iterable[str]) -> Sequence[Write]:
    """Return the (key, value) pairs among `keys` that an update stands for: a mapping, pairs, or a state object."""
    items = items_of(update, keys)
    if items is not None:
        return items
    if isinstance(update, list | tuple) and all(_is_pair(pair) for pair in update):
        known = frozenset(keys)
        return [pair for pair in update if pair[0] in known]
    raise InvalidUpdateError(f"Expected dict, got {update!r}", reason="not an update", value_type=type(update).__name__)


def _is_pair(pair: Any) -> bool:
    return isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str)


def goto_of(command: Command[Any]) -> list[Route]:
    """Return a command's jumps. A jump to END leads nowhere, and is a jump all the same."""
    if command.graph is not None:
        raise ParentCommand(command=command, reason="Command(graph=...) outside a subgraph")
    goto = command.goto
    targets = [goto] if isinstance(goto, str | Send) else list(goto)
    return [target if isinstance(target, Send) else str(target) for target in targets]


def check_send(plan: Plan, send: Send) -> None:
    """Raise InvalidUpdateError where a send's idle timeout could not be kept."""
    idle = send.timeout is not None and send.timeout.idle_timeout is not None
    if idle and plan.nodes[send.node].callee.as_async() is None:
        text = f"Cannot send to {send.node!r} with an idle_timeout. {idle_needs_async(send.node)}"
        raise InvalidUpdateError(text, reason="idle timeout of a sync node", target=send.node)


def check_jumps(plan: Plan, who: str, jumps: Iterable[Route]) -> None:
    """Raise InvalidUpdateError where a jump leads to no node."""
    for jump in jumps:
        name = jump.node if isinstance(jump, Send) else jump
        if name == END and isinstance(jump, Send):
            raise InvalidUpdateError("Cannot send a packet to the END node", reason="Send(END)", target=name)
        if name != END and name not in plan.nodes:
            raise InvalidUpdateError(
                f"{who} jumps to {name!r}, which is not a node", reason="unknown node", target=name
            )
        if isinstance(jump, Send):
            check_send(plan, jump)


def _with_ids(plan: Plan, writes: Sequence[Write], task_id: Callable[[], str]) -> tuple[Write, ...]:
    return tuple(
        (key, plan.channels[key].with_ids(value, _id_maker(task_id, key, i)) if key in plan.inventive else value)
        for i, (key, value) in enumerate(writes)
    )


def _id_maker(task_id: Callable[[], str], channel: str, write: int) -> Callable[[int], str]:
    return lambda index: structural_hash("message", task_id(), channel, write, index)


def summary(writes: Iterable[Write]) -> Any:
    """Return writes as users see them: a mapping (repeated channels folded under "$writes"), the bare value of a state
    without keys or of a workflow, or None."""
    folded: dict[str, Any] = {}
    repeated: set[str] = set()
    for key, value in writes:
        if key in repeated:
            folded[key]["$writes"].append(value)
        elif key in folded:
            repeated.add(key)
            folded[key] = {"$writes": [folded[key], value]}
        else:
            folded[key] = value
    if set(folded) == {ROOT}:
        return folded[ROOT]
    return folded.get(END, folded or None)


def result_of(writes: Sequence[Write]) -> Any:
    """Return a finished task's writes as its result: `summary`, or {} where it wrote nothing."""
    return summary(writes) if writes else {}
