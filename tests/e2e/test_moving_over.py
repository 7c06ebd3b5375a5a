"""What LangGraph's users write every day, run with only the import lines changed: state that accumulates, resuming,
forking, fan-out, questions asked in turn and side by side, and what a node repeats."""

from typing import Any

import pytest

from stepwell import InvalidUpdateError
from tests.e2e.moving import run

ACCUMULATE = """
from typing import Annotated
from typing_extensions import TypedDict
import operator
from langgraph.graph import StateGraph, START, END
from langgraph.checkpoint.memory import MemorySaver

class State(TypedDict):
    value: str
    log: Annotated[list, operator.add]

async def step_a(state): return {"value": "A", "log": ["ran A"]}
async def step_b(state): return {"value": "B", "log": ["ran B"]}

g = (StateGraph(State)
     .add_node("a", step_a).add_node("b", step_b)
     .add_edge(START, "a").add_edge("a", "b").add_edge("b", END)
     .compile(checkpointer=MemorySaver()))

cfg = {"configurable": {"thread_id": "demo-1"}}
await g.ainvoke({"value": "", "log": []}, cfg)

seen = []
async for snap in g.aget_state_history(cfg):
    seen.append((snap.metadata["step"], snap.next, snap.values.get("value"), snap.values["log"]))
"""

FORK = """
target = None
async for snap in g.aget_state_history(cfg):
    if snap.metadata["step"] == 1:
        target = snap.config
        break

new_cfg = await g.aupdate_state(target, {"value": "FORKED"})

await g.ainvoke(None, new_cfg)
"""

RESUME = """
import operator
from typing import Annotated
from typing_extensions import TypedDict
from langgraph.graph import StateGraph, START, END
from langgraph.checkpoint.memory import MemorySaver

class State(TypedDict):
    log: Annotated[list, operator.add]

ran, broken = [], True

async def a(state): ran.append("a"); return {"log": ["a"]}
async def b(state): ran.append("b"); return {"log": ["b"]}

async def c(state):
    ran.append("c")
    if broken: raise RuntimeError("downstream is away")
    return {"log": ["c"]}

g = (StateGraph(State).add_sequence([a, b, c]).add_edge(START, "a").add_edge("c", END)
     .compile(checkpointer=MemorySaver()))
cfg = {"configurable": {"thread_id": "recovers"}}
fresh_state = {"log": []}

try:
    await g.ainvoke(fresh_state, cfg)
except RuntimeError:
    broken = False

snap = await g.aget_state(cfg)
waiting = snap.next
graph_input = None if snap.next else fresh_state
result = await g.ainvoke(graph_input, config=cfg)
"""

FAN_OUT = """
import operator
from typing import Annotated
from typing_extensions import TypedDict
from langgraph.graph import StateGraph, START, END
from langgraph.types import Send

class State(TypedDict):
    items:      list
    merged:     Annotated[dict, lambda l, r: {**(l or {}), **(r or {})}]
    collected:  Annotated[list, operator.add]
    single:     str

def route(state):
    return [Send("worker", {"item": it}) for it in state["items"]]

async def worker(state):
    return {"merged": {state["item"]: "done"}, "collected": [state["item"]]}

async def careless(state):
    return {"single": state["item"]}

def built(node):
    return (StateGraph(State).add_node("worker", node)
            .add_conditional_edges(START, route, ["worker"]).add_edge("worker", END).compile())
"""

GATE = """
from typing_extensions import TypedDict
from langgraph.graph import StateGraph, START, END
from langgraph.checkpoint.memory import MemorySaver
from langgraph.types import interrupt, Command

class State(TypedDict):
    plan: str
    approved: str

async def gate(state):
    decision = interrupt({"question": "approve this plan?", "plan": state["plan"]})
    return {"approved": decision}

g = (StateGraph(State).add_node("gate", gate).add_edge(START, "gate").add_edge("gate", END)
     .compile(checkpointer=MemorySaver()))
cfg = {"configurable": {"thread_id": "hitl-1"}}

r1 = await g.ainvoke({"plan": "deploy", "approved": ""}, cfg)
snap = await g.aget_state(cfg)
r2 = await g.ainvoke(Command(resume="APPROVED"), cfg)
"""

