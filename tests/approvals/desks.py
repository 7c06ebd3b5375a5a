"""Nodes that refund with approval, and what can be seen of the decisions about them."""

from __future__ import annotations

import asyncio
from typing import Any

from stepwell import ApprovalRejectedError, Decision, SqliteSaver, effect
from stepwell.runtime.blobs import reading_records
from stepwell.superstep import body, lifecycle
from tests.effects.acting import Outside, one
from tests.runtime.graphs import thread


def refunding(outside: Outside, **options: Any) -> Any:
    """Return an effect that needs approval."""

    @effect(**{"approval": True, **options})
    def refund(order: str, cents: int = 100, *, idempotency_key: str) -> str:
        return outside.act(idempotency_key, f"{order}:{cents}")

    return refund


def arefunding(outside: Outside, **options: Any) -> Any:
    """Return the same as a coroutine function."""

    @effect(**{"approval": True, **options})
    async def refund(order: str, cents: int = 100, *, idempotency_key: str) -> str:
        await asyncio.sleep(0)
        return outside.act(idempotency_key, f"{order}:{cents}")

    return refund


def desk(saver: SqliteSaver | None, refund: Any, *orders: str) -> Any:
    """Return a graph of one node that refunds these orders in turn, and takes a no for an answer."""

    def node(state: Any) -> Any:
        return {"log": [_said(refund, order) for order in orders or ("a",)]}

    async def anode(state: Any) -> Any:
        return {"log": [await _asaid(refund, order) for order in orders or ("a",)]}

    return one(anode if refund.declared.step.is_async else node, saver)


def _said(refund: Any, order: str) -> str:
    try:
        return str(refund(order))
    except ApprovalRejectedError as no:
        return f"no: {no.fields()['reason']}"


async def _asaid(refund: Any, order: str) -> str:
    try:
        return str(await refund(order))
    except ApprovalRejectedError as no:
        return f"no: {no.fields()['reason']}"


def asked(graph: Any, config: Any = None) -> dict[str, str]:
    """Return what waits for a decision: order → interrupt id."""
    state = graph.get_state(config or thread())
    return {question.value.inputs["order"]: question.id for question in state.interrupts}


def decisions(saver: SqliteSaver, graph: Any, thread_id: str = "t") -> list[Decision]:
    """Return the decisions a thread has on record, in their order."""
    with saver.store.reading() as reader:
        rows = reader.records_of_kind(thread_id, lifecycle.DECISION)
        codec = reading_records(reader, graph.codec, rows)
    return [body.decode_answer(codec, row.body, "decision")[2] for row in rows]


def head(saver: SqliteSaver, thread_id: str = "t") -> Any:
    """Return what changes with anything that is written to a thread."""
    with saver.store.reading() as reader:
        return reader.thread(thread_id)
