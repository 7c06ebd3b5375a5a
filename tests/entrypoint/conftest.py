"""The ways to call and to stream a graph are those of the tests of the runtime."""

from tests.runtime.conftest import call as call, chunks as chunks
