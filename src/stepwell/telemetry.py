"""Runs as OpenTelemetry spans and counters: a listener for `compile(listeners=[OpenTelemetryListener()])`.

A run is a span, each superstep of it a span inside, each attempt of a task a span inside that. Spans begin and end when
the events say, not when they are told. Ids of runs, threads and tasks are attributes of spans, never of counters, whose
values must stay few. Needs `pip install 'stepwell[otel]'`; the API is imported when a listener is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from stepwell import events
from stepwell.events import Event

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Span, TracerProvider

NAME = "stepwell"
COUNTERS = {
    "runs.started": "Runs that began, each attempt of them",
    "runs.ended": "Runs that ended, by status",
    "supersteps": "Supersteps that were committed",
    "tasks": "Tasks that ended, by outcome",
    "retries": "Failed attempts that are repeated",
    "interrupts": "Questions asked",
    "answers": "Questions answered",
    "checkpoints": "Checkpoints written, by source",
    "takeovers": "Threads taken over from a process that died or stood still",
}
"""Name, below `stepwell.`, and what is counted."""

MARKS = (
    events.LeaseTakenOver,
    events.GraphChanged,
    events.CheckpointRestored,
    events.CheckpointCommitted,
    events.ThreadForked,
    events.InterruptRaised,
    events.AnswerRecorded,
    events.WaitStarted,
    events.WaitEnded,
    events.JoinNotReleased,
)
"""What is an event on its run's span."""

ENDS: Mapping[type[Event], str] = {
    events.RunFinished: "finished",
    events.RunPaused: "paused",
    events.RunWaiting: "waiting",
    events.RunFailed: "failed",
    events.RunCancelled: "cancelled",
    events.LeaseLost: "lost",
}
OUTCOMES: Mapping[type[Event], str] = {
    events.TaskFinished: "finished",
    events.TaskFailed: "failed",
    events.TaskCancelled: "cancelled",
    events.InterruptRaised: "interrupted",
    events.WaitStarted: "waiting",
}


class _Spans:
    """The open spans of one run."""

    def __init__(self, run: Span, graph_id: str) -> None:
        self.run = run
        self.graph_id = graph_id
        self.superstep: Span | None = None
        self.tasks: dict[str, Span] = {}


class OpenTelemetryListener:
    """Turns events into spans and counters, by the global providers unless others are given.

    One listener serves any number of graphs and threads. A run whose process dies leaves no span: a span is exported
    when it ends. Its next attempt has one of its own, with the same `stepwell.run_id`.
    """

    def __init__(
        self, *, tracer_provider: TracerProvider | None = None, meter_provider: MeterProvider | None = None
    ) -> None:
        try:
            from opentelemetry import metrics, trace
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                "OpenTelemetryListener needs the OpenTelemetry API: pip install 'stepwell[otel]'"
            ) from error
        self._trace = trace
        self._tracer = trace.get_tracer(NAME, tracer_provider=tracer_provider)
        meter = metrics.get_meter(NAME, meter_provider=meter_provider)
        self._count = {
            name: meter.create_counter(f"{NAME}.{name}", description=told).add for name, told in COUNTERS.items()
        }
        self._runs: dict[str, _Spans] = {}

    def on_event(self, event: Event) -> None:
        """Open, mark, close or count what the event tells of."""
        if isinstance(event, events.RunStarted):
            self._begin(event)
            return
        spans = self._runs.get(event.run_id)
        self._count_event(event, {} if spans is None else {"graph": spans.graph_id})
        if spans is None:
            return  # an edit, or the end of a run that another process had begun
        if isinstance(event, MARKS):
            spans.run.add_event(events.name_of(event), _attributes(event), timestamp=_nanoseconds(event))
        if type(event) in ENDS:
            self._end(event, spans)
        else:
            self._follow(event, spans)

    # -- spans ---------------------------------------------------------------------------------------------------------

    def _begin(self, event: events.RunStarted) -> None:
        span = self._tracer.start_span(
            f"run {event.graph_id}", attributes=_attributes(event), start_time=_nanoseconds(event)
        )
        self._runs[event.run_id] = _Spans(span, event.graph_id)
        self._count["runs.started"](1, {"graph": event.graph_id, "kind": event.kind})

    def _follow(self, event: Event, spans: _Spans) -> None:
        if isinstance(event, events.SuperstepStarted):
            self._close_superstep(event, spans)
            spans.superstep = self._open(f"superstep {event.step}", event, spans.run)
        elif isinstance(event, events.SuperstepCommitted):
            self._close_superstep(event, spans)
        elif isinstance(event, events.TaskStarted):
            spans.tasks[event.task_id] = self._open(f"task {event.node}", event, spans.superstep or spans.run)
        elif isinstance(event, events.RetryScheduled) or type(event) in OUTCOMES:
            self._close_task(event, spans)

    def _open(self, name: str, event: Event, parent: Span) -> Span:
        return self._tracer.start_span(
            name,
            self._trace.set_span_in_context(parent),
            attributes=_attributes(event),
            start_time=_nanoseconds(event),
        )

    def _close_task(self, event: Any, spans: _Spans) -> None:
        span = spans.tasks.pop(event.task_id, None)
        if span is not None:
            self._close(span, event)

    def _close_superstep(self, event: Event, spans: _Spans) -> None:
        span, spans.superstep = spans.superstep, None
        if span is not None:
            span.end(_nanoseconds(event))

    def _end(self, event: Event, spans: _Spans) -> None:
        del self._runs[event.run_id]
        for task in spans.tasks.values():  # what was running when the run was cut off
            task.end(_nanoseconds(event))
        self._close_superstep(event, spans)
        spans.run.set_attribute(f"{NAME}.status", ENDS[type(event)])
        self._close(spans.run, event)

    def _close(self, span: Span, event: Event) -> None:
        error = "the thread was taken over" if isinstance(event, events.LeaseLost) else getattr(event, "error", None)
        if error is not None:
            span.set_status(self._trace.StatusCode.ERROR, error)
        span.end(_nanoseconds(event))

    # -- counters ------------------------------------------------------------------------------------------------------

    def _count_event(self, event: Event, graph: dict[str, str]) -> None:
        count, kind = self._count, type(event)
        if kind in ENDS:
            count["runs.ended"](1, {**graph, "status": ENDS[kind]})
        elif kind in OUTCOMES and kind not in (events.InterruptRaised, events.WaitStarted):
            count["tasks"](1, {**graph, "node": event.node, "outcome": OUTCOMES[kind]})  # type: ignore[attr-defined]
        elif isinstance(event, events.CheckpointCommitted):
            count["checkpoints"](1, {**graph, "source": event.source})
        elif isinstance(event, events.RetryScheduled):
            count["retries"](1, {**graph, "node": event.node})
        elif (name := _PLAIN.get(kind)) is not None:
            count[name](1, graph)


_PLAIN: Mapping[type[Event], str] = {
    events.SuperstepCommitted: "supersteps",
    events.InterruptRaised: "interrupts",
    events.AnswerRecorded: "answers",
    events.LeaseTakenOver: "takeovers",
}


def _nanoseconds(event: Event) -> int:
    return event.at * 1000


def _attributes(event: Event) -> dict[str, Any]:
    """Return the facts of an event as attributes: everything but the time, and what is None."""
    names = (name for name in event.__dataclass_fields__ if name != "at")
    given = ((name, getattr(event, name)) for name in names)
    return {f"{NAME}.{name}": value for name, value in given if value is not None}
