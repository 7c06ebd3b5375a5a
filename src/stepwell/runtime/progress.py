"""What counts as progress of an attempt beside its heartbeats: what it sends to a stream, what langchain does for it.

The rule kept: an attempt that nobody limits pays nothing. Nothing of langchain is imported before a run has an idle
timeout.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

from stepwell.graph.message_shapes import langchain
from stepwell.runtime.deadlines import Deadline
from stepwell.runtime.stream.messages import with_handler


def heard(hears: Deadline, write: Callable[..., None]) -> Callable[..., None]:
    """Return `write`, reporting progress with each call."""

    def writing(chunk: Any, /, **metadata: Any) -> None:
        hears.progress()
        write(chunk, **metadata)

    return writing


@functools.cache
def load_langchain() -> None:
    """Import what of langchain tells of progress. It takes a while, so it is done before an idle timeout begins."""
    if langchain() is not None:
        importlib.import_module("langchain_core.runnables.config")
        _handler_class()


def with_callbacks(callbacks: Any, hears: Deadline) -> Any:
    """Return a config's callbacks with one more, which takes every event of langchain's for progress."""
    return callbacks if langchain() is None else with_handler(callbacks, _handler_class()(hears))


@functools.cache
def _handler_class() -> Any:
    """Return the callback handler's class, made once langchain-core is known to be there."""
    from langchain_core.callbacks import BaseCallbackHandler

    class ProgressHandler(BaseCallbackHandler):
        """Reports every event as progress."""

        run_inline = True

        def __init__(self, hears: Deadline) -> None:
            self._hears = hears

    def on_event(self: Any, *args: Any, **more: Any) -> None:
        self._hears.progress()

    for name in dir(BaseCallbackHandler):
        if name.startswith("on_"):
            setattr(ProgressHandler, name, on_event)
    return ProgressHandler
