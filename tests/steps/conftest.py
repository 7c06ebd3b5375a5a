"""Steps are tried through each way to call a graph."""

from tests.runtime.conftest import call as call, chunks as chunks
