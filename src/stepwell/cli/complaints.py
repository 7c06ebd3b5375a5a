"""How an error reads on a terminal: `error[code]: message`, on one line of stderr.

The engine's messages speak to a Python program. Where its next step is a call of the API, `_NEXT` says it as a command
line instead. The rule: what is chosen is chosen by `code` and fields, never by text.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Mapping
from typing import Any

import click

from stepwell.cli.exit_status import exit_status
from stepwell.cli.faults import RunStopped
from stepwell.cli.screen import one_line, say
from stepwell.errors import StepwellError

_NEXT: Mapping[str, str] = {  # by code, or by code and a field that only some of its errors have
    "ambiguous_answer": "Thread {thread_id} has several questions open: {open_ids}. Say which one you answer:"
    " --answer ID=JSON, once for each.",
    "effect_in_doubt": "Whether effect {name!r} (key {key}) has happened is not known: {error}. Thread {thread_id} does"
    " not repeat it. Look at the other side, then say what happened: `resolve {thread_id} {key}`.",
    "empty_input": "Thread {thread_id} has nothing to go on with. Give it an --input.",
    "invalid_decision": "Effect {name!r} of thread {thread_id} asks for a decision ({interrupt_id}): {reason}. Nothing"
    " was recorded, and nothing is approved. Decide with `approve` or `reject`.",
    "merge_failed": "The writes of {tasks} to channel {channel!r} could not be combined: {reason}. Their results are"
    " kept: fix the reducer.",
    "nothing_to_retry": "Thread {thread_id} has no failed task to retry. `resume` goes on with it; `retry --task NODE`"
    " runs a planned task anew.",
    "pending_work": "Thread {thread_id} waits for an answer ({interrupts}). Answer it with `resume --answer`, or begin"
    " another thread.",
    "pending_work:doubts": "Thread {thread_id} has effects in doubt ({doubts}): it is not known whether they happened."
    " Say what happened with `resolve`, go on with `resume`, or begin another thread.",
    "pending_work:waiting": "Thread {thread_id} waits ({waiting}). Go on with `resume` once that has come, or begin"
    " another thread.",
    "pending_work:run_id": "Thread {thread_id} has an input that run {run_id} was working on when its process died. Go"
    " on with `resume`, or begin another thread.",
    "poisoned_run": "Run {run_id} of thread {thread_id} was taken over {recoveries} times without progress and is given"
    " up. Fix what kills the process.",
    "recursion_limit": "Thread {thread_id} reached the limit of {limit} supersteps. The state is saved; the next run"
    " has a fresh limit.",
    "run_not_ended": "Run {run_id} of thread {thread_id} has not ended, and nothing was deleted. Wait for it, or go on"
    " with it by `resume` if its process died; `delete` without --run deletes the thread, whatever runs on it.",
    "thread_exists": "Thread {thread_id} is not empty, and nothing is written over it. Name another one, or `delete` it"
    " first.",
    "unknown_interrupt": "Thread {thread_id} has no such question open. Open: {open_ids}. `show` shows them;"
    " `resume` without --answer goes on with the thread.",
}

_UNFINISHED = frozenset({"interrupted", "recursion_limit"})
"""Codes of runs that nothing is wrong with."""


def complain(error: Exception, *, debug: bool) -> int:
    """Say what went wrong, with the traceback where one was asked for, and return the exit status."""
    if debug:
        traceback.print_exception(error, file=sys.stderr)
    code, message = describe(error)
    say(f"error[{code}]: {one_line(message)}")
    return exit_status(code)


def describe(error: Exception) -> tuple[str, str]:
    """Return the code and the message of an error."""
    if isinstance(error, RunStopped):
        code, message = describe(error.error)
        return code, f"{message} {'Go on' if code in _UNFINISHED else 'Try again'}: {error.again}"
    if isinstance(error, StepwellError):
        return error.code, _message(error)
    if isinstance(error, click.UsageError):
        where = f" See {error.ctx.command_path} --help." if error.ctx is not None else ""
        return "usage_error", f"{error.format_message()}{where}"
    if isinstance(error, click.ClickException):
        return "usage_error", error.format_message()
    return "internal_error", f"{raised(error)}. This is a bug in Stepwell; --debug shows where."


def raised(error: BaseException) -> str:
    """Return an exception as text for the middle of a sentence: its type, and what it says."""
    text = (_message(error) if isinstance(error, StepwellError) else str(error)).rstrip().removesuffix(".")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _message(error: StepwellError) -> str:
    fields = {key: _listed(value) for key, value in error.fields().items()}
    special = (_NEXT.get(f"{error.code}:{key}") for key in fields)
    template = next(filter(None, special), _NEXT.get(error.code))
    try:
        return str(error) if template is None else template.format(**fields)
    except (KeyError, IndexError):  # raised with other fields than usual
        return str(error)


def _listed(value: Any) -> Any:
    return ", ".join(map(str, value)) or "none" if isinstance(value, list | tuple | set | frozenset) else value
