"""What the user typed, as values: inputs, edits, answers and filters, all of them JSON.

The rule: text that is not what it should be is a usage error that says so; nothing is guessed. A bare word is not a
string.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from stepwell.errors import UsageError
from stepwell.graph.types import Answer

_BY_ID = re.compile(r"([0-9a-f]{32})=(.*)", re.DOTALL)


def parse_input(text: str) -> Any:
    """Return the input of a run: JSON, or `@file` with JSON in it."""
    value = parse_given(text, "--input")
    if value is None:
        raise UsageError("--input null is no input. Leave --input out to go on with the thread.")
    return value


def parse_given(text: str, option: str) -> Any:
    """Return the value of an option: JSON, or `@file` with JSON in it."""
    return parse_json(_content(text[1:], option) if text.startswith("@") else text, option)


def parse_answers(texts: Sequence[str]) -> Any:
    """Return what to resume with: one `Answer`, or a map of question ids to answers."""
    by_id = [_BY_ID.fullmatch(text) for text in texts]
    if len(texts) == 1 and by_id[0] is None:
        return Answer(parse_json(texts[0], "--answer"))
    answers: dict[str, Any] = {}
    for text, match in zip(texts, by_id, strict=True):
        if match is None:
            raise UsageError(f"--answer {text!r} does not say which question it is for: write ID=JSON.")
        if match[1] in answers:
            raise UsageError(f"--answer is given twice for question {match[1]}.")
        answers[match[1]] = parse_json(match[2], "--answer")
    return answers


def parse_filter(texts: Sequence[str]) -> dict[str, Any]:
    """Return a history filter from `KEY=JSON` texts."""
    wanted: dict[str, Any] = {}
    for text in texts:
        key, sign, value = text.partition("=")
        if not key or not sign:
            raise UsageError(f"--filter takes KEY=JSON, as in --filter step=2, not {text!r}.")
        wanted[key] = parse_json(value, f"--filter {key}")
    return wanted


def parse_json(text: str, what: str) -> Any:
    """Return the value that `text` is the JSON of."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{what} is not JSON: {error}. Text goes in quotes: '\"yes\"'.", given=text) from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not part of JSON")


def _content(name: str, option: str) -> str:
    try:
        return Path(name).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"{option} @{name} cannot be read: {reason}.", path=name) from None