TWO_GATES = """
from typing_extensions import TypedDict
from langgraph.graph import StateGraph, START
from langgraph.checkpoint.memory import MemorySaver
from langgraph.types import interrupt, Command

class State(TypedDict, total=False):
    a: str
    b: str

passes = 0

async def two_gates(state):
    global passes
    passes += 1
    first  = interrupt({"ask": "A?"})
    second = interrupt({"ask": "B?"})
    return {"a": first, "b": second}

g = (StateGraph(State).add_node(two_gates).add_edge(START, "two_gates").compile(checkpointer=MemorySaver()))
cfg = {"configurable": {"thread_id": "in-turn"}}
asked = [(await g.ainvoke({}, cfg))["__interrupt__"][0].value]
asked.append((await g.ainvoke(Command(resume="A-VALUE"), cfg))["__interrupt__"][0].value)
result = await g.ainvoke(Command(resume="B-VALUE"), cfg)
"""

REVIEWS = """
import operator
from typing import Annotated
from typing_extensions import TypedDict
from langgraph.graph import StateGraph, START, END
from langgraph.checkpoint.memory import MemorySaver
from langgraph.types import interrupt, Command, Send

class State(TypedDict):
    items: list
    approvals: Annotated[list, operator.add]

def fan(state):
    return [Send("review", {"item": it}) for it in state["items"]]

async def review(state):
    d = interrupt({"review_item": state["item"]})
    return {"approvals": [f"{state['item']}={d}"]}

g = (StateGraph(State).add_node(review).add_conditional_edges(START, fan, ["review"]).add_edge("review", END)
     .compile(checkpointer=MemorySaver()))
cfg = {"configurable": {"thread_id": "side-by-side"}}
paused = await g.ainvoke({"items": ["doc-X", "doc-Y", "doc-Z"]}, cfg)
ids = {i.value["review_item"]: i.id for i in paused["__interrupt__"]}
result = await g.ainvoke(Command(resume={
    ids["doc-X"]: "APPROVE",
    ids["doc-Y"]: "REJECT",
    ids["doc-Z"]: "APPROVE",
}), cfg)
"""

CHARGING = """
from typing_extensions import TypedDict
from langgraph.graph import StateGraph, START, END
from langgraph.checkpoint.memory import MemorySaver
from langgraph.types import interrupt, Command

class State(TypedDict, total=False):
    prep: str
    decision: str

charges = []
def charge_customer(*why): charges.append(why)

async def charges_first(state):
    charge_customer()
    d = interrupt({"ask": "ok?"})
    return {"decision": d}

async def asks_first(state):
    d = interrupt({"ask": "ok?"})
    charge_customer(d)
    return {"decision": d}

async def prepare(state):
    charge_customer()
    return {"prep": "ready"}

async def gate(state):
    d = interrupt({"ask": "ok?", "prep": state["prep"]})
    return {"decision": d}

cfg = {"configurable": {"thread_id": "charging"}}
g = StateGraph(State).add_sequence(nodes()).add_edge(START, nodes()[0].__name__).compile(checkpointer=MemorySaver())
await g.ainvoke({}, cfg)
result = await g.ainvoke(Command(resume="yes"), cfg)
"""

TWO_NODES = """
from langgraph.graph import StateGraph, START, END
from langgraph.checkpoint.memory import InMemorySaver
from typing import Annotated, TypedDict
from operator import add

class State(TypedDict):
    foo: str
    bar: Annotated[list[str], add]

def node_a(state: State):
    return {"foo": "a", "bar": ["a"]}

def node_b(state: State):
    return {"foo": "b", "bar": ["b"]}

workflow = StateGraph(State)
workflow.add_node(node_a)
workflow.add_node(node_b)
workflow.add_edge(START, "node_a")
workflow.add_edge("node_a", "node_b")
workflow.add_edge("node_b", END)

checkpointer = InMemorySaver()
graph = workflow.compile(checkpointer=checkpointer)
result = graph.invoke({"foo": "", "bar": []}, {"configurable": {"thread_id": "1"}})
"""

APPROVAL = """
from typing_extensions import Annotated, TypedDict
from langgraph.graph import StateGraph, START, MessagesState
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

def tool(state: MessagesState):
    decision = interrupt({"action": state["messages"][-1].content})
    return {"messages": [{"role": "assistant", "content": decision}]}

agent = StateGraph(MessagesState).add_node(tool).add_edge(START, "tool").compile(checkpointer=InMemorySaver())
config = {"configurable": {"thread_id": "some_id"}}
result = agent.invoke(
    {
        "messages": [
            {
                "role": "user",
                "content": "Delete old records from the database",
            }
        ]
    },
    config=config,
    version="v2",
)
done = agent.invoke(Command(resume="approved"), config=config, version="v2")
"""


