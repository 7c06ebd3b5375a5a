"""The classes of the graph API whose instances are stored: every codec knows them, whatever the schema of its graph."""

from __future__ import annotations

from stepwell.codec import Registry
from stepwell.graph.types import Command, Interrupt, Overwrite, Send

OWN_TYPES = Registry().with_types(Send, Command, Interrupt, Overwrite)
