"""Drives a graph's thread for a command, and turns what stops it into the errors of the command line.

Not here: what to begin it with (the commands) and how the end is printed (`report.py`). The rule: whatever stops the
command, the stream is closed first, so that the run is recorded before anybody is told.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from stepwell.cli.checkpoint_view import CheckpointView, view_of
from stepwell.cli.complaints import raised
from stepwell.cli.database import store_of
from stepwell.cli.faults import NodeFailedError, RunInterruptedError, RunStopped, UserCodeFailedError
from stepwell.cli.progress import MODES, Progress
from stepwell.cli.rendering import Renderer
from stepwell.cli.screen import one_line, say
from stepwell.errors import CodecError, RunError, StepwellError
from stepwell.runtime.ctrl_c import driven

if TYPE_CHECKING:
    from stepwell.engine import CompiledGraph

Begin = Callable[..., Iterator[Any]]
"""Begin the run: what `graph.stream` is once input and config are given."""


def config_of(thread_id: str, checkpoint_id: str | None = None) -> dict[str, Any]:
    """Return the config that addresses a thread, or one of its checkpoints."""
    checkpoint = {} if checkpoint_id is None else {"checkpoint_id": checkpoint_id}
    return {"configurable": {"thread_id": thread_id, **checkpoint}}


def drive(graph: CompiledGraph, thread_id: str, begin: Begin, *, quiet: bool, again: str) -> CheckpointView:
    """Run the thread to its end or to a pause and return where it stands, with the values a caller of `invoke` gets.

    `again` is the command line that goes on with the thread: errors name it.
    """
    progress = Progress(store_of(graph), thread_id, quiet=quiet)
    try:
        driven(_pull, graph, begin, progress)
    except KeyboardInterrupt:
        raise RunStopped(interrupted(graph, thread_id), again) from None
    except (Exception, SystemExit) as error:  # the edge to user code
        stopped = _stopped(error, thread_id, progress, again)
        raise stopped from (None if stopped is error else error)
    return read_head(graph, thread_id, progress.values)


def interrupted(graph: CompiledGraph, thread_id: str) -> RunInterruptedError:
    """Return what to say of a run that Ctrl-C ended: that it is recorded, only where it is."""
    with store_of(graph).reading() as reader:
        thread = reader.thread(thread_id)
    if thread is None or not thread.run_id:
        return RunInterruptedError(thread_id=thread_id)
    text = f"The run of thread {thread_id!r} was cut off before its end was recorded, as that of a process that died."
    return RunInterruptedError(text, thread_id=thread_id)


def _pull(graph: CompiledGraph, begin: Begin, progress: Progress) -> None:
    output = None if graph.plan.output.is_root else graph.plan.output.keys
    stream: Any = begin(stream_mode=MODES, output_keys=output)
    with _warnings_on_one_line(), closing(stream) as chunks:
        for mode, chunk in chunks:
            progress.take(mode, chunk)
    progress.finish()


@contextmanager
def _warnings_on_one_line() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.showwarning = _say_warning  # type: ignore[assignment]
        yield


def _say_warning(message: Warning | str, *_: Any) -> None:
    say(f"warning: {one_line(str(message))}")


def _stopped(error: BaseException, thread_id: str, progress: Progress, again: str) -> Exception:
    """Return what to raise: an error of the engine's own as it is, one of user code with the node to blame."""
    if isinstance(error, RunError | CodecError):
        return RunStopped(error, again)
    blamed = [node for node, text in progress.failures if text == repr(error)]
    if isinstance(error, StepwellError) and not blamed:
        return error
    nodes = blamed or [node for node, _ in progress.failures]
    if nodes:
        return RunStopped(NodeFailedError(node=nodes[0], thread_id=thread_id, raised=raised(error)), again)
    return RunStopped(UserCodeFailedError(thread_id=thread_id, raised=raised(error)), again)


def read_head(graph: CompiledGraph, thread_id: str, output: Any = None) -> CheckpointView:
    """Return where the thread stands. `output` takes the place of the state's values where there is one."""
    snapshot = graph.get_state(config_of(thread_id))
    with store_of(graph).reading() as reader:
        thread = reader.thread(thread_id)
    renderer = Renderer(graph.codec)
    view = view_of(snapshot, "empty" if thread is None else thread.status, thread_id, renderer)
    if output is None:
        return view
    if isinstance(output, dict):
        output = {key: value for key, value in output.items() if key not in ("__interrupt__", "__waiting__")}
    return CheckpointView(**{**vars(view), "values": renderer.json(output)})
