"""What the store tests share: an empty database of each PostgreSQL."""

import pytest

from tests.stores.binaries import VERSIONS
from tests.stores.databases import empty_database


@pytest.fixture(params=VERSIONS)
def conninfo(request: pytest.FixtureRequest, worker_id: str) -> str:
    """How to connect to an empty database of each version in turn."""
    return empty_database(request.param, worker_id)
