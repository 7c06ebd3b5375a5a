"""The states a run can begin with: nothing yet, a new input, a jump from outside, a fork.

A new input is a superstep of its own kind: its checkpoint plans the one pseudo-node START, whose "send" is the raw
input. START then runs like any node: its writes are the input mapped to channels, its routes the graph's entry. A
workflow is planned itself: it takes the input as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from stepwell.errors import InvalidUpdateError
from stepwell.graph.types import END, MISSING, START, Command, Send
from stepwell.plan.tables import Plan
from stepwell.superstep.given import merge_given
from stepwell.superstep.merge import Merged, Routed, route
from stepwell.superstep.outcome import Returned, Route, Succeeded, check_jumps, goto_of, returned, update_items
from stepwell.superstep.state import Base, Identity, Planned, State, Task

NOTHING_STEP = -2


def empty_state(plan: Plan) -> State:
    """Return the state before the first input: the channels that begin with a value."""
    return State(initial_values(plan), step=NOTHING_STEP)


def initial_values(plan: Plan) -> dict[str, Any]:
    """Return the value of each channel that has one before anything was written."""
    values = ((key, channel.initial()) for key, channel in plan.channels.items())
    return {key: value for key, value in values if value is not MISSING}


def input_state(state: State, raw: Any, abandoned: Iterable[Task] = (), entry: str = START) -> State:
    """Return the state that plans START, or a workflow, with this input; what was planned before is abandoned and
    counted."""
    return State(
        values=state.values,
        next=(Planned(entry, None, raw),),
        activations=count(state.activations, abandoned),
        step=state.step + 1,
    )


def count(activations: Any, tasks: Iterable[Task]) -> dict[str, int]:
    """Return the counters with these tasks added."""
    counted = Counter(dict(activations))
    counted.update(task.node for task in tasks)
    return dict(counted)


def start_outcome(plan: Plan, raw: Any, task_id: Callable[[], str]) -> Returned:
    """Return the input as START's writes and jumps. Keys outside the input schema are dropped."""
    if isinstance(raw, Command) or plan.input.is_root:
        return returned(plan, plan.start, raw, task_id)
    try:
        update = dict(update_items(raw, plan.input.keys))
    except InvalidUpdateError as error:
        raise InvalidUpdateError(f"Expected the input to be a dict, got {raw!r}", reason=str(error)) from None
    return returned(plan, plan.start, update, task_id)


def commanded(plan: Plan, base: Base, command: Command[Any], identity: Identity) -> Merged:
    """Return the state after a command from outside: its update folded in, its jumps planned beside what is planned."""
    made = returned(plan, plan.start, Command(update=command.update), lambda: f"command:{identity.checkpoint_id}")
    source = Task(Planned(START), base.state.activations.get(START, 0), identity)
    merged = merge_given(plan, base.state, [source], [Succeeded(made.writes, ())])
    jumps = goto_of(command)
    check_jumps(plan, "The command", jumps)
    planned, barriers, deferred = _with_jumps(plan, base.state, jumps)
    state = merged.state._replace(
        next=planned,
        barriers=barriers,
        deferred=deferred,
        activations=base.state.activations,
        writers=base.state.writers,
    )
    return Merged(state, merged.changed)


def _with_jumps(plan: Plan, state: State, jumps: Sequence[Route]) -> Routed:
    """Plan jumps beside what is planned. A deferred node goes on waiting while anything else is."""
    if not state.next:
        return route(plan, state.barriers, state.deferred, (), jumps)
    sends = [planned for planned in state.next if planned.at is not None]
    for jump in jumps:
        if isinstance(jump, Send):
            sends.append(Planned(jump.node, len(sends), jump.arg, jump.timeout))
    named = {jump for jump in jumps if isinstance(jump, str) and jump != END}
    late = {node for node in named if node in plan.nodes and plan.nodes[node].defer}
    pulls = {planned.node: planned for planned in state.next if planned.at is None}
    pulls.update((node, Planned(node)) for node in named - late - pulls.keys())
    return (*sends, *(pulls[node] for node in sorted(pulls))), state.barriers, state.deferred | (late - pulls.keys())
