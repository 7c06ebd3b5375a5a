"""The stream mode `messages`: chat model tokens and messages that nodes write, each with where it comes from.

A message is shown once: by its tokens as a model makes it, whole where it was not streamed, and not again when a node
returns it or passes on what it was given. Tokens come through langchain's callbacks, where langchain-core is installed;
`runtime.stream_message` is there with and without it. Nothing of langchain is imported before a run asks for this mode.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextvars import Context
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from stepwell.graph.message_shapes import id_of, is_removal, langchain
from stepwell.graph.updates import items_of
from stepwell.superstep.outcome import Write

if TYPE_CHECKING:
    from stepwell.runtime.calls import TaskRun
    from stepwell.runtime.scope import MessageWriter
    from stepwell.runtime.stream.consumer import Stream

NOT_STREAMED = "nostream"
"""The tag that keeps a model's tokens out of the stream."""
_ENGINE_TAGS = ("seq:", "map:", "graph:", "langsmith:", "branch:")


class Messages:
    """What of a stream is messages."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._shown: set[Any] = set()
        """Ids of the messages that were shown, or that a node was given."""
        self._lock = threading.Lock()  # several models may speak at once

    def know(self, given: Any, keys: Iterable[str]) -> None:
        """Take what a node is given as shown: passing it on is no news. `keys` are those its fields may have."""
        if isinstance(given, Mapping):
            values: Iterable[Any] = given.values()
        else:
            values = [value for _, value in items_of(given, keys) or (("", given),)]
        with self._lock:
            self._shown.update(id_of(message) for value in values for message in _within(value))

    def written(self, task_run: TaskRun, writes: Iterable[Write]) -> list[tuple[Any, dict[str, Any]]]:
        """Return the messages among a task's writes that nobody has seen, with their metadata."""
        metadata = task_run.run.metadata_of(task_run)
        messages = (message for _, value in writes for message in _within(value) if not is_removal(message))
        return [(message, dict(metadata)) for message in messages if self._is_new(message)]

    def writer(self, task_run: TaskRun) -> MessageWriter:
        """Return what shows a message, or a piece of one, at once: `write(message, **metadata)`."""
        origin = task_run.run.metadata_of(task_run)

        def write(message: Any, /, **metadata: Any) -> None:
            self.show(message, {**origin, **metadata})

        return write

    def show(self, message: Any, metadata: dict[str, Any]) -> None:
        """Show a message, or a piece of one, at once. It counts as shown from here on, if it has an id."""
        with self._lock:
            self._shown.add(_id_or_none(message))
        self._stream.send("messages", (message, metadata))

    def show_new(self, message: Any, metadata: dict[str, Any]) -> None:
        """Show a whole message, unless its tokens were shown."""
        if self._is_new(message):
            self._stream.send("messages", (message, metadata))

    def with_handler(self, callbacks: Any) -> Any:
        """Return a config's callbacks with one more, which shows what models say; as they are, without langchain."""
        if langchain() is None:
            return callbacks
        return with_handler(callbacks, _handler_class()(self))

    def _is_new(self, message: Any) -> bool:
        with self._lock:
            message_id = id_of(message)
            new = message_id is None or message_id not in self._shown
            self._shown.add(message_id)
            return new


def _id_or_none(message: Any) -> Any:
    return id_of(message) if isinstance(message, dict) or hasattr(message, "id") else None


def _within(value: Any) -> Iterator[Any]:
    """Yield the messages that a channel's value is or lists: langchain's, or dicts with a role and an id."""
    for item in value if isinstance(value, list | tuple) else (value,):
        lc = langchain()
        if (lc is not None and isinstance(item, lc.BaseMessage)) or _is_plain(item):
            yield item


def _is_plain(item: Any) -> bool:
    """Return whether a dict is a message, as `add_messages` keeps them without langchain-core."""
    return isinstance(item, dict) and "role" in item and "content" in item and item.get("id") is not None


# -- langchain's callbacks --------------------------------------------------------------------------------------------


def enter_config(context: Context, config: Mapping[str, Any]) -> None:
    """Let langchain objects called in `context` without a config find this one."""
    if langchain() is not None:
        from langchain_core.runnables.config import var_child_runnable_config

        context.run(var_child_runnable_config.set, config)  # type: ignore[arg-type]


def with_handler(callbacks: Any, handler: Any) -> Any:
    """Return a config's callbacks, a list or a manager, with one more handler."""
    if callbacks is None:
        return [handler]
    if isinstance(callbacks, list | tuple):
        return [*callbacks, handler]
    manager = callbacks.copy()
    manager.add_handler(handler, inherit=True)
    return manager


@functools.cache
def _handler_class() -> Any:
    """Return the callback handler's class, made once langchain-core is known to be there."""
    from langchain_core.callbacks import BaseCallbackHandler
    from langchain_core.outputs import ChatGeneration, ChatGenerationChunk
    from langchain_core.tracers._streaming import _StreamingCallbackHandler  # asks models to stream under `invoke`

    class TokenHandler(BaseCallbackHandler, _StreamingCallbackHandler):  # type: ignore[type-arg]
        """Shows a chat model's tokens as they come, and its message if it does not stream."""

        run_inline = True
        raise_error = True

        def __init__(self, messages: Messages) -> None:
            self._messages = messages
            self._speaking: dict[Any, dict[str, Any]] = {}
            """Run id of a model call → the metadata of what it says."""

        def tap_output_iter(self, run_id: Any, output: Any) -> Any:
            return output

        def tap_output_aiter(self, run_id: Any, output: Any) -> Any:
            return output

        def on_chat_model_start(
            self, serialized: Any, messages: Any, *, run_id: Any, tags: Any = None, metadata: Any = None, **more: Any
        ) -> None:
            if metadata is None or NOT_STREAMED in (tags or ()):
                return
            told = [tag for tag in tags or () if not tag.startswith(_ENGINE_TAGS)]
            self._speaking[run_id] = {**metadata, "tags": told} if told else dict(metadata)

        def on_llm_new_token(self, token: Any, *, chunk: Any = None, run_id: Any, **more: Any) -> None:
            metadata = self._speaking.get(run_id)
            if metadata is not None and isinstance(chunk, ChatGenerationChunk):
                self._messages.show(_named(chunk.message), metadata)

        def on_llm_end(self, response: Any, *, run_id: Any, **more: Any) -> None:
            metadata = self._speaking.pop(run_id, None)
            said = response.generations[0][0] if response.generations and response.generations[0] else None
            if metadata is not None and isinstance(said, ChatGeneration):
                self._messages.show_new(_named(said.message), metadata)

        def on_llm_error(self, error: BaseException, *, run_id: Any, **more: Any) -> None:
            self._speaking.pop(run_id, None)

    return TokenHandler


def _named(message: Any) -> Any:
    """Return the message, with an id of its own if it has none: the node returns this very object."""
    if message.id is None:
        message.id = str(uuid4())
    return message
