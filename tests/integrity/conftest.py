"""What the tests of damage and repair share: a saver on each body of the store."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.integrity.spoiling import BODIES, Place, Saver


@pytest.fixture(params=BODIES)
def place(request: pytest.FixtureRequest, tmp_path: Path, worker_id: str) -> Place:
    return Place(request.param, tmp_path, worker_id)


@pytest.fixture
def saver(place: Place) -> Iterator[Saver]:
    with closing(place.open()) as saver:
        yield saver
