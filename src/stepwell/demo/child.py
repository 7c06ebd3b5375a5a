"""The process that runs the graph, and that the driver kills: `python -m stepwell.demo.child`.

It begins the thread, continues it, or answers its question, whichever the thread needs, and tells the driver in lines
of JSON. The rule: it keeps nothing between two lives; all it knows on starting is in the database.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
from pathlib import Path
from typing import Any

from stepwell import Command, SqliteSaver
from stepwell.demo.release_notes import ReleaseNotes, build
from stepwell.demo.step_log import StepLog, step_name

_speaking = threading.Lock()


def main(arguments: list[str] | None = None) -> int:
    """Drive the thread until it ends, pauses, or this process is killed."""
    options = _options(arguments)
    log = StepLog(options.log, options.process)
    with SqliteSaver(options.db) as saver:
        watch = log.watch(lambda step: _tell("started", step=step), options.pace)
        graph = build(watch).compile(checkpointer=saver, name="release-notes")
        config = {"configurable": {"thread_id": options.thread}, "max_concurrency": 4}
        task = _next_input(graph.get_state(config), options)
        if task is not _NOTHING:
            for _, update in graph.stream(task, config, stream_mode=["updates"], durability="sync"):
                _tell_update(update)
        _tell_end(graph.get_state(config))
    return 0


_NOTHING = object()


def _next_input(snapshot: Any, options: argparse.Namespace) -> Any:
    """Return what to invoke the graph with; `_NOTHING` where the thread has ended or waits for an answer."""
    if snapshot.metadata is None:
        return ReleaseNotes(repo=options.repo, out=options.out)
    if snapshot.interrupts:
        return _NOTHING if options.answer is None else Command(resume=json.loads(options.answer))
    return None if snapshot.next else _NOTHING


def _tell_update(update: dict[str, Any]) -> None:
    """Report a result that is durable now, or that an earlier process had left and this one goes on from."""
    event = "reused" if update.get("__metadata__", {}).get("cached") else "durable"
    for node, value in update.items():
        if not node.startswith("__"):
            entries = (value or {}).get("entries")
            _tell(event, step=step_name(node, entries[0] if entries else None))


def _tell_end(snapshot: Any) -> None:
    values = snapshot.values
    if snapshot.interrupts:
        _tell("paused", question=snapshot.interrupts[0].value)
    else:
        numbers = [entry["number"] for entry in values.get("entries", [])]
        _tell("ended", commits=len(values["commits"]), entries=numbers, published=values.get("published"))


def _tell(event: str, **facts: Any) -> None:
    with _speaking:
        sys.stdout.write(json.dumps({"event": event, **facts}) + "\n")
        sys.stdout.flush()


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m stepwell.demo.child", description=main.__doc__)
    parser.add_argument("--db", required=True)
    parser.add_argument("--thread", required=True)
    parser.add_argument("--log", required=True, type=Path, help="the step log")
    parser.add_argument("--process", required=True, type=int, help="which process of the demo this is, from 1")
    parser.add_argument("--repo", help="a git repository; without one, the sample log")
    parser.add_argument("--out", required=True, help="the folder to publish to")
    parser.add_argument("--pace", type=float, default=0.0, help="seconds that every step takes at least")
    parser.add_argument("--answer", help="the answer to the open question, as JSON")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
