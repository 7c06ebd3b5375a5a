"""`stepwell graph`: a graph drawn, without anything of it run and without a database."""

from pathlib import Path

import pytest

from tests.cli.calls import Answer, Call


@pytest.mark.parametrize("name", ["graph", "builder", "own"])
def test_a_graph_is_drawn_as_boxes_and_lines(call: Call, folder: Path, name: str) -> None:
    drawn = call("graph", f"flows.py:{name}").stdout
    assert "|  wide |" in drawn
    assert call("graph", f"flows.py:{name}", "--ascii").stdout == drawn
    assert list(folder.iterdir()) == []


def test_mermaid_and_json_hold_the_same_edges(call: Call, answer: Answer) -> None:
    mermaid = call("graph", "flows.py:graph", "--mermaid").stdout
    assert "graph TD;" in mermaid
    edges = answer("graph", "flows.py:graph")["edges"]
    for edge in edges:
        arrow = "-.->" if edge.get("conditional") else "-->"
        assert f"{edge['source']} {arrow} {edge['target']};" in mermaid
    assert len(edges) == 4


def test_two_forms_at_once_are_refused(call: Call) -> None:
    for words in (["--ascii", "--mermaid"], ["--mermaid", "--json"]):
        result = call("graph", "flows.py:graph", *words, status=2)
        assert result.stderr == (
            f"error[usage_error]: {words[0]} and {words[1]} cannot be had at once: leave all but one out.\n"
        )


def test_what_is_no_graph_is_refused(call: Call) -> None:
    assert call("graph", "flows.py:nope", status=2).stderr.startswith("error[usage_error]: ")
