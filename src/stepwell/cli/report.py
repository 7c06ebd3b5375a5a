"""How the end of a run and a checkpoint are printed: for a program with --json, for a person otherwise.

The rule: after a run, stdout holds its values as JSON and nothing else; what to do next goes to stderr.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from stepwell.cli.checkpoint_view import CheckpointView, OpenQuestion, TaskView, node_names
from stepwell.cli.screen import brief, one_line, readable, say, write, write_json
from stepwell.cli.settings import Settings

ResumeLine = Callable[[str], str]
"""Question id → the command line that answers it."""


def report_run(view: CheckpointView, settings: Settings, target: str) -> None:
    """Print where a run has ended: its values, and the questions it waits for."""

    def resume(question: str) -> str:
        return settings.resume_command(target, view.thread, question)

    if settings.json:
        shown = {key: getattr(view, key) for key in ("thread", "status", "checkpoint", "step", "next", "values")}
        write_json({**shown, "questions": _questions(view, resume)})
        return
    say(_headline(view))
    say_questions(view.questions, resume)
    write_json(view.values)


def report_checkpoint(view: CheckpointView, settings: Settings, target: str) -> None:
    """Print a checkpoint: values, what is next, tasks and questions."""

    def resume(question: str) -> str:
        return settings.resume_command(target, view.thread, question)

    if settings.json:
        write_json({**asdict(view), "questions": _questions(view, resume)})
        return
    write(f"thread      {one_line(view.thread)}, {view.status}")
    write(f"checkpoint  {_checkpoint_line(view)}")
    write(f"next        {node_names(view.next)}")
    for task in view.tasks:
        write(f"task        {_task_line(task)}")
    for question in view.questions:
        write(f"question    {_question_line(question)}")
        write(f"            {resume(question.id)}")
    write_json(view.values)


def say_questions(questions: Sequence[OpenQuestion], resume: ResumeLine) -> None:
    """Say which questions are open, and how each is answered."""
    for question in questions:
        say(f"{question.node} asks ({question.id}):")
        say(textwrap.indent(readable(question.value), "  "))
        say(f"answer it: {resume(question.id)}")


def _questions(view: CheckpointView, resume: ResumeLine) -> list[dict[str, Any]]:
    return [{**asdict(question), "resume": resume(question.id)} for question in view.questions]


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
    return f"{question.id} of {question.node}: {brief(question.value)}"
