"""`CompiledGraph`, the public object, cut by subject: wiring, running, reading, editing, shape."""

from stepwell.engine.compiled import CompiledGraph

__all__ = ["CompiledGraph"]
