"""The caller's config, checked and made plain: one place for each option, and none that is silently ignored.

Thread ids become text by one rule (int and UUID by `str`), so that `1` and `"1"` are the same thread and nothing else
is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from stepwell.errors import InvalidConfigError
from stepwell.ids import is_holdable
from stepwell.runtime.misspelt import check_spelling

TOP_LEVEL = frozenset(
    {"tags", "metadata", "callbacks", "run_name", "run_id", "max_concurrency", "recursion_limit", "configurable"}
)
ADDRESS = frozenset({"thread_id", "checkpoint_id", "checkpoint_ns", "checkpoint_map"})
DEFAULT_RECURSION_LIMIT = 10_007
_ENGINE_KEYS = ("langgraph_", "stepwell_")
"""What a node's config says of the node: passed on to another graph, it is not the caller's."""
MAX_THREAD_ID = 512
"""UTF-8 bytes: what every backend's index can hold."""


@dataclass(frozen=True, slots=True)
class RunConfig:
    """A checked config."""

    thread_id: str | None = None
    checkpoint_id: str | None = None
    namespace: str = ""
    run_id: str | None = None
    recursion_limit: int = DEFAULT_RECURSION_LIMIT
    max_concurrency: int | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """What lands in each checkpoint's metadata: the caller's, and plain values of configurable."""
    given: Mapping[str, Any] = field(default_factory=dict)
    """The config as the caller gave it, for nodes."""

    @property
    def metadata_json(self) -> str:
        """The metadata as stored; "" for none."""
        return json.dumps(self.metadata, sort_keys=True) if self.metadata else ""


_EMPTY = RunConfig()


def parse_config(config: Mapping[str, Any] | None, *defaults: Mapping[str, Any] | None) -> RunConfig:
    """Return the config checked, laid over the defaults. InvalidConfigError names the option and where it belongs."""
    if not config and not any(defaults):
        return _EMPTY
    given = merged_config([*defaults, config])
    for key in given:
        if key not in TOP_LEVEL:
            hint = " (it belongs in configurable)" if key in ADDRESS else ""
            raise InvalidConfigError(
                reason=f"unknown key {key!r}{hint}; known: {', '.join(sorted(TOP_LEVEL))}", key=key
            )
    configurable = _mapping(given, "configurable")
    for key in configurable:
        if key not in ADDRESS:
            check_spelling(key, configurable, ADDRESS)
    for key in ("recursion_limit", "max_concurrency"):
        if key in configurable:
            raise InvalidConfigError(reason=f"{key} is a top-level key, not one of configurable", key=key)
    if configurable.get("checkpoint_id") and not configurable.get("thread_id"):
        raise InvalidConfigError(reason="checkpoint_id needs a thread_id beside it in configurable", key="thread_id")
    _check_told(given)
    return RunConfig(
        thread_id=_thread_id(configurable),
        checkpoint_id=_optional_text(configurable, "checkpoint_id"),
        namespace=_optional_text(configurable, "checkpoint_ns") or "",
        run_id=_run_id(given),
        recursion_limit=_positive(given, "recursion_limit") or DEFAULT_RECURSION_LIMIT,
        max_concurrency=_positive(given, "max_concurrency"),
        metadata=_metadata(given, configurable),
        given=given,
    )


def merged_config(configs: Sequence[Mapping[str, Any] | None]) -> dict[str, Any]:
    """Return configs laid over one another: tags and callbacks added up, mappings merged, everything else replaced."""
    merged: dict[str, Any] = {}
    for config in configs:
        if config is None:
            continue
        if not isinstance(config, Mapping):
            raise InvalidConfigError(reason=f"a config is a dict, not a {type(config).__name__}", key="")
        for key, value in config.items():
            before = merged.get(key)
            if key in ("configurable", "metadata") and isinstance(before, Mapping) and value:
                merged[key] = {**before, **value}
            elif key in ("tags", "callbacks") and isinstance(before, list | tuple) and isinstance(value, list | tuple):
                merged[key] = [*before, *value]
            else:
                merged[key] = value
    return merged


