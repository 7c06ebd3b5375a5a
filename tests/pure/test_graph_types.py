"""The small values of the public API: what they compare by, how they show, what counts as given."""

import copy
import pickle
from datetime import timedelta
from typing import Literal, get_args

import pytest

from stepwell.errors import InvalidGraphError
from stepwell.graph.policies import RetryPolicy, TimeoutPolicy
from stepwell.graph.types import MISSING, Answer, Command, Interrupt, Overwrite, Send


def test_missing_is_one_object_however_it_is_copied() -> None:
    assert copy.copy(MISSING) is MISSING
    assert copy.deepcopy({"a": MISSING})["a"] is MISSING
    assert pickle.loads(pickle.dumps(MISSING)) is MISSING
    assert repr(MISSING) == "MISSING"


def test_send_compares_hashes_and_shows_by_content() -> None:
    assert Send("a", {"x": 1}) == Send("a", {"x": 1})
    assert Send("a", 1) != Send("a", 2)
    assert Send("a", 1) != Send("a", 1, timeout=1)
    assert Send("a", 1) != "a"
    assert hash(Send("a", 1)) == hash(Send("a", 1))
    assert repr(Send("a", {"x": 1})) == "Send(node='a', arg={'x': 1})"


def test_send_keeps_its_timeout_as_a_policy_in_seconds() -> None:
    assert Send("a", 1, timeout=timedelta(minutes=1)).timeout == TimeoutPolicy(run_timeout=60.0)
    idle = TimeoutPolicy(idle_timeout=timedelta(seconds=2), refresh_on="heartbeat")
    assert Send("a", 1, timeout=idle).timeout == TimeoutPolicy(None, 2.0, "heartbeat")
    assert Send("a", 1, timeout=TimeoutPolicy()) == Send("a", 1)
    assert "timeout=TimeoutPolicy(run_timeout=2.0," in repr(Send("a", 1, timeout=2))


def test_none_is_an_answer_and_not_giving_one_is_not() -> None:
    assert Command().resume is MISSING
    assert Command(resume=None).resume is None
    assert Command(resume=None) != Command()


def test_command_shows_what_was_given() -> None:
    assert repr(Command()) == "Command()"
    assert repr(Command(resume=None)) == "Command(resume=None)"
    assert repr(Command(update={"a": 1}, goto="b")) == "Command(update={'a': 1}, goto='b')"
    assert repr(Command(graph=Command.PARENT, goto=["b"])) == "Command(graph='__parent__', goto=['b'])"


def test_command_takes_keywords_only_and_the_names_it_may_go_to() -> None:
    with pytest.raises(TypeError):
        Command("parent")  # type: ignore[call-arg]
    assert get_args(Command[Literal["a", "b"]]) == (Literal["a", "b"],)
    assert Command.PARENT == "__parent__"


def test_questions_and_answers_compare_by_content() -> None:
    assert Interrupt("sure?", "1") == Interrupt(value="sure?", id="1")
    assert hash(Interrupt({"un": "hashable"}, "1")) == hash(Interrupt({"un": "hashable"}, "1"))
    assert Answer({"0" * 32: 1}) == Answer({"0" * 32: 1})
    assert Overwrite([1]) == Overwrite(value=[1])


@pytest.mark.parametrize("retry_on", [KeyError, [ValueError, KeyError], (KeyError,), lambda exc: "k" in str(exc)])
def test_retry_policy_matches_by_class_sequence_or_predicate(retry_on: object) -> None:
    policy = RetryPolicy(retry_on=retry_on)  # type: ignore[arg-type]
    assert policy.matches(KeyError("k"))
    assert not policy.matches(TypeError("t"))


def test_retry_policy_retries_by_the_default_rule() -> None:
    assert RetryPolicy().matches(ConnectionError())
    assert not RetryPolicy().matches(ValueError())


def test_retry_policy_refuses_what_cannot_be_asked() -> None:
    with pytest.raises(TypeError, match="retry_on must be an Exception class, a list or tuple of Exception classes"):
        RetryPolicy(retry_on=3).matches(ValueError())  # type: ignore[arg-type]
    with pytest.raises(InvalidGraphError, match="max_attempts must be at least 1"):
        RetryPolicy(max_attempts=0)
    with pytest.raises(InvalidGraphError, match="max_interval must not be negative"):
        RetryPolicy(max_interval=-1)


def test_retry_policy_has_the_known_defaults_in_the_known_order() -> None:
    policy = RetryPolicy(1.0, 3.0, 10.0, 5, False)
    assert (policy.initial_interval, policy.backoff_factor, policy.max_interval) == (1.0, 3.0, 10.0)
    assert (policy.max_attempts, policy.jitter) == (5, False)
    assert (RetryPolicy().initial_interval, RetryPolicy().max_interval, RetryPolicy().max_attempts) == (0.5, 128.0, 3)


def test_timeouts_become_seconds() -> None:
    assert TimeoutPolicy.coerce(None) is None
    assert TimeoutPolicy.coerce(TimeoutPolicy()) is None
    assert TimeoutPolicy.coerce(timedelta(seconds=90)) == TimeoutPolicy(run_timeout=90.0)
    assert TimeoutPolicy.coerce(3) == TimeoutPolicy(run_timeout=3.0)


@pytest.mark.parametrize("bad", [0, -1, timedelta(0), float("nan")])
def test_a_timeout_must_be_positive(bad: float) -> None:
    with pytest.raises(ValueError, match="run_timeout must be greater than 0"):
        TimeoutPolicy.coerce(bad)
    with pytest.raises(ValueError, match="idle_timeout must be greater than 0"):
        TimeoutPolicy.coerce(TimeoutPolicy(idle_timeout=bad))


def test_a_timeout_must_be_a_time() -> None:
    with pytest.raises(TypeError, match="seconds or a timedelta"):
        TimeoutPolicy.coerce("1s")  # type: ignore[arg-type]
    with pytest.raises(InvalidGraphError, match="refresh_on must be"):
        TimeoutPolicy.coerce(TimeoutPolicy(1, refresh_on="never"))  # type: ignore[arg-type]
