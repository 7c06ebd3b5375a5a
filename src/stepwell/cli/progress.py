"""Says on stderr that a superstep has finished, as it does, and keeps what the drive needs to know of the stream.

A stream does not say where a superstep ends; the newest checkpoint does. The rule: a reader that goes away (a closed
pipe) ends the telling, never the run.
"""

from __future__ import annotations

import time
from typing import Any

from stepwell.cli.checkpoint_view import node_names
from stepwell.cli.screen import say
from stepwell.store import Store

MODES = ["tasks", "updates", "values"]


class Progress:
    """One run, told superstep by superstep."""

    def __init__(self, store: Store, thread_id: str, *, quiet: bool) -> None:
        self.values: Any = None
        """The newest chunk of mode `values`."""
        self.failures: list[tuple[str, str]] = []
        """(node, error text) of each failed task, in the order they came."""
        self._store = store
        self._thread_id = thread_id
        self._quiet = quiet
        self._seq = 0
        self._step = self._newest_step()
        self._began = time.monotonic()
        self._nodes: list[str] = []
        self._reused = 0

    def take(self, mode: str, chunk: Any) -> None:
        """Note a chunk of the stream."""
        if mode == "values":
            self.values = chunk
            self._look()
        elif mode == "updates":
            self._note_reused(chunk)
        elif "input" in chunk:
            self._look()
        elif chunk["error"] is None:
            self._nodes += [] if chunk["interrupts"] or chunk.get("waiting") else [chunk["name"]]
        else:
            self.failures.append((chunk["name"], chunk["error"]))

    def finish(self) -> None:
        """Tell of the last superstep."""
        self._look()

    def _note_reused(self, chunk: Any) -> None:
        if isinstance(chunk, dict) and chunk.get("__metadata__", {}).get("cached"):
            self._nodes += [node for node in chunk if node != "__metadata__"]
            self._reused += 1

    def _look(self) -> None:
        """Tell of the superstep that has been committed since the last look, if there is one."""
        step = self._newest_step()
        if step == self._step:
            return
        if self._nodes:
            reused = f" ({self._reused} reused)" if self._reused else ""
            self._say(f"step {step}: {node_names(self._nodes)}{reused}, {time.monotonic() - self._began:.2f} s")
        self._step, self._began = step, time.monotonic()
        self._nodes, self._reused = [], 0

    def _newest_step(self) -> int | None:
        with self._store.reading() as reader:
            thread = reader.thread(self._thread_id)
            if thread is None or thread.head_seq == self._seq:
                return None if thread is None else self._step
            self._seq = thread.head_seq
            row = reader.newest(self._thread_id, "")
        return None if row is None else row.step

    def _say(self, text: str) -> None:
        if self._quiet:
            return
        try:
            say(text)
        except BrokenPipeError:
            self._quiet = True
