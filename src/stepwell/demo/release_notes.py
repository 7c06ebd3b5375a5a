"""The demo's graph: release notes drafted from a git history, approved by a human, published once.

    collect ─► condense (one task per commit) ─► draft ─► approve ─► publish

Here: the nodes and how they hang together. Not here: the text work (`commits.py`, `notes.py`) and the file
(`publication.py`). The rule: every node can be run again without harm, since a process may die at any line of it.

The input is `{"repo": path or None, "out": folder}`. `approve` asks for True, False, or the edited text.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Protocol, TypedDict

from stepwell import END, START, Send, StateGraph, interrupt
from stepwell.demo.commits import Commit, read_commits
from stepwell.demo.notes import Entry, condense as condense_commit, render
from stepwell.demo.publication import Publication, publish_once


class ReleaseNotes(TypedDict, total=False):
    """The state of a thread that drafts release notes."""

    repo: str | None
    out: str
    commits: list[Commit]
    entries: Annotated[list[Entry], operator.add]
    text: str
    approved: bool
    published: Publication


class Condensing(TypedDict):
    """What one `condense` task is given."""

    commit: Commit


def collect(state: ReleaseNotes) -> ReleaseNotes:
    """Read the history."""
    return {"commits": read_commits(state.get("repo"))}


def condense(task: Condensing) -> ReleaseNotes:
    """Make one line of one commit."""
    return {"entries": [condense_commit(task["commit"])]}


def draft(state: ReleaseNotes) -> ReleaseNotes:
    """Lay out what the tasks found."""
    return {"text": render(state.get("entries", []))}


def approve(state: ReleaseNotes) -> ReleaseNotes:
    """Ask a human. True publishes the draft, a text publishes that instead, anything else publishes nothing."""
    answer = interrupt({"draft": state["text"]})
    if isinstance(answer, str) and answer.strip():
        return {"approved": True, "text": answer}
    return {"approved": answer is True}


def publish(state: ReleaseNotes) -> ReleaseNotes:
    """Put the notes in place."""
    return {"published": publish_once(Path(state["out"]), "release-notes", state["text"])}


def each_commit(state: ReleaseNotes) -> list[Send] | str:
    """Give every commit a task of its own."""
    return [Send("condense", {"commit": commit}) for commit in state["commits"]] or "draft"


def if_approved(state: ReleaseNotes) -> str:
    """Publish only what was approved."""
    return "publish" if state["approved"] else END


class Watch(Protocol):
    """Wraps a node to see it run."""

    def __call__(self, name: str, node: Callable[[Any], Any], /) -> Callable[[Any], Any]: ...


def unwatched(_name: str, node: Callable[[Any], Any], /) -> Callable[[Any], Any]:
    """Leave the node as it is."""
    return node


def build(watch: Watch = unwatched) -> StateGraph[Any]:
    """Return the graph, each node wrapped by `watch`. Compile it with a checkpointer to let it survive."""
    graph = StateGraph(ReleaseNotes)
    for node in (collect, condense, draft, approve, publish):
        graph.add_node(node.__name__, watch(node.__name__, node))
    graph.add_edge(START, "collect")
    graph.add_conditional_edges("collect", each_commit, ["condense", "draft"])
    graph.add_edge("condense", "draft")
    graph.add_edge("draft", "approve")
    graph.add_conditional_edges("approve", if_approved, ["publish", END])
    graph.add_edge("publish", END)
    return graph


graph = build().compile(name="release-notes")
