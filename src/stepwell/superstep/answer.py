"""Which questions an answer from outside is for. Unknown, answered and ambiguous ids are errors; nothing is guessed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from stepwell.errors import AmbiguousAnswerError, InterruptAnsweredError, UnknownInterruptError
from stepwell.graph.types import MISSING, Answer, Command
from stepwell.superstep.outcome import Interrupted, Question
from stepwell.superstep.state import Base, Task

_ID = re.compile(r"[0-9a-f]{32}\Z")


Asked = tuple[Task, Question]
"""A question and the task that asked it."""


class Answered(NamedTuple):
    """One answer and the question it is for."""

    task: Task
    question: Question
    value: Any


def resumes(command: Command[Any]) -> bool:
    """Tell whether the command carries an answer: None is one."""
    return command.resume is not MISSING


def id_map(resume: Any) -> Mapping[str, Any] | None:
    """Return the answer as an id map, or None where it is one value: a dict is a map if all its keys look like ids."""
    if isinstance(resume, dict) and resume and all(isinstance(key, str) and _ID.match(key) for key in resume):
        return resume
    return None


def bare(value: Any) -> Any:
    """Return what an `Answer` wraps; anything else is the answer itself."""
    return value.value if isinstance(value, Answer) else value


def match_answers(
    thread: str, askable: Sequence[Asked], resume: Any, aliases: Mapping[str, str], answered: Iterable[str]
) -> list[Answered]:
    """Return which of the askable questions `resume` answers.

    `aliases` maps ids from before an edit or fork to today's; `answered` lists ids answered anywhere on the thread.
    """
    ids = [question.interrupt_id for _, question in askable]
    given = id_map(resume)
    if given is None:
        value = bare(resume)
        if len(askable) > 1:
            raise AmbiguousAnswerError(thread_id=thread, open_ids=ids)
        if not askable:
            raise UnknownInterruptError(
                f"Thread {thread} has no open question to answer. Continue it with invoke(None, config).",
                thread_id=thread,
                interrupt_ids=[],
                open_ids=[],
            )
        return [Answered(*askable[0], value)]
    return _by_id(thread, askable, given, aliases, set(answered))


def _by_id(
    thread: str,
    askable: Sequence[Asked],
    given: Mapping[str, Any],
    aliases: Mapping[str, str],
    answered: set[str],
) -> list[Answered]:
    by_id = {question.interrupt_id: (task, question) for task, question in askable}
    found = {key: by_id.get(key) or by_id.get(aliases.get(key, "")) for key in given}
    missing = [key for key, entry in found.items() if entry is None]
    if missing:
        old = [key for key in missing if key in answered]
        kind = InterruptAnsweredError if len(old) == len(missing) else UnknownInterruptError
        raise kind(thread_id=thread, interrupt_ids=missing, open_ids=list(by_id))
    if len({entry[1].interrupt_id for entry in found.values() if entry is not None}) < len(found):
        raise AmbiguousAnswerError(
            f"Thread {thread}: two ids of the map name the same question; a question is answered once.",
            thread_id=thread,
            open_ids=list(by_id),
        )
    return [Answered(*entry, bare(given[key])) for key, entry in found.items() if entry is not None]


def open_now(base: Base) -> Iterator[Asked]:
    """Return the questions of a base that nobody has answered."""
    for task, outcome in zip(base.tasks, base.outcomes, strict=True):
        if isinstance(outcome, Interrupted):
            known = base.answers.get(task.id, {})
            yield from ((task, question) for question in outcome.questions if question.call_id not in known)
