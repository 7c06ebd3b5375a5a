"""The same runs on an encrypted store: what is about records that go from one checkpoint to another, read and written.

What they say stands where they are written; here they are only given a saver with a key.
"""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from stepwell import Encryption, InMemorySaver
from tests.runtime import test_branches, test_edits, test_retry_tasks

MODULES = (test_branches, test_edits, test_retry_tasks)
KEY = Encryption.new_key()

backwards = test_branches.backwards


@pytest.fixture
def saver() -> Iterator[InMemorySaver]:
    """A saver with a key. At the end every row must verify."""
    with InMemorySaver(encryption=Encryption({"k": KEY})) as made:
        yield made
        assert list(made.store.verify()) == []


@pytest.fixture
def call() -> Callable[..., Any]:
    """Call a graph by its sync API: what the others do to it is not the key's."""
    return lambda graph, *args, **options: graph.invoke(*args, **options)


@pytest.fixture
def any_durability() -> str:
    """The default: what the others change is not the key's."""
    return "sync"


for _module in MODULES:
    for _name, _test in inspect.getmembers(_module, inspect.isfunction):
        if _name.startswith("test_") and "saver" in inspect.signature(_test).parameters:
            globals()[f"{_name}_on_an_encrypted_store"] = _test
