"""An agent at a refund desk: a model proposes, a person approves, and what is done is done once.

    START ─► think ─► act ─┐        think: the model says what to do next, or has nothing left to do
               ▲           │        act: its tool calls are carried out
               └───────────┘

    python examples/agent.py

Kill it wherever you like and start it again: it goes on where it was. The model is not asked again for what it has
said, the money goes back once, and a decision that was made is not asked for again. Or drive it from the command line:

    stepwell run examples/agent.py:graph --thread desk --input '{"messages": [{"role": "user", "content": "Order 7"}]}'
    stepwell approve desk --by ann
    stepwell resume examples/agent.py:graph --thread desk

Nothing here is written for crashes. What makes them harmless: what a node returns is on disk before the next one runs,
a task's result before it is used, a tool's intent before it acts and its receipt before anybody sees it.
"""

import json
import operator
import sys
from pathlib import Path
from typing import Annotated, Any, TypedDict

from stepwell import (
    END,
    START,
    Approval,
    ApprovalRejectedError,
    ApprovalRequest,
    Approve,
    Command,
    Reject,
    SqliteSaver,
    StateGraph,
    task,
    wrap_tool,
)

Message = dict[str, Any]

# -- the outside world ------------------------------------------------------------------------------------------------


class Shop:
    """Stands for the services an agent calls. They honour keys: what comes again under one key is not done again."""

    folder = Path("shop")

    def refund(self, order: str, cents: int, *, idempotency_key: str) -> str:
        return self._once(idempotency_key, f"refunded {cents} cents for order {order}")

    def notify(self, order: str, text: str, *, idempotency_key: str) -> str:
        return self._once(idempotency_key, f"told the customer of order {order}: {text}")

    def _once(self, key: str, what: str) -> str:
        done = self.folder / key
        if not done.exists():
            self.folder.mkdir(exist_ok=True)
            doing = done.with_suffix(".part")
            doing.write_text(what)
            doing.rename(done)
        return done.read_text()


class ScriptedModel:
    """Stands for a model's client: anything with a method `complete` takes its place."""

    def complete(self, messages: list[Message]) -> Message:
        """Return what the assistant says next, with the tools it wants called."""
        said, last = sum(message["role"] == "assistant" for message in messages), messages[-1]["content"]
        if said == 0:
            return call("look_up", order="7")
        if said == 1:
            return call("refund", order="7", cents=json.loads(last)["cents"])
        if said == 2:
            return call("notify", order="7", text=last)
        return {"role": "assistant", "content": f"Done. I {last}.", "tool_calls": []}


def call(tool: str, **args: Any) -> Message:
    return {"role": "assistant", "content": "", "tool_calls": [{"id": f"call-{tool}", "name": tool, "args": args}]}


shop, model = Shop(), ScriptedModel()

# -- the tools --------------------------------------------------------------------------------------------------------


@task
def look_up(order: str) -> dict[str, Any]:
    """Read what an order cost: it changes nothing, and what was read is recorded."""
    return {"order": order, "cents": 1250}


refund = wrap_tool(shop.refund, key=lambda order, cents: f"refund {order}", approval=Approval(expires=7 * 86_400))
notify = wrap_tool(shop.notify, key=lambda order, text: f"notify {order}")

TOOLS = {"look_up": lambda **args: json.dumps(look_up(**args).result()), "refund": refund, "notify": notify}


def use(wanted: Message) -> Message:
    """Call a tool; a tool that nobody lets run is something for the model to know."""
    try:
        content = TOOLS[wanted["name"]](**wanted["args"])
    except ApprovalRejectedError as no:
        content = f"could not {wanted['name']}, as {no.fields()['by']} said no: {no.fields()['reason']}"
    return {"role": "tool", "tool_call_id": wanted["id"], "content": content}


# -- the graph --------------------------------------------------------------------------------------------------------


class Desk(TypedDict):
    messages: Annotated[list[Message], operator.add]


def think(desk: Desk) -> Desk:
    return {"messages": [model.complete(desk["messages"])]}


def act(desk: Desk) -> Desk:
    return {"messages": [use(wanted) for wanted in desk["messages"][-1]["tool_calls"]]}


def next_step(desk: Desk) -> str:
    return "act" if desk["messages"][-1]["tool_calls"] else END


graph = StateGraph(Desk).add_node("think", think).add_node("act", act).add_edge(START, "think").add_edge("act", "think")
graph.add_conditional_edges("think", next_step, ["act", END])

# -- a person at a terminal -------------------------------------------------------------------------------------------


def decide(request: ApprovalRequest) -> Approve | Reject:
    print(f"The agent wants to {request.planned_action}.")
    if input("Let it? [y/N] ").strip().lower() == "y":
        return Approve(by=name())
    return Reject(by=name(), reason=input("Why not? "))


def name() -> str:
    """Ask until somebody says who decides: a decision without a name is none."""
    while not (given := input("Your name: ").strip()):
        pass
    return given


def main() -> None:
    try:
        serve()
    except (EOFError, KeyboardInterrupt):  # nobody is there to decide: the thread stays as it is
        sys.exit("\nThe agent waits. Start it again at a terminal, or: stepwell approve desk --by YOU --db agent.db")


def serve() -> None:
    config = {"configurable": {"thread_id": "desk"}}
    request: Desk = {"messages": [{"role": "user", "content": "Order 7 arrived broken."}]}
    with SqliteSaver("agent.db") as saver:
        agent = graph.compile(checkpointer=saver)
        begun = agent.get_state(config).values
        desk = agent.invoke(None if begun else request, config)
        while questions := desk.get("__interrupt__"):
            answers = {question.id: decide(question.value) for question in questions}
            desk = agent.invoke(Command(resume=answers), config)
    print(desk["messages"][-1]["content"])


if __name__ == "__main__":
    main()