def thread_id_of(given: Any) -> str:
    """Return a thread id as text, by the rule that a config's follows. InvalidConfigError where it is none."""
    text = _thread_id({"thread_id": given})
    assert text is not None
    return text


def _thread_id(configurable: Mapping[str, Any]) -> str | None:
    if "thread_id" not in configurable:
        return None
    given = configurable["thread_id"]
    if isinstance(given, bool) or not isinstance(given, str | int | UUID):
        raise InvalidConfigError(reason=f"thread_id is text, an int or a UUID, not {given!r}", key="thread_id")
    text = str(given)
    if not text.strip():
        raise InvalidConfigError(reason="thread_id is empty", key="thread_id")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise InvalidConfigError(reason="thread_id is not valid Unicode", key="thread_id") from None
    if size > MAX_THREAD_ID or "\x00" in text:
        reason = (
            f"thread_id has {size} bytes, more than {MAX_THREAD_ID}" if size > MAX_THREAD_ID else "thread_id holds NUL"
        )
        raise InvalidConfigError(reason=reason, key="thread_id")
    return text


def _run_id(given: Mapping[str, Any]) -> str | None:
    run_id = given.get("run_id")
    if run_id is None:
        return None
    text = str(run_id) if isinstance(run_id, str | UUID) else ""
    if not text.strip() or len(text) > MAX_THREAD_ID or not text.isprintable():
        reason = f"run_id is a UUID, or one line of text with at most {MAX_THREAD_ID} letters, not {run_id!r}"
        raise InvalidConfigError(reason=reason, key="run_id")
    return text


def _optional_text(configurable: Mapping[str, Any], key: str) -> str | None:
    value = configurable.get(key)
    if value is not None and not isinstance(value, str):
        raise InvalidConfigError(reason=f"{key} is text, not {value!r}", key=key)
    if value and not is_holdable(value):
        raise InvalidConfigError(reason=f"{key} holds NUL or is not valid Unicode: {value!r}", key=key)
    return value or None


def _mapping(given: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = given.get(key) or {}
    if not isinstance(value, Mapping):
        raise InvalidConfigError(reason=f"{key} is a dict, not {value!r}", key=key)
    return value


def _check_told(given: Mapping[str, Any]) -> None:
    """Refuse tags and a name that nobody could read as such; a text is a sequence of letters, and no list of tags."""
    tags, name = given.get("tags"), given.get("run_name")
    if tags is not None and not isinstance(tags, list | tuple | set | frozenset):
        raise InvalidConfigError(reason=f"tags is a list of texts, not {tags!r}", key="tags")
    for tag in tags or ():
        if not isinstance(tag, str):
            raise InvalidConfigError(reason=f"tags is a list of texts, and {tag!r} is none", key="tags")
    if name is not None and not isinstance(name, str):
        raise InvalidConfigError(reason=f"run_name is text, not {name!r}", key="run_name")


def _positive(given: Mapping[str, Any], key: str) -> int | None:
    value = given.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        whole = "" if isinstance(value, int) and not isinstance(value, bool) else "a whole number, and "
        raise InvalidConfigError(f"{key} must be {whole}at least 1, not {value!r}", key=key)
    return value


def _metadata(given: Mapping[str, Any], configurable: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {k: v for k, v in _mapping(given, "metadata").items() if not str(k).startswith(_ENGINE_KEYS)}
    for key, value in configurable.items():
        if key not in ADDRESS and not key.startswith("__") and isinstance(value, str | int | float | bool):
            metadata.setdefault(key, value)
    if not metadata:
        return metadata
    try:
        json.dumps(metadata)
    except (TypeError, ValueError) as error:
        raise InvalidConfigError(reason=f"metadata must be JSON: {error}", key="metadata") from None
    return metadata
