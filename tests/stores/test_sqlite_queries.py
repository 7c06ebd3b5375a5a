"""The SQL files: each says what it guarantees, and each is used."""

import re
from importlib.resources import files
from pathlib import Path

import pytest

from stepwell.stores.sqlite.sql import query

PACKAGE = Path(str(files("stepwell.stores.sqlite")))
SHARED = Path(str(files("stepwell.stores.shared")))
QUERIES = sorted(path.stem for path in (PACKAGE / "queries").glob("*.sql"))


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_says_what_it_guarantees_and_locks(name: str) -> None:
    text = (PACKAGE / "queries" / f"{name}.sql").read_text()
    header = re.match(r"(?:-- .*\n)+", text)
    assert header is not None
    assert re.search(r"\block", header[0], re.IGNORECASE)


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_is_one_statement_and_used(name: str) -> None:
    assert ";" not in query(name)
    sources = "\n".join(path.read_text() for path in (*PACKAGE.glob("*.py"), *SHARED.glob("*.py")))
    assert f'"{name}"' in sources or (name.startswith("raw_") and 'f"raw_{table.name}"' in sources)
