"""A life of threads that says something of its own in every place in which a user, or a node, can say anything.

Each place has its word, which stands nowhere else. So what of a database can be read is told by the words found in it.
"""

from __future__ import annotations

import contextlib
import operator
from typing import Annotated, Any, TypedDict

from stepwell import (
    START,
    Approve,
    Command,
    EffectInDoubtError,
    RetryPolicy,
    Runtime,
    Send,
    StateGraph,
    awakeable,
    effect,
    interrupt,
    task,
    wait_for,
)
from stepwell.items import ItemTable
from stepwell.savers.keeping import KeepingSaver

WORDS: list[str] = []


def word(place: str) -> str:
    """Return the word of a place."""
    made = f"word-of-{place}-!"
    if made not in WORDS:
        WORDS.append(made)
    return made


class State(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    large: str


def config(thread_id: str, **more: Any) -> dict[str, Any]:
    return {"configurable": {"thread_id": thread_id}, **more}


@task
def step(given: str) -> str:
    return word("step")


@effect(
    key=lambda given: word("effect-key"), approval=True, planned_action=lambda given: word("planned"), on_doubt="raise"
)
def pay(given: str) -> str:
    return word("receipt")


@effect(scope="global", key=lambda given: word("global-key"), on_doubt="raise")
def shared(given: str) -> str:
    return word("global-receipt")


@effect(on_doubt="raise")
def doubtful(given: str) -> str:
    raise RuntimeError(word("doubt"))


def build(saver: KeepingSaver, items: ItemTable) -> tuple[Any, list[str], list[int]]:
    """Return the graph, the ids of awakeables as they are handed out, and how often the broken node has failed."""
    ids: list[str] = []
    failures: list[int] = []

    def talk(state: State, runtime: Runtime[Any]) -> Any:
        assert runtime.store is not None
        runtime.store.put(("kept",), "item", {"value": word("item-of-node")})
        step(word("step-input"))
        answer = interrupt(word("question"))
        return Command(update={"log": [word("node"), answer]}, goto=[Send("sent", {"log": [word("send")]})])

    def sent(state: State) -> Any:
        if not failures:
            failures.append(1)
            raise ConnectionError(word("attempt"))
        return {"log": [word("sent")], "large": word("large") * 4000}

    def act(state: State) -> Any:
        return {"log": [pay(word("effect-input")), shared(word("global-input"))]}

    def wait(state: State) -> Any:
        waiting = awakeable()
        if waiting.id not in ids:
            ids.append(waiting.id)
        return {"log": [wait_for(word("signal-key")), waiting.result()]}

    def broken(state: State) -> Any:
        failures.append(2)
        if failures.count(2) == 1:
            raise ValueError(word("failure"))
        return {"log": []}

    graph = StateGraph(State)
    retry = RetryPolicy(initial_interval=0.0, jitter=False)
    graph.add_node("talk", talk, destinations=("sent",)).add_node("sent", sent, retry_policy=retry)
    graph.add_node("act", act).add_node("wait", wait).add_node("broken", broken)
    graph.add_edge(START, "talk").add_edge("sent", "act").add_edge("act", "wait").add_edge("wait", "broken")
    compiled = graph.compile(checkpointer=saver, store=items, events=True, name="life")
    return compiled, ids, failures


def live(saver: KeepingSaver, items: ItemTable, durability: Any) -> Any:
    """Go through everything; return the state that it ends in."""
    graph, ids, _ = build(saver, items)
    here = config("t", metadata={"about": word("metadata")})
    graph.signal(here, word("signal-key"), word("signal"))
    asked = graph.invoke({"log": [word("input")]}, here, durability=durability)
    answer = {asked["__interrupt__"][0].id: word("answer")}
    asked = graph.invoke(Command(resume=answer), here, durability=durability)
    (question,) = asked["__interrupt__"]
    yes = Approve(by=word("approver"), note=word("note"))
    graph.invoke(Command(resume={question.id: yes}), here, durability=durability)
    graph.complete_awakeable(ids[-1], word("completion"))
    with contextlib.suppress(ValueError):
        graph.invoke(None, here, durability=durability)
    graph.invoke(None, here, durability=durability)
    graph.update_state(here, {"log": [word("edit")]})
    old = list(graph.get_state_history(here))[3].config
    graph.fork(old, {"log": [word("fork")]})
    saver.copy_thread("t", "copied")
    graph.invoke({"log": [word("second-input")]}, config("copied"), on_pending="discard")
    items.put(("kept",), "other", {"value": word("item")})
    graph.signal(config("later"), word("early-key"), word("early"))
    doubt(saver)
    return graph.get_state(here).values


def doubt(saver: KeepingSaver) -> None:
    graph = StateGraph(State).add_node("act", lambda state: {"log": [doubtful(word("doubt-input"))]})
    compiled = graph.add_edge(START, "act").compile(checkpointer=saver, name="doubt")
    try:
        compiled.invoke({"log": []}, config("doubt"))
    except EffectInDoubtError as error:
        said = {"receipt": word("resolved"), "by": word("resolver"), "reason": word("reason")}
        compiled.resolve_effect(config("doubt"), error.fields()["key"], **said)
    compiled.invoke(None, config("doubt"))
