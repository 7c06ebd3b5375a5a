"""The page of supported types is made of the values the tests store: `python -m tests.house.test_supported_page`."""

import re
from collections.abc import Iterable
from pathlib import Path

from tests.pure import supported_classes
from tests.pure.supported import OWN, PLAIN, REFUSED, Row

PAGE = Path(__file__).parents[2] / "docs" / "supported-types.md"
PART = re.compile(r"^(<!-- made of the tests: (\w+) -->\n).*?^(<!-- end -->)$", re.M | re.S)


def table(head: str, rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, re.sub(r"[^|]+", "---", head), *("| " + " | ".join(row) + " |" for row in rows)]
    return "\n".join(line.replace("|  |", "| |") for line in lines) + "\n"


def shown(rows: list[Row]) -> str:
    cells = ((row.type, "`" + row.example.replace("|", r"\|") + "`", row.note) for row in rows)
    return table("| Type | Example | What is kept besides the value |", cells)


def classes() -> str:
    source = Path(supported_classes.__file__).read_text()
    return "```python\n" + source.split('"""\n\n', 1)[1] + "```\n"


def parts() -> dict[str, str]:
    refused = table("| Value | Because |", ((row.type, row.note) for row in REFUSED))
    return {"plain": shown(PLAIN), "classes": classes(), "own": shown(OWN), "refused": refused}


def made(page: str) -> str:
    """Return the page with its parts as the tests have them."""
    return PART.sub(lambda found: found[1] + parts()[found[2]] + found[3], page)


def test_the_page_of_supported_types_is_what_the_tests_store() -> None:
    page = PAGE.read_text()
    assert [name for _, name, _ in PART.findall(page)] == list(parts())
    assert page == made(page), "run `python -m tests.house.test_supported_page`"


if __name__ == "__main__":
    PAGE.write_text(made(PAGE.read_text()))
