"""What a consumer is shown of where a run begins: the checkpoint it stands on, its state, and what is done already."""

from __future__ import annotations

from typing import Any

from stepwell.graph.types import START
from stepwell.runtime.reading.history import read_state
from stepwell.runtime.reading.snapshot import StateSnapshot, config_of
from stepwell.runtime.requests import Blocking
from stepwell.runtime.run import Run
from stepwell.runtime.stream.consumer import Stream
from stepwell.runtime.stream.parts import CheckpointPayload
from stepwell.runtime.stream.payloads import fresh_checkpoint, stored_checkpoint
from stepwell.store import Reader
from stepwell.superstep.outcome import Succeeded
from stepwell.superstep.state import Base, Identity


async def show_beginning(run: Run, stream: Stream) -> None:
    """Publish where the run begins. What is read for it is on disk, so it may be told at once."""
    base = run.base
    made: list[CheckpointPayload] = []
    if stream.checkpoints and run.store is not None:
        made = await Blocking(lambda: _checkpoints(run, stream))
    for payload in made[:-1]:
        stream.checkpoint(payload, stored=True)
    mapped = not _is_raw(base)
    if mapped and (run.input_wrote is None or stream.watches(run.input_wrote)):
        stream.values(base.state.values)
    for payload in made[-1:]:
        stream.checkpoint(payload, stored=base.digest != b"")
    for task, outcome in zip(base.tasks, base.outcomes, strict=True):
        if mapped and isinstance(outcome, Succeeded):
            stream.task_reused(task, outcome)
    stream.publish()


def _checkpoints(run: Run, stream: Stream) -> list[CheckpointPayload]:
    """Return the checkpoint the run stands on, after the one that holds its raw input, where this call made both."""
    assert run.store is not None
    base, identity = run.base, run.base.identity
    with run.store.reading() as reader:
        if not base.digest:  # `exit` durability: no row holds it
            stream.stored = _config_at(reader, identity, run.ledger.parent(base)[0])
            return [fresh_checkpoint(run, base, stream.stored, "input" if _is_input(run, base) else "loop")]
        here = _snapshot(run, reader, identity.checkpoint_id)
        shown = [stored_checkpoint(here)]
        if run.request.input is not None and here.parent_config is not None:
            before = _snapshot(run, reader, here.parent_config["configurable"]["checkpoint_id"])
            if before.run_id == run.run_id and (before.metadata or {})["source"] == "input":
                shown.insert(0, stored_checkpoint(before))
        return shown


def _snapshot(run: Run, reader: Reader, checkpoint_id: str) -> StateSnapshot:
    identity = run.base.identity
    found = read_state(reader, run.codec, run.plan, identity.thread_id, identity.namespace, checkpoint_id)
    assert found is not None
    return found


def _config_at(reader: Reader, identity: Identity, seq: int | None) -> dict[str, Any] | None:
    if seq is None:
        return None
    (row,) = reader.checkpoints(identity.thread_id, [seq])
    return config_of(row)


def _is_input(run: Run, base: Base) -> bool:
    """Return whether the base plans what takes the input of this call."""
    return _is_raw(base) or (run.input_wrote is not None and run.plan.is_workflow)


def _is_raw(base: Base) -> bool:
    """Return whether the input still has to be mapped to channels: there is no state of the run yet."""
    return bool(base.tasks) and base.tasks[0].node == START
