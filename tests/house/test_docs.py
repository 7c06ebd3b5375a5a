"""Every Python block of the README and of docs/*.md runs, each on its own, in an empty folder.

A block opts out only by the info string `python no-run`.
"""

import re
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(
    r"^(?P<indent> *)(?P<fence>`{3,}|~{3,}) *(?P<info>[^`\n]*)\n(?P<body>.*?)^(?P=indent)(?P=fence) *$", re.M | re.S
)
PYTHON = {"python", "python3", "py"}


@dataclass(frozen=True)
class Block:
    page: Path
    line: int
    info: str
    source: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def is_python(self) -> bool:
        return self.info.split(" ")[0].lower() in PYTHON

    def run(self, module: ModuleType) -> None:
        # Empty lines in front, so that a traceback names the line in the page.
        padded = "\n" * self.line + self.source
        exec(compile(padded, self.page, "exec", dont_inherit=True), module.__dict__)


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text() if page.exists() else ""
    return [
        Block(page, text.count("\n", 0, m.start()) + 1, m["info"].strip(), textwrap.dedent(m["body"]))
        for m in FENCE.finditer(text)
    ]


PYTHON_BLOCKS = [block for page in PAGES for block in blocks_of(page) if block.is_python]
RUN_BLOCKS = [block for block in PYTHON_BLOCKS if block.info != "python no-run"]


@pytest.mark.parametrize("block", RUN_BLOCKS, ids=str)
def test_block_runs(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "__main__" not in block.source, "the block would not run what it guards: call it without the guard"
    # A real module under a name of its own, so that annotations and dataclasses resolve as in a user's file.
    name = re.sub(r"\W", "_", str(block))
    module = ModuleType(name)
    monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.chdir(tmp_path)
    block.run(module)


def test_the_readme_shows_code_that_runs() -> None:
    assert [block for block in RUN_BLOCKS if block.page.name == "README.md"]
