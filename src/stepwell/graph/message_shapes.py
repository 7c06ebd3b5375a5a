"""The two shapes a message may have: a langchain-core object where that package is installed, else a dict.

Everything that depends on which of the two it is lives here, so that `messages` only merges. langchain-core is imported
by the first call that needs to know, never by importing this module.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from stepwell.errors import InvalidUpdateError


@dataclass(frozen=True, slots=True)
class PlainRemoveMessage:
    """Remove the message with this id: what `RemoveMessage` is without langchain-core."""

    id: str


@functools.cache
def langchain() -> Any:
    """Return the module `langchain_core.messages`, or None where it is not installed."""
    try:
        return importlib.import_module("langchain_core.messages")
    except ModuleNotFoundError:
        return None


def removal_class() -> type[Any]:
    """Return the class that is public as `RemoveMessage`."""
    lc = langchain()
    return PlainRemoveMessage if lc is None else lc.RemoveMessage


def is_removal(message: Any) -> bool:
    """Return whether `message` removes another one."""
    return isinstance(message, PlainRemoveMessage | removal_class())


def id_of(message: Any) -> Any:
    """Return the message's id, or None."""
    return message.get("id") if isinstance(message, dict) else message.id


def with_id(message: Any, message_id: str) -> Any:
    """Return a copy of `message` with this id."""
    if isinstance(message, dict):
        return {**message, "id": message_id}
    return message.model_copy(update={"id": message_id})


def as_messages(items: Sequence[Any]) -> list[Any]:
    """Return every item as a message; chunks of streamed messages become whole ones."""
    lc = langchain()
    if lc is None:
        return [_plain(item) for item in items]
    if all(_is_whole(item, lc) for item in items):
        return list(items)
    items = [lc.RemoveMessage(id=item.id) if isinstance(item, PlainRemoveMessage) else item for item in items]
    return [lc.message_chunk_to_message(message) for message in lc.convert_to_messages(items)]


def _is_whole(item: Any, lc: Any) -> bool:
    return isinstance(item, lc.BaseMessage) and not isinstance(item, lc.BaseMessageChunk)


def _plain(item: Any) -> Any:
    if isinstance(item, dict | PlainRemoveMessage):
        return item
    if isinstance(item, str):
        return {"role": "user", "content": item}
    if isinstance(item, tuple | list) and len(item) == 2:
        return {"role": item[0], "content": item[1]}
    raise InvalidUpdateError(
        f"Not a message: {item!r}. Write a dict, a string, a (role, content) pair or a RemoveMessage."
    )


def formatted(messages: list[Any]) -> list[Any]:
    """Return the messages with contents as OpenAI text and image blocks. Ids stay; a split one gets numbered ones."""
    lc = langchain()
    if lc is None:
        raise ImportError("format='langchain-openai' needs langchain-core: pip install langchain-core")
    return [part for message in messages for part in _openai_parts(message, lc)]


def _openai_parts(message: Any, lc: Any) -> list[Any]:
    parts = lc.convert_to_messages(lc.convert_to_openai_messages([message]))
    return [with_id(part, message.id if index == 0 else f"{message.id}:{index}") for index, part in enumerate(parts)]
