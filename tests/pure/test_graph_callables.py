"""User code: how it is called, whether it is async, which of the engine's values it asks for."""

# mypy: disable-error-code="empty-body"

import functools
from collections.abc import Callable
from typing import Any, Union

import pytest
from langchain_core.runnables import RunnableConfig, RunnableLambda

from stepwell.errors import InvalidGraphError
from stepwell.graph.callables import hints_of, name_of, user_code


class Runtime:
    """Stands for the engine's class of the same name."""


def plain(state: Any) -> Any:
    return state


async def coroutine(state: Any) -> Any:
    return state


class Callable_:
    def __call__(self, state: Any) -> Any:
        return state

    def method(self, state: Any) -> Any:
        return state


class AsyncCallable:
    async def __call__(self, state: Any) -> Any:
        return state


@pytest.mark.parametrize(
    ("source", "is_async"),
    [
        (plain, False),
        (coroutine, True),
        (functools.partial(coroutine), True),
        (functools.partial(functools.partial(plain)), False),
        (Callable_(), False),
        (Callable_().method, False),
        (AsyncCallable(), True),
        (functools.partial(AsyncCallable()), True),
        (lambda state: state, False),
        (dict, False),
    ],
)
def test_async_code_is_recognised(source: Any, is_async: bool) -> None:
    code = user_code(source, "Node `n`")
    assert code.is_async is is_async
    assert code.call is source


def test_names_come_from_the_function_or_the_class() -> None:
    assert name_of(plain) == "plain"
    assert name_of(Callable_()) == "Callable_"
    assert name_of(Callable_().method) == "method"
    assert name_of(lambda state: state) is None
    assert name_of(RunnableLambda(plain)) == "plain"


def test_values_are_asked_for_by_name() -> None:
    def node(state: Any, config: Any, *, runtime: Any, writer: Any, store: Any = None, previous: Any = 3) -> None: ...

    code = user_code(node, "Node `n`")
    assert code.inject == ("config", "runtime", "writer", "store", "previous")
    assert code.required == {"config", "runtime", "writer"}


@pytest.mark.parametrize(
    "annotation",
    [
        RunnableConfig,
        RunnableConfig | None,
        Union[RunnableConfig, None],  # noqa: UP007
        "RunnableConfig",
        "RunnableConfig | None",
        "Optional[RunnableConfig]",
        "runnables.RunnableConfig",
        dict,
        dict[str, Any],
        "dict[str, Any]",
        Any,
    ],
)
def test_config_may_be_annotated_as_one(annotation: Any) -> None:
    def node(state: Any, config: Any) -> None: ...

    node.__annotations__["config"] = annotation
    assert user_code(node, "Node `n`").inject == ("config",)


def test_a_parameter_that_only_shares_the_name_is_not_filled() -> None:
    def node(state: Any, config: int = 3, store: str = "", writer: int = 0) -> None: ...

    assert user_code(node, "Node `n`").inject == ()


def test_writer_and_store_may_be_annotated_as_what_they_are() -> None:
    def node(state: Any, writer: Callable[[Any], None], store: "BaseStore | None") -> None: ...  # type: ignore[name-defined]  # noqa: F821

    assert user_code(node, "Node `n`").inject == ("writer", "store")


def test_values_are_asked_for_by_annotation_under_any_name() -> None:
    def node(state: Any, rt: Runtime, conf: RunnableConfig) -> Any:
        return (state, rt, conf)

    code = user_code(node, "Node `n`")
    assert code.inject == ("runtime", "config")
    assert code.call(1, runtime="r", config="c") == (1, "r", "c")
    assert code.source is node


def test_the_first_parameter_is_the_state_whatever_its_name() -> None:
    def node(config: Any, runtime: Any) -> None: ...

    assert user_code(node, "Node `n`").inject == ("runtime",)


def test_what_a_partial_binds_is_not_filled() -> None:
    def node(state: Any, store: Any, runtime: Any) -> None: ...

    assert user_code(functools.partial(node, store="mine"), "Node `n`").inject == ("runtime",)

    def bound_first(mine: Any, state: Any, config: Any) -> None: ...

    assert user_code(functools.partial(bound_first, "mine"), "Node `n`").inject == ("config",)


def test_a_parameter_that_nothing_fills_is_refused() -> None:
    def node(state: Any, client: Any) -> None: ...

    with pytest.raises(InvalidGraphError, match="Node `n` has a parameter `client` that nothing fills"):
        user_code(node, "Node `n`")

    def wrong_type(state: Any, store: int) -> None: ...

    with pytest.raises(InvalidGraphError, match="parameter `store` that nothing fills"):
        user_code(wrong_type, "Node `n`")


def test_parameters_with_defaults_and_variadic_ones_are_left_alone() -> None:
    def node(state: Any, client: Any = None, *args: Any, **kwargs: Any) -> None: ...

    assert user_code(node, "Node `n`").inject == ()


def test_code_that_takes_no_state_is_refused() -> None:
    for bad in (lambda: 0, lambda *, config: 0):
        with pytest.raises(InvalidGraphError, match="Node `n` takes no state"):
            user_code(bad, "Node `n`")


def test_generators_are_refused() -> None:
    def sync_generator(state: Any) -> Any:
        yield state

    async def async_generator(state: Any) -> Any:
        yield state

    for bad in (sync_generator, async_generator):
        with pytest.raises(InvalidGraphError, match="Node `n` is a generator function"):
            user_code(bad, "Node `n`")


def test_what_cannot_be_called_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="Node `n` needs a function, a callable object or a Runnable, not int"):
        user_code(3, "Node `n`")


def test_builtins_that_do_not_tell_their_parameters_are_called_with_the_state() -> None:
    assert user_code(max, "Node `n`").inject == ()
    assert user_code(len, "Node `n`").inject == ()


def test_runnables_are_called_both_ways() -> None:
    runnable = RunnableLambda(plain)
    code = user_code(runnable, "Node `n`")
    assert (code.call, code.acall, code.is_async) == (runnable.invoke, runnable.ainvoke, False)
    assert code.inject == ("config",)
    assert code.required == frozenset()
    assert code.call(3, config={}) == 3


def test_an_async_only_runnable_is_async() -> None:
    runnable = RunnableLambda(coroutine)
    code = user_code(runnable, "Node `n`")
    assert (code.call, code.acall, code.is_async) == (runnable.ainvoke, None, True)


def test_an_object_with_only_invoke_is_sync() -> None:
    class Only:
        def invoke(self, value: Any) -> Any:
            return value

    only = Only()
    code = user_code(only, "Node `n`")
    assert (code.call, code.acall, code.is_async, code.inject) == (only.invoke, None, False, ())


def test_an_annotation_that_cannot_be_resolved_does_not_hide_the_others() -> None:
    def node(state: "Nowhere", config: int) -> "str": ...  # type: ignore[name-defined]  # noqa: F821

    assert hints_of(node) == {"config": int, "return": str}
