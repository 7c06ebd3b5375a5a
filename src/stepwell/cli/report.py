"""How the end of a run and a checkpoint are printed: for a program with --json, for a person otherwise.

The rule: after a run, stdout holds its values as JSON and nothing else; what to do next goes to stderr.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from stepwell.cli.checkpoint_view import CheckpointView, OpenQuestion, OpenWait, TaskView, node_names
from stepwell.cli.difference import Change, changes
from stepwell.cli.rendering import VALUE
from stepwell.cli.screen import brief, cut, one_line, readable, say, write, write_json
from stepwell.cli.settings import Settings

AnswerLine = Callable[[OpenQuestion], str]
"""Question → the command line that answers it."""


def report_run(view: CheckpointView, settings: Settings, target: str) -> None:
    """Print where a run has ended: its values, and the questions it waits for."""

    answer = _answer_line(settings, target, view.thread)
    if settings.json:
        shown = {key: getattr(view, key) for key in ("thread", "status", "checkpoint", "step", "next", "values")}
        write_json({**shown, "questions": _questions(view, answer), "waits": _waits(view)})
        return
    say(_headline(view))
    say_questions(view.questions, answer)
    for wait in view.waits:
        say(f"{wait.node} waits for {_wait_line(wait)}")
    write_json(view.values)


def report_checkpoint(view: CheckpointView, settings: Settings, target: str) -> None:
    """Print a checkpoint: values, what is next, tasks and questions."""

    answer = _answer_line(settings, target, view.thread)
    if settings.json:
        write_json({**asdict(view), "questions": _questions(view, answer), "waits": _waits(view)})
        return
    write(f"thread      {one_line(view.thread)}, {view.status}")
    write(f"checkpoint  {_checkpoint_line(view)}")
    write(f"next        {node_names(view.next)}")
    for task in view.tasks:
        write(f"task        {_task_line(task)}")
    for question in view.questions:
        write(f"{'question ' if question.approval is None else 'approval '}   {_question_line(question)}")
        write(f"            {answer(question)}")
    for wait in view.waits:
        write(f"wait        {wait.node}: {_wait_line(wait)}")
    write_json(view.values)


def report_difference(old: CheckpointView, new: CheckpointView, settings: Settings) -> None:
    """Print what differs from one checkpoint to another: what is next, and the values path by path."""
    found = list(changes(old.values, new.values))
    if settings.json:
        facts = [{"path": list(path), "change": kind, "from": a, "to": b} for path, kind, a, b in found]
        write_json({"thread": new.thread, "from": _place(old), "to": _place(new), "values": facts})
        return
    write(f"thread  {one_line(new.thread)}, {new.status}")
    write(f"from    {_checkpoint_line(old)}")
    write(f"to      {_checkpoint_line(new)}")
    planned = [node_names(view.next) for view in (old, new)]
    write(f"next    {planned[0]}" if planned[0] == planned[1] else f"next    {planned[0]} -> {planned[1]}")
    for change in found:
        write(_change_line(change))
    if not found:
        say("the values are the same")


def say_questions(questions: Sequence[OpenQuestion], answer: AnswerLine) -> None:
    """Say which questions are open, and how each is answered."""
    for question in questions:
        if question.approval is not None:
            say(f"{question.node} asks for approval ({question.id}):")
            say(textwrap.indent(approval_text(question.approval), "  "))
            say(f"decide: {answer(question)}")
            continue
        say(f"{question.node} asks ({question.id}):")
        say(textwrap.indent(readable(question.value), "  "))
        say(f"answer it: {answer(question)}")


def approval_text(request: Mapping[str, Any]) -> str:
    """Return what an effect wants approved, as a person reads it."""
    shown = [] if request["shown"] is None else [readable(request["shown"])]
    return "\n".join((_action_line(request), *shown))


def _action_line(request: Mapping[str, Any]) -> str:
    until = "" if request["expires_at"] is None else f", until {request['expires_at'][VALUE]}"
    return f"{one_line(request['planned_action'])}{until}"


def _answer_line(settings: Settings, target: str, thread_id: str) -> AnswerLine:
    def line(question: OpenQuestion) -> str:
        if question.approval is not None:
            return settings.approve_command(thread_id, question.id)
        return settings.resume_command(target, thread_id, question.id)

    return line


def _questions(view: CheckpointView, answer: AnswerLine) -> list[dict[str, Any]]:
    return [{**asdict(question), "resume": answer(question)} for question in view.questions]


def _waits(view: CheckpointView) -> list[dict[str, Any]]:
    return [asdict(wait) for wait in view.waits]


def _wait_line(wait: OpenWait) -> str:
    what = wait.kind if not wait.key else f"{wait.kind} {one_line(wait.key)}"
    return what if wait.until is None else f"{what}, until {wait.until}"


def _headline(view: CheckpointView) -> str:
    text = f"thread {one_line(view.thread)}: {view.status} after step {view.step}"
    return text if not view.next else f"{text}, next: {node_names(view.next)}"


def _checkpoint_line(view: CheckpointView) -> str:
    if view.checkpoint is None:
        return "none yet"
    where = f"step {view.step} ({view.source}), lineage {view.lineage}, seq {view.seq}"
    return f"{view.checkpoint}, {where}, {view.created_at}"


def _task_line(task: TaskView) -> str:
    if task.error is not None:
        return f"{task.node}: {task.status}, {one_line(task.error)}"
    result = "" if task.result is None else f", {brief(task.result)}"
    return f"{task.node}: {task.status}{result}"


def _question_line(question: OpenQuestion) -> str:
    asked = brief(question.value) if question.approval is None else cut(_action_line(question.approval))
    return f"{question.id} of {question.node}: {asked}"


def _place(view: CheckpointView) -> dict[str, Any]:
    return {key: getattr(view, key) for key in ("checkpoint", "step", "lineage", "seq", "next")}


def _change_line(change: Change) -> str:
    """Return a change as a person reads it: `+ seen[1]: "new"`, `- n: 1`, `~ n: 1 -> 2`."""
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in change.path).removeprefix(".")
    place = one_line(where) or "values"
    match change.kind:
        case "added":
            return f"+ {place}: {brief(change.new)}"
        case "removed":
            return f"- {place}: {brief(change.old)}"
        case "changed":
            return f"~ {place}: {brief(change.old)} -> {brief(change.new)}"
