"""`CompiledGraph`: the public object, and the one place where layers are wired together.

Here are the ways to run a graph; `engine/reading.py` reads its threads, `engine/editing.py` edits them,
`engine/mailing.py` sends them messages,
`engine/shape.py` tells what it looks like, and all of them stand on `engine/wiring.py`.

Every method pair (`invoke`/`ainvoke`, ...) makes the same coroutine and hands it to one of the two drivers. What a run
does is the runtime's; nothing is decided here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from functools import partial
from typing import Any, Literal, Unpack

from stepwell.engine.caching import Caching
from stepwell.engine.editing import Editing
from stepwell.engine.mailing import Mailing
from stepwell.engine.operating import Operating
from stepwell.engine.reading import Reading
from stepwell.engine.shape import Shape
from stepwell.engine.wiring import (
    Config,
    Modes,
    RunOptions,
    StreamOptions,
    async_port,
    check_options,
    sync_port,
)
from stepwell.errors import InvalidConfigError
from stepwell.graph.state_graph import use_engine
from stepwell.runtime.batch import arun_all, limit_of, pairs_of, run_all, settled
from stepwell.runtime.config import merged_config, parse_config
from stepwell.runtime.context import coerce_context
from stepwell.runtime.drive import Ending, drive
from stepwell.runtime.execution import GraphExecution, execution
from stepwell.runtime.run import Request, Run
from stepwell.runtime.stream.consumer import Stream, check_keys
from stepwell.runtime.stream.parts import GraphOutput
from stepwell.runtime.stream.payloads import (
    as_interrupt,
    as_waiting,
    interrupted,
    output_of,
    typed_output,
    visible_values,
)
from stepwell.runtime.sync_driver import drive_sync, stream_sync


class CompiledGraph(Reading, Editing, Operating, Mailing, Shape, Caching):
    """A graph that runs. With a checkpointer every run is durable; without one the same engine keeps nothing."""

    # -- running ------------------------------------------------------------------------------------------------------

    def invoke(
        self, input: Any, config: Config = None, *, stream_mode: Modes = "values", **options: Unpack[StreamOptions]
    ) -> Any:
        """Run to the end or to a pause and return the state's values, with `__interrupt__` where questions are open and
        `__waiting__` where nodes wait for a time or a signal.

        `input` is a new input, `None` to continue, or a `Command`; `options` are those of `StreamOptions`. On return
        everything is durable as `durability` says. Works inside a running event loop too. With `version="v2"`, a
        `GraphOutput`. With another `stream_mode`, the list of chunks.
        """
        if stream_mode != "values":
            return list(self.stream(input, config, stream_mode=stream_mode, **options))
        run = self._run(input, config, self._printer(options), **options)
        return self._result(run, drive_sync(drive(run), sync_port(run)), options)

    async def ainvoke(
        self, input: Any, config: Config = None, *, stream_mode: Modes = "values", **options: Unpack[StreamOptions]
    ) -> Any:
        """Do as `invoke`, on this event loop."""
        if stream_mode != "values":
            return [chunk async for chunk in self.astream(input, config, stream_mode=stream_mode, **options)]
        run = self._run(input, config, self._printer(options), **options)
        return self._result(run, await self._drive_async(run), options)

    def stream(
        self, input: Any, config: Config = None, *, stream_mode: Modes = "updates", **options: Unpack[StreamOptions]
    ) -> Iterator[Any]:
        """Run as far as the consumer pulls, yielding chunks of the modes asked for ((mode, chunk) for a list of modes).

        With `version="v2"`, typed parts. Each mode's chunks are durable, or live, as docs/streaming.md says. Closing or
        dropping the iterator stops the run: it is recorded, finished tasks are kept, the thread is freed.
        """
        run = self._run(input, config, self._stream(stream_mode, options), **options)
        return stream_sync(lambda: drive(run), sync_port(run))

    async def astream(
        self, input: Any, config: Config = None, *, stream_mode: Modes = "updates", **options: Unpack[StreamOptions]
    ) -> AsyncIterator[Any]:
        """Do as `stream`, on this event loop."""
        from stepwell.runtime.async_driver import stream_async

        run = self._run(input, config, self._stream(stream_mode, options), **options)
        chunks = stream_async(lambda: drive(run), async_port(run))
        try:
            async for chunk in chunks:
                yield chunk
        finally:
            await chunks.aclose()  # type: ignore[attr-defined]

    def retry(self, config: Config, tasks: str | Sequence[str] | None = None, **options: Unpack[RunOptions]) -> Any:
        """Run what failed again, and only what is missing. NothingToRetryError where nothing failed.

        With `tasks` (ids, or names of nodes) run those anew, finished or not: that their outcomes were discarded is
        durable before they run; answers are kept. At an older checkpoint they run in a new lineage, beside what their
        siblings made. UnknownTaskError where one is not planned.
        """
        check_options(options, RunOptions)
        run = self._run(None, config, retry_only=True, tasks=_names(tasks), **options)
        return self._result(run, drive_sync(drive(run), sync_port(run)), {})

    def _stream_retry(
        self, config: Config, tasks: str | Sequence[str] | None, *, stream_mode: Modes, **options: Unpack[StreamOptions]
    ) -> Iterator[Any]:
        """Do as `retry`, handing out chunks as `stream` does: for the command line, which tells of each superstep."""
        stream = self._stream(stream_mode, options)
        run = self._run(None, config, stream, retry_only=True, tasks=_names(tasks), **options)
        return stream_sync(lambda: drive(run), sync_port(run))

    async def aretry(
        self, config: Config, tasks: str | Sequence[str] | None = None, **options: Unpack[RunOptions]
    ) -> Any:
        """Do as `retry`, on this event loop."""
        check_options(options, RunOptions)
        run = self._run(None, config, retry_only=True, tasks=_names(tasks), **options)
        return self._result(run, await self._drive_async(run), {})

    def run(self, input: Any, config: Config = None, **options: Unpack[RunOptions]) -> GraphExecution:
        """Do as `invoke`, and return the run: value, status, questions, error, ids, supersteps and cost.

        A run that failed is returned with its error, for `result()` to raise. Raised is what kept the run from
        beginning, what stopped it from outside, and an error of the store. On return everything is durable.
        """
        check_options(options, RunOptions)
        run = self._run(input, config, **options)
        return drive_sync(execution(run), sync_port(run))

    async def arun(self, input: Any, config: Config = None, **options: Unpack[RunOptions]) -> GraphExecution:
        """Do as `run`, on this event loop."""
        from stepwell.runtime.async_driver import drive_async

        check_options(options, RunOptions)
        run = self._run(input, config, **options)
        return await drive_async(execution(run), async_port(run))

    def batch(
        self,
        inputs: Sequence[Any],
        config: Config | Sequence[Config] = None,
        *,
        return_exceptions: bool = False,
        **options: Any,
    ) -> list[Any]:
        """Invoke the graph for each input, several at a time, and return the results in the order of the inputs.

        `config` is one for all, or a list with one for each; its `max_concurrency` bounds how many run at once. Every
        run goes to its end; then the first failure is raised, or with `return_exceptions` stands among the results.
        `options` are those of `invoke`.
        """
        pairs = pairs_of(inputs, config, self._config)
        results = run_all(pairs, limit_of(pairs, self._config), partial(self.invoke, **options))
        return settled(results, return_exceptions)

    async def abatch(
        self,
        inputs: Sequence[Any],
        config: Config | Sequence[Config] = None,
        *,
        return_exceptions: bool = False,
        **options: Any,
    ) -> list[Any]:
        """Do as `batch`, on this event loop."""
        pairs = pairs_of(inputs, config, self._config)
        results = await arun_all(pairs, limit_of(pairs, self._config), partial(self.ainvoke, **options))
        return settled(results, return_exceptions)

    # -- wiring -------------------------------------------------------------------------------------------------------

    def with_config(self, config: Config = None, **more: Any) -> CompiledGraph:
        """Return the same graph with config to lay every call's own over.

        Tags are added to those there are, `metadata` and `configurable` key by key, everything else replaces. Raises
        InvalidConfigError.
        """
        bound = merged_config([self._config, config, more])
        parse_config(bound)
        made = CompiledGraph(
            self.builder,
            self.plan,
            checkpointer=self.checkpointer,
            store=self.store,
            cache=self.cache,
            debug=self.debug,
            name=self.name,
            config=bound,
            listeners=self.listeners,
            events=self.events,
        )
        made.step_timeout = self.step_timeout
        return made

    def _run(
        self,
        input: Any,
        config: Config,
        stream: Stream | None = None,
        *,
        retry_only: bool = False,
        tasks: tuple[str, ...] | None = None,
        **options: Unpack[StreamOptions],
    ) -> Run:
        check_options(options)
        if "output_keys" in options:
            check_keys(self.plan, options["output_keys"])
        request = Request(
            input,
            parse_config(config, self._config) if self._config else parse_config(config),
            durability=options.get("durability") or "sync",
            context=coerce_context(self.plan.context, options.get("context")),
            before=self._breakpoints(options.get("interrupt_before"), self.plan.interrupt_before),
            after=self._breakpoints(options.get("interrupt_after"), self.plan.interrupt_after),
            places_breakpoints=any(options.get(name) is not None for name in ("interrupt_before", "interrupt_after")),
            keep_breakpoints=bool(options.get("keep_breakpoints")),
            on_pending=options.get("on_pending"),
            on_limit=options.get("on_limit") or "raise",
            thread_step_limit=options.get("thread_step_limit"),
            retry_only=retry_only,
            step_timeout=self._step_timeout,
            tasks=tasks,
        )
        return self._new_run(request, stream)

    def _breakpoints(self, given: Sequence[str] | Literal["*"] | None, default: frozenset[str]) -> frozenset[str]:
        if given is None:
            return default
        names = self.plan.nodes if given == "*" else [given] if isinstance(given, str) else given
        for name in names:
            if name not in self.plan.nodes:
                raise InvalidConfigError(f"Interrupt node `{name}` not found", key="interrupt")
        return frozenset(names)

    def _result(self, run: Run, ending: Ending, options: StreamOptions) -> Any:
        values, keys = visible_values(self.plan, ending.base), options.get("output_keys")
        asked = [as_interrupt(question) for question in ending.questions]
        waiting = [as_waiting(awaited) for awaited in ending.awaited]
        if options.get("version") == "v2":
            return GraphOutput(typed_output(self.plan, values, keys), tuple(asked), tuple(waiting))
        output = output_of(self.plan, values, keys)
        return interrupted(output, asked, waiting) if asked or waiting else output

    async def _drive_async(self, run: Run) -> Ending:
        from stepwell.runtime.async_driver import drive_async

        return await drive_async(drive(run), async_port(run))

    def __repr__(self) -> str:
        return f"CompiledGraph({self.plan.graph_id}, nodes={list(self.plan.nodes)})"


def _names(tasks: str | Sequence[str] | None) -> tuple[str, ...] | None:
    names = (tasks,) if isinstance(tasks, str) else None if tasks is None else tuple(tasks)
    if names == ():
        raise InvalidConfigError("retry was given no tasks: name some, or leave tasks out", key="tasks")
    return names


use_engine(CompiledGraph)
