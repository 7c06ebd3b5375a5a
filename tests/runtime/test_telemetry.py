"""Runs as spans and counters, as the OpenTelemetry SDK exports them."""

import subprocess
import sys
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from stepwell import START, Command, InMemorySaver, LeaseLostError, RetryPolicy, StateGraph, points
from stepwell.telemetry import COUNTERS, OpenTelemetryListener
from stepwell.testing import SimulatedCrash
from stepwell.testing.store_suite.drive import Drive
from tests.runtime.deaths import Deaths, Saver
from tests.runtime.graphs import Call, Flaky, Log, ask, chain, fan, letters, note, thread


class Telemetry:
    """A listener with exporters that keep everything in memory."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self._exporter))
        self._reader = InMemoryMetricReader()
        meters = MeterProvider(metric_readers=[self._reader])
        self.listener = OpenTelemetryListener(tracer_provider=self.tracers, meter_provider=meters)

    def spans(self, prefix: str = "") -> list[ReadableSpan]:
        return [span for span in self._exporter.get_finished_spans() if span.name.startswith(prefix)]

    def span(self, name: str) -> ReadableSpan:
        (found,) = self.spans(name)
        return found

    def counted(self, name: str, *attributes: str) -> dict[Any, Any]:
        """Return a counter's values by those of these attributes."""
        data = self._reader.get_metrics_data()
        found: dict[Any, Any] = {}
        for resource in data.resource_metrics if data is not None else ():
            for metric in (metric for scope in resource.scope_metrics for metric in scope.metrics):
                if metric.name == f"stepwell.{name}":
                    for point in metric.data.data_points:
                        found[tuple(point.attributes[key] for key in attributes)] = point.value  # type: ignore[index, union-attr]
        return found


@pytest.fixture
def telemetry() -> Telemetry:
    return Telemetry()


def parent(span: ReadableSpan) -> Any:
    return span.parent.span_id if span.parent is not None else None


def id_of(span: ReadableSpan) -> Any:
    assert span.context is not None
    return span.context.span_id


def attribute(span: ReadableSpan, name: str) -> Any:
    assert span.attributes is not None
    return span.attributes[f"stepwell.{name}"]


def test_a_run_is_a_tree_of_spans(call: Call, memory_saver: InMemorySaver, telemetry: Telemetry) -> None:
    graph = letters("ab").compile(checkpointer=memory_saver, name="g", listeners=[telemetry.listener])
    call(graph, {}, thread(run_id="r"))
    run = telemetry.span("run g")
    assert (attribute(run, "run_id"), attribute(run, "thread_id"), attribute(run, "kind")) == ("r", "t", "input")
    assert attribute(run, "status") == "finished"
    assert [parent(span) for span in telemetry.spans("superstep")] == [id_of(run)] * 2
    for step, node in enumerate("ab", 1):
        superstep, task = telemetry.span(f"superstep {step}"), telemetry.span(f"task {node}")
        assert parent(task) == id_of(superstep)
        assert (attribute(task, "node"), attribute(task, "attempt")) == (node, 1)
        spans = [superstep.start_time, task.start_time, task.end_time, superstep.end_time]
        assert spans == sorted(spans)  # type: ignore[type-var]
    assert [event.name for event in run.events].count("checkpoint_committed") == 4


def test_the_span_of_the_caller_is_the_parent(memory_saver: InMemorySaver, telemetry: Telemetry) -> None:
    graph = letters("a").compile(checkpointer=memory_saver, name="g", listeners=[telemetry.listener])
    with telemetry.tracers.get_tracer("test").start_as_current_span("request") as request:
        graph.invoke({}, thread())
    assert parent(telemetry.span("run g")) == request.get_span_context().span_id


@pytest.mark.parametrize("durability", ["sync", "exit"])
def test_each_attempt_is_a_span_and_a_failed_one_says_why(
    durability: Any, memory_saver: InMemorySaver, telemetry: Telemetry
) -> None:
    at_once = RetryPolicy(initial_interval=0, jitter=False, retry_on=ValueError)
    graph = StateGraph(Log).add_node("a", Flaky("a"), retry_policy=at_once).add_edge(START, "a")
    graph.compile(checkpointer=memory_saver, listeners=[telemetry.listener]).invoke(
        {},
        thread(),
        durability=durability,
    )
    first, second = telemetry.spans("task a")
    assert (first.status.status_code, first.status.description) == (StatusCode.ERROR, "ValueError('a is broken')")
    assert second.status.status_code is StatusCode.UNSET
    assert telemetry.counted("retries", "node") == {("a",): 1}
    assert telemetry.counted("tasks", "node", "outcome") == {("a", "finished"): 1}


