"""What is wrong with the graph as written, or with it and a thread that other code began."""

from __future__ import annotations

from typing import Any

from stepwell.errors.root import Known, StepwellError


class GraphError(StepwellError, ValueError):
    """The graph cannot be used as it is written."""

    code = "graph_error"


class InvalidGraphError(GraphError):
    """The graph is not valid: {reason}"""

    code = "invalid_graph"


class GeneratorEntrypointError(InvalidGraphError, NotImplementedError):
    """Generators are not supported as an entrypoint, and {function!r} is one. Return the value; to stream, take a
    `writer` parameter and call it."""

    code = "generator_entrypoint"


class GraphMismatchError(GraphError):
    """Thread {thread_id} belongs to graph {recorded!r}, not to {attempted!r}. Compile with name={recorded!r}, or use
    another thread_id."""

    code = "graph_mismatch"


class IncompatibleGraphError(GraphError):
    """Thread {thread_id} cannot go on from checkpoint {checkpoint_id} with this graph. It lacks {missing}. The
    checkpoint was written by {recorded_version}, this is {version}. Ways out: {ways}."""

    code = "incompatible_graph"

    def _default_message(self) -> str:
        listed = {key: "; ".join(self._fields.get(key, ())) for key in ("missing", "ways")}
        listed |= {key: _version(self._fields.get(key, "")) for key in ("recorded_version", "version")}
        doc = " ".join((type(self).__doc__ or "").split())
        return doc.format_map(Known(self._fields | listed))


class GraphChangedError(GraphError):
    """Thread {thread_id} was written by another graph than this one, and on_change="raise" refuses to go on: {changes}.
    Run it with the code that wrote it, or accept the change: compile(on_change="warn")."""

    code = "graph_changed"


class MigrationError(GraphError):
    """migrate() could not convert checkpoint {checkpoint_id} of thread {thread_id} from {from_version}: {reason}.
    Nothing was written; fix migrate(), or run the thread with the code that wrote it."""

    code = "migration_failed"

    def _said(self) -> dict[str, Any]:
        return self._fields | {"from_version": _version(self._fields.get("from_version", ""))}


class DuplicateTypeError(GraphError):
    """The type name {type_name!r} is already registered for another class. Give register_type() another name=."""

    code = "duplicate_type"


def _version(given: Any) -> str:
    """Return a version as a sentence has it: compile(version=) need not be given."""
    return f"version {given!r}" if given else "a graph without a version"