async def test_state_accumulates_and_its_history_shows_each_step() -> None:
    names = await run(ACCUMULATE)
    assert names["seen"] == [
        (2, (), "B", ["ran A", "ran B"]),
        (1, ("b",), "A", ["ran A"]),
        (0, ("a",), "", []),
        (-1, ("__start__",), None, []),
    ]


async def test_an_edit_at_an_old_checkpoint_grows_a_branch_and_leaves_the_other_as_it_was() -> None:
    names = await run(ACCUMULATE + FORK)
    graph, before = names["g"], len(names["seen"])
    history = list(graph.get_state_history(names["cfg"]))
    assert {"value": "FORKED", "log": ["ran A"]} in [snapshot.values for snapshot in history]
    assert len(history) == before + 2, "the edit, and what ran after it"
    assert graph.get_state(names["cfg"]).values == {"value": "B", "log": ["ran A", "ran B"]}


async def test_after_a_failure_only_what_is_missing_runs() -> None:
    names = await run(RESUME)
    assert names["waiting"] == ("c",)
    assert names["ran"] == ["a", "b", "c", "c"]
    assert names["result"] == {"log": ["a", "b", "c"]}


async def test_parallel_writes_are_merged_in_the_order_of_the_sends() -> None:
    names = await run(FAN_OUT)
    result = await names["built"](names["worker"]).ainvoke({"items": ["x", "y", "z"]})
    assert result["merged"] == {"x": "done", "y": "done", "z": "done"}
    assert result["collected"] == ["x", "y", "z"]


async def test_two_writes_to_a_key_without_a_reducer_are_an_error() -> None:
    names = await run(FAN_OUT)
    with pytest.raises(InvalidUpdateError, match="At key 'single': Can receive only one value per step"):
        await names["built"](names["careless"]).ainvoke({"items": ["x", "y"]})


async def test_a_gate_waits_for_a_human() -> None:
    names = await run(GATE)
    (asked,) = names["r1"]["__interrupt__"]
    assert asked.value == {"question": "approve this plan?", "plan": "deploy"}
    assert names["snap"].next == ("gate",)
    assert names["r2"] == {"plan": "deploy", "approved": "APPROVED"}


async def test_questions_of_one_node_are_asked_in_turn() -> None:
    names = await run(TWO_GATES)
    assert names["asked"] == [{"ask": "A?"}, {"ask": "B?"}]
    assert (names["result"], names["passes"]) == ({"a": "A-VALUE", "b": "B-VALUE"}, 3)


async def test_questions_of_parallel_tasks_are_answered_at_once_by_id() -> None:
    names = await run(REVIEWS)
    assert names["result"]["approvals"] == ["doc-X=APPROVE", "doc-Y=REJECT", "doc-Z=APPROVE"]


@pytest.mark.parametrize(
    ("nodes", "charges"), [(["charges_first"], 2), (["asks_first"], 1), (["prepare", "gate"], 1)], ids=str
)
async def test_what_stands_before_a_question_in_its_node_is_repeated(nodes: list[str], charges: int) -> None:
    names: dict[str, Any] = {}
    names |= await run(CHARGING.replace("nodes()", f"[{', '.join(nodes)}]"))
    assert len(names["charges"]) == charges
    assert names["result"]["decision"] == "yes"


async def test_a_graph_of_plain_functions_runs_as_it_stands() -> None:
    names = await run(TWO_NODES)
    assert names["result"] == {"foo": "b", "bar": ["a", "b"]}
    snapshot = names["graph"].get_state({"configurable": {"thread_id": "1"}})
    assert (snapshot.next, snapshot.metadata["step"], snapshot.metadata["source"]) == ((), 2, "loop")


async def test_an_approval_is_waited_for_and_typed_results_tell() -> None:
    names = await run(APPROVAL)
    (asked,) = names["result"].interrupts
    assert asked.value == {"action": "Delete old records from the database"}
    assert [message.content for message in names["done"].value["messages"]][-1] == "approved"
    assert names["done"].interrupts == ()