def test_a_failed_run_is_an_error(memory_saver: InMemorySaver, telemetry: Telemetry) -> None:
    graph = fan(("a", note("a")), ("b", Flaky("b"))).compile(
        checkpointer=memory_saver, name="g", listeners=[telemetry.listener]
    )
    with pytest.raises(ValueError, match="broken"):
        graph.invoke({}, thread())
    assert telemetry.span("run g").status.description == "ValueError('b is broken')"
    assert len(telemetry.spans("superstep")) == 1
    assert telemetry.counted("runs.ended", "graph", "status") == {("g", "failed"): 1}
    assert telemetry.counted("tasks", "outcome") == {("finished",): 1, ("failed",): 1}


def test_questions_and_answers_are_marked_and_counted(memory_saver: InMemorySaver, telemetry: Telemetry) -> None:
    graph = chain(("ask", ask("ask"))).compile(checkpointer=memory_saver, name="g", listeners=[telemetry.listener])
    graph.invoke({}, thread())
    graph.invoke(Command(resume=1), thread())
    asked, answered = telemetry.spans("run g")
    assert (attribute(asked, "status"), attribute(answered, "status")) == ("paused", "finished")
    assert "interrupt_raised" in [event.name for event in asked.events]
    assert "answer_recorded" in [event.name for event in answered.events]
    assert asked.status.status_code is StatusCode.UNSET
    assert telemetry.counted("interrupts") == telemetry.counted("answers") == {(): 1}
    assert telemetry.counted("runs.started", "kind") == {("input",): 1, ("answer",): 1}


def test_a_takeover_is_marked_and_counted(deaths: Deaths, telemetry: Telemetry) -> None:
    graph = letters("ab").compile(checkpointer=Saver(deaths.clock), name="g", listeners=[telemetry.listener])
    deaths.dies_at(points.MERGED, nth=2)
    with pytest.raises(SimulatedCrash):
        graph.invoke({}, thread(run_id="r"))
    deaths.revive()
    graph.invoke(None, thread())
    run = telemetry.span("run g")
    assert (attribute(run, "attempt"), attribute(run, "run_id")) == (2, "r")
    assert "lease_taken_over" in [event.name for event in run.events]
    assert telemetry.counted("takeovers") == {(): 1}


def test_a_lost_lease_ends_the_span(deaths: Deaths, telemetry: Telemetry) -> None:
    def stall(state: Log) -> dict[str, list[str]]:
        deaths.clock.advance(3600.0)
        Drive(saver.store, "t", run_id="other").take_over()
        return {}

    saver = Saver(deaths.clock)
    with pytest.raises(LeaseLostError):
        chain(("a", stall)).compile(checkpointer=saver, listeners=[telemetry.listener]).invoke({}, thread())
    assert telemetry.span("run").status.description == "the thread was taken over"
    assert len(telemetry.spans()) == 3, "run, superstep and task: none is left open"
    assert telemetry.counted("runs.ended", "status") == {("lost",): 1}


def test_edits_are_counted_and_have_no_span(memory_saver: InMemorySaver, telemetry: Telemetry) -> None:
    graph = letters("a").compile(checkpointer=memory_saver, listeners=[telemetry.listener])
    graph.update_state(thread(), {"log": ["x"]}, as_node="a")
    assert telemetry.spans() == []
    assert telemetry.counted("checkpoints", "source") == {("update",): 1}


def test_every_counter_is_described() -> None:
    assert all(COUNTERS.values())


def test_the_api_is_imported_when_a_listener_is_made_and_its_absence_is_said() -> None:
    script = (
        "import sys; import stepwell.telemetry as telemetry; assert 'opentelemetry' not in sys.modules\n"
        "sys.modules['opentelemetry'] = None\n"
        "try: telemetry.OpenTelemetryListener()\n"
        "except ModuleNotFoundError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "OpenTelemetryListener needs the OpenTelemetry API: pip install 'stepwell[otel]'\n"
