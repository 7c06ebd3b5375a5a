"""The pairs of the page for those who come from LangGraph: what is shown of LangGraph is code whose names Stepwell has,
and each is followed by code of ours that runs (`test_docs.py` runs it)."""

import ast

import pytest

import stepwell
from tests.e2e.moving import moved
from tests.house.test_docs import ROOT, Block, blocks_of

PAGE = ROOT / "docs" / "coming-from-langgraph.md"
BLOCKS = [block for block in blocks_of(PAGE) if block.is_python]
BEFORE = [block for block in BLOCKS if block.source.startswith("# LangGraph")]


@pytest.mark.parametrize("block", BEFORE, ids=str)
def test_what_is_shown_of_langgraph_needs_no_other_names_here(block: Block) -> None:
    tree = ast.parse(moved(block.source))
    imported = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == "stepwell"]
    names = [alias.name for node in imported for alias in node.names]
    assert [name for name in names if name not in stepwell.__all__] == []


@pytest.mark.parametrize("block", BEFORE, ids=str)
def test_every_before_has_an_after_that_runs(block: Block) -> None:
    after = BLOCKS[BLOCKS.index(block) + 1]
    assert (block.info, after.info) == ("python no-run", "python")


def test_there_are_pairs() -> None:
    assert len(BEFORE) > 10
