"""What is not there: said with what is, so that the next line to type is known."""

import sys

import pytest

from tests.cli.calls import Answer, Call


def ran(answer: Answer, *names: str) -> None:
    for name in names:
        answer("run", "flows.py:counts", "--thread", name, "--input", '{"n": 1}')


@pytest.mark.parametrize("words", [["show"], ["history"], ["runs"], ["tree"], ["delete", "--yes"]], ids=str)
def test_an_unknown_thread_is_answered_with_similar_ones(answer: Answer, call: Call, words: list[str]) -> None:
    ran(answer, "order-1", "order-2", "other")
    result = call(*words, "ordr-2", status=3)
    assert result.stderr.startswith("error[unknown_thread]: There is no thread 'ordr-2'. Did you mean 'order-2' or ")
    assert result.stderr.endswith("? `threads` lists them all.\n")


def test_without_a_similar_one_some_are_named(answer: Answer, call: Call) -> None:
    ran(answer, "a", "b")
    line = "error[unknown_thread]: There is no thread 'nope'. There are 'b', 'a'; `threads` lists them all.\n"
    assert call("show", "nope", status=3).stderr == line
    ran(answer, "c", "d")
    assert "There are 'd', 'c', 'b', ...; `threads`" in call("show", "nope", status=3).stderr
    resumed = call("resume", "flows.py:counts", "--thread", "nope", status=3)
    assert "There are 'd', 'c', 'b', ...; `threads`" in resumed.stderr


def test_an_empty_database_says_so(answer: Answer, call: Call) -> None:
    ran(answer, "t")
    answer("delete", "t", "--yes")
    line = "error[unknown_thread]: There is no thread 't'. The database has none; `run` begins one.\n"
    assert call("show", "t", status=3).stderr == line


def test_a_name_is_shown_without_control_characters(answer: Answer, call: Call) -> None:
    ran(answer, "a\x1b[31m\nb")
    result = call("show", "a\x1b[31m b", status=3)
    assert "\x1b" not in result.stderr
    assert result.stderr.count("\n") == 1


def test_an_unknown_checkpoint_is_answered_with_the_newest(answer: Answer, call: Call) -> None:
    ran(answer, "t")
    newest = answer("show", "t")["checkpoint"]
    for how in ([], ["--graph", "flows.py:counts"]):
        result = call("show", "t", "nope", *how, status=3)
        assert result.stderr == (
            f"error[unknown_checkpoint]: Thread 't' has no checkpoint 'nope'. Its newest is {newest}; `history` lists"
            " them.\n"
        )


@pytest.mark.parametrize("words", [["threads"], ["migrate"], ["verify"]], ids=str)
def test_without_psycopg_a_server_is_answered_with_what_to_install(
    call: Call, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.setitem(sys.modules, "stepwell.stores.postgres.connections", None)
    told = call(*words, "--db", "postgresql://ada:secret@host/db", status=2).stderr
    assert told.startswith("error[usage_error]: PostgreSQL needs psycopg")
    assert told.endswith("pip install 'stepwell[postgres]'\n") and "secret" not in told
