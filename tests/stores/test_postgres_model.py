"""Generated lives on PostgreSQL: graphs, inputs, answers, edits, forks, replays and crashes, against the model."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from stepwell.stores.postgres.pool import OwnConnections
from stepwell.stores.postgres.saver import PostgresStore
from stepwell.testing.graphs import graph_scripts
from tests.pure.model.scripts import Script, scripts
from tests.pure.test_model_engine import modelled, played, short_chains
from tests.stores.binaries import VERSIONS
from tests.stores.databases import empty_database

__all__ = ["short_chains"]

pytestmark = pytest.mark.filterwarnings("ignore::stepwell.JoinNotReleasedWarning")


@settings(max_examples=8)
@given(script=scripts(graph_scripts(), breaks=False, most=4), asynchronous=st.booleans())
def test_resumed_is_uninterrupted_on_postgres(script: Script, asynchronous: bool, worker_id: str) -> None:
    """INV-4 to INV-9: each life of the process connects anew; under asyncio too."""
    conninfo = empty_database(VERSIONS[-1], worker_id)

    def opened(place: Any, *, clock: Any) -> PostgresStore:
        return PostgresStore(OwnConnections(conninfo), clock=clock)

    assert played(script, Path("a server"), asynchronous=asynchronous, opened=opened) == modelled(script)
