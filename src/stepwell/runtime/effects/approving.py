"""The approval of an effect: the node is left with a question before the intent, and runs again with the decision.

The rule kept: one decision is for one effect. It is found by what it was asked about (the call, its arguments, and the
key where a new effect stands in for one that is over), so it never allows anything else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from stepwell.errors import ApprovalExpiredError, ApprovalRejectedError, GraphInterrupt
from stepwell.graph.approval import Approval, ApprovalRequest, Decision
from stepwell.graph.types import Interrupt
from stepwell.ids import interrupt_id
from stepwell.superstep.effects.approval import EXPIRED, REJECTED, asked_before, moment, question_id
from stepwell.superstep.outcome import Question

if TYPE_CHECKING:
    from stepwell.runtime.effects.performing import EffectCall


class Approving:
    """The approval of one call."""

    def __init__(self, call: EffectCall, approval: Approval) -> None:
        self.call = call
        self.approval = approval
        self._question = question_id(call.call_id, call.fingerprint, "")

    def take(self) -> None:
        """Take what was decided, if anything was: from here on the call has the arguments that were approved."""
        self._take(self._question)

    def require(self, key: str, renewed: bool) -> None:
        """Go on where the effect of this key is approved; leave the node with the question where nobody has decided."""
        question = question_id(self.call.call_id, self.call.fingerprint, key) if renewed else self._question
        if not (self._take(question) if renewed else self.call.approval):
            raise self._asking(question, key, renewed)

    def _take(self, question: str) -> bool:
        call = self.call
        decision = call.owner.answers().get(question)
        if not isinstance(decision, Decision):
            return False
        facts = {"name": call.declared.name, "thread_id": call.thread_id, "decision": decision}
        if decision.status == REJECTED:
            reason = decision.note or "no reason was given"
            raise ApprovalRejectedError(key=self._key(question), by=decision.by, at=decision.at, reason=reason, **facts)
        if decision.status == EXPIRED:
            raise ApprovalExpiredError(key=self._key(question), expires_at=decision.at, **facts)
        call.approval = call.run.codec.dumps(decision, "decision")
        if decision.args:
            call.call_with(*_edited(call, decision.args), {**call.named, **decision.args})
        return True

    def _key(self, question: str) -> str:
        asked = self._asked(question)
        return "?" if asked is None else asked.key

    def _asked(self, question: str) -> ApprovalRequest | None:
        """Return the question as it was first asked."""
        asked = self.call.owner.answers().get(asked_before(question))
        return asked if isinstance(asked, ApprovalRequest) else None

    def _asking(self, question: str, key: str, renewed: bool) -> GraphInterrupt:
        """Note the question; return the pause by which the node is left."""
        asked = self._asked(question) or self._request(key, renewed)
        noted = Question(interrupt_id(self.call.owner.task_id(), question), question, asked)
        self.call.scope.note(noted)
        return GraphInterrupt((Interrupt(value=asked, id=noted.interrupt_id),))

    def _request(self, key: str, renewed: bool) -> ApprovalRequest:
        call, now = self.call, self.call.run.clock.now()
        lasts, show = self.approval.lasts, self.approval.show
        shown: Any = None if show is None else show(*call.args, **call.kwargs)
        return ApprovalRequest(
            effect=call.declared.name,
            planned_action=call.planned_action(),
            inputs=call.run.codec.loads(call.inputs),
            key=key,
            step_id=call.call_id,
            asked_at=moment(now),
            expires_at=None if lasts is None else moment(now) + lasts,
            shown=shown,
            editable=() if renewed else tuple(name for name in _names(call) if name not in call.declared.exclude),
        )


def _names(call: EffectCall) -> list[str]:
    """Return the parameters that take one argument each."""
    parameters = call.declared.signature.parameters.values()
    return [each.name for each in parameters if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]


def _edited(call: EffectCall, changed: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return what the call passes, with these arguments in place of its own: each as it was passed, by place or by
    name."""
    by_place = dict(zip(_names(call), call.args, strict=False))
    args = (*(changed.get(name, value) for name, value in by_place.items()), *call.args[len(by_place) :])
    return args, {**call.kwargs, **{name: value for name, value in changed.items() if name not in by_place}}
