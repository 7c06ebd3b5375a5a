"""Asks a person the open questions of a thread.

The rule: no answer is made up; an empty line leaves a question open.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

from stepwell.cli.checkpoint_view import OpenQuestion
from stepwell.cli.given import parse_json
from stepwell.cli.report import approval_text
from stepwell.cli.screen import readable, say
from stepwell.cli.settings import Settings
from stepwell.errors import UsageError


def can_ask(settings: Settings) -> bool:
    """Tell whether a person sits at the other end."""
    return sys.stdin.isatty() and sys.stderr.isatty() and not settings.json


def ask(questions: Sequence[OpenQuestion]) -> dict[str, Any]:
    """Return the answers given, by question id. Raises click.Abort at Ctrl-C and at the end of the input."""
    answers: dict[str, Any] = {}
    for question in questions:
        approval = question.approval
        if approval is None:
            say(f"{question.node} asks:\n{readable(question.value)}")
        else:
            say(f"{question.node} asks for approval:\n{approval_text(approval)}")
        found = _answer() if approval is None else _decision()
        answers |= {question.id: found[0]} if found else {}
    return answers


def _decision() -> tuple[Any, ...]:
    """Return the decision in a tuple; an empty one where the question stays open."""
    while True:
        text = click.prompt("approve or reject (empty: leave it open)", default="", show_default=False, err=True)
        if not text.strip():
            return ()
        if text.strip() in ("approve", "reject"):
            by = click.prompt("who decides", err=True)
            return ({"approved": text.strip() == "approve", "by": by},)


def _answer() -> tuple[Any, ...]:
    """Return the answer in a tuple; an empty one where the question stays open."""
    while True:
        text = click.prompt("answer as JSON (empty: leave it open)", default="", show_default=False, err=True)
        if not text.strip():
            return ()
        try:
            return (parse_json(text, "This"),)
        except UsageError as error:
            say(str(error))
