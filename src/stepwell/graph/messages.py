"""Chat messages as state: `add_messages`, `MessagesState`, `RemoveMessage`.

With langchain-core installed messages are its classes, and whatever it accepts as a message is coerced; without it they
stay dicts. Nothing of it is imported before the first message is merged. The rule kept: merging goes by id, and the
engine never merges a message without one; `with_ids` fills them in beforehand, so the same outcome always gives the
same state.
"""

from __future__ import annotations

import functools
import uuid
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any, Final, Literal, TypedDict, overload

from stepwell.errors import InvalidUpdateError
from stepwell.graph.channel import overwritten
from stepwell.graph.message_shapes import as_messages, formatted, id_of, is_removal, with_id
from stepwell.graph.types import Overwrite

REMOVE_ALL_MESSAGES: Final = "__remove_all__"
"""The id of a `RemoveMessage` that removes everything merged before it."""

Format = Literal["langchain-openai"]
Merge = Callable[[Any, Any], list[Any]]


@overload
def add_messages(left: Any, right: Any, *, format: Format | None = None) -> list[Any]: ...
@overload
def add_messages(*, format: Format | None = None) -> Merge: ...


def add_messages(left: Any = None, right: Any = None, *, format: Format | None = None) -> Any:
    """Append the messages of `right` to `left`; one with the id of an earlier message takes its place.

    A `RemoveMessage` removes the message with its id. Without `left` and `right`, return a reducer with this `format`:
    "langchain-openai" rewrites contents as OpenAI text and image blocks. Called by hand it gives missing ids at random;
    as a reducer of a graph the ids come from the task that wrote the message.
    """
    if format not in (None, "langchain-openai"):
        raise ValueError(f"Unrecognized format={format!r}. Expected one of 'langchain-openai', None.")
    if left is None and right is None:
        return functools.partial(add_messages, format=format)
    if left is None or right is None:
        given = "left" if right is None else "right"
        raise ValueError(f"Must specify non-null arguments for both 'left' and 'right'. Only received: {given!r}.")
    merged = _merge(_complete(left, _random_id), _complete(right, _random_id))
    return merged if format is None else formatted(merged)


class MessagesState(TypedDict):
    """A state with the one key `messages`, merged by `add_messages`. Inherit from it to add keys."""

    messages: Annotated[list[Any], add_messages]


def is_message_reducer(reducer: Any) -> bool:
    """Return whether `reducer` is `add_messages`, with a format or without."""
    while isinstance(reducer, functools.partial):
        reducer = reducer.func
    return reducer is add_messages


def with_ids(value: Any, make_id: Callable[[int], str]) -> Any:
    """Return a written value as a list of messages that all have ids: the missing one at index i is `make_id(i)`.

    What the user's node returned is not changed. An `Overwrite` stays one, around the completed list.
    """
    replaces, inner = overwritten(value)
    return Overwrite(_complete(inner, make_id)) if replaces else _complete(value, make_id)


def _complete(written: Any, make_id: Callable[[int], str]) -> list[Any]:
    messages = as_messages(written if isinstance(written, list) else [written])
    if all(id_of(message) is not None for message in messages):
        return messages
    return [
        message if id_of(message) is not None else with_id(message, make_id(index))
        for index, message in enumerate(messages)
    ]


def _random_id(index: int) -> str:
    return str(uuid.uuid4())


def _merge(left: list[Any], right: Sequence[Any]) -> list[Any]:
    """Merge by id. Both lists are complete; neither is changed."""
    return fold_messages(left, (right,))


def fold_messages(left: Sequence[Any], writes: Iterable[Sequence[Any]]) -> list[Any]:
    """Merge each of the writes in turn, by id. All lists are complete; none is changed."""
    merged = list(left)
    place = _places(merged)
    for right in writes:
        after = _after_removing_all(right)
        removed = set[Any]() if after is not None else _merge_into(merged, place, right)
        if after is not None or removed:
            merged = [message for message in merged if id_of(message) not in removed] if after is None else after
            place = _places(merged)
    return merged


def _places(messages: Iterable[Any]) -> dict[Any, int]:
    return {id_of(message): index for index, message in enumerate(messages)}


def _after_removing_all(right: Sequence[Any]) -> list[Any] | None:
    """Return what follows the last message that removes everything; None where there is none."""
    for index in range(len(right) - 1, -1, -1):
        if is_removal(right[index]) and id_of(right[index]) == REMOVE_ALL_MESSAGES:
            return list(right[index + 1 :])
    return None


def _merge_into(merged: list[Any], place: dict[Any, int], right: Sequence[Any]) -> set[Any]:
    """Merge into the list, whose places these are. Return the ids of what is to be removed from it."""
    removed: set[Any] = set()
    for message in right:
        message_id = id_of(message)
        at = place.get(message_id)
        if is_removal(message):
            if at is None:
                raise InvalidUpdateError(
                    f"Attempting to delete a message with an ID that doesn't exist ('{message_id}')",
                    message_id=message_id,
                )
            removed.add(message_id)
        elif at is None:
            place[message_id] = len(merged)
            merged.append(message)
        else:
            removed.discard(message_id)
            merged[at] = message
    return removed


def __getattr__(name: str) -> Any:
    if name == "RemoveMessage":
        from stepwell.graph import message_shapes

        return message_shapes.removal_class()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
