"""The user's own functions and operators on their way to workers, and as Spark's own form calls them.

A function goes by value, with everything that it uses of modules that are not installed: those beside the application
file, those of a notebook. Executors import installed modules themselves, so they must have them, as they have Arrow.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, lru_cache, partial
from types import ModuleType
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql.pandas.functions import arrow_udf

from freshet.model import UserError
from freshet.model.code_version import is_users
from freshet.model.functions import OwnOperator, Vectorised, functions_in, make_known
from freshet.model.schema import parse_schema, schema_text, type_text


class Packed(NamedTuple):
    """A function in the form that goes to workers."""

    name: str
    version: str
    takes: str
    returns: str
    time: str | None
    """What becomes of event time, for an operator."""
    states: str
    """Columns of what an operator remembers, as JSON."""
    code: str

    def function(self) -> Vectorised | OwnOperator:
        """The function or the operator; its code is unpacked when it is first called."""
        load = partial(_unpacked, self.name, self.code)
        takes, returns = parse_schema(self.takes, own=True), parse_schema(self.returns, own=True)
        if self.time is not None:
            states = tuple(map(parse_schema, json.loads(self.states)))
            return OwnOperator(self.name, takes, returns, self.time, self.version, load, states)
        return Vectorised(self.name, tuple(takes.types), returns.field(0).type, self.version, load)


@lru_cache(maxsize=256)
def packed(function: Vectorised | OwnOperator) -> Packed:
    """A function in the form that goes to workers.

    Raises:
        UserError: It uses something that cannot go there.
    """
    try:
        with _by_value():
            code = base64.b64encode(cloudpickle.dumps(function.load())).decode()  # type: ignore[no-untyped-call]
    except Exception as error:
        raise UserError(
            f"function {function.name} cannot be sent to workers: {error}; let it make such things when it is called"
        ) from None
    if isinstance(function, OwnOperator):
        takes, returns, time = function.takes, function.returns, function.time
        states = json.dumps([*map(schema_text, function.states)])
    else:
        takes = pa.schema([(f"a{number}", kind) for number, kind in enumerate(function.takes)])
        returns, time, states = pa.schema([("value", function.returns)]), None, "[]"
    return Packed(function.name, function.version, schema_text(takes), schema_text(returns), time, states, code)


@cache
def _unpacked(name: str, code: str) -> Callable[..., Any]:
    try:
        return cloudpickle.loads(base64.b64decode(code))  # type: ignore[no-any-return]
    except Exception as error:
        raise UserError(f"function {name} cannot be loaded by workers: {type(error).__name__}: {error}") from None


@contextmanager
def _by_value() -> Iterator[None]:
    """Sends modules by value that executors may lack."""
    before = cloudpickle.list_registry_pickle_by_value()  # type: ignore[no-untyped-call]
    users = [module for module in list(sys.modules.values()) if _is_users(module)]
    modules = [module for module in users if module.__name__ not in before]
    for module in modules:
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        for module in modules:
            cloudpickle.unregister_pickle_by_value(module)  # type: ignore[no-untyped-call]


def _is_users(module: ModuleType) -> bool:
    name = getattr(module, "__name__", "")
    return name != "__main__" and name in sys.modules and is_users(module)


_REGISTERED: Final[WeakKeyDictionary[SparkSession, set[Vectorised]]] = WeakKeyDictionary()


def register_functions(session: SparkSession, texts: str) -> None:
    """Lets Spark's expressions call the user's own functions that some texts name."""
    known = _REGISTERED.setdefault(session, set())
    for function in functions_in(texts):
        if isinstance(function, Vectorised) and function not in known:
            kind = f"struct<value:{type_text(function.returns)},raised:string>"
            session.udf.register(function.try_key, arrow_udf(_trying(packed(function)), kind))  # type: ignore[call-overload]
            known.add(function)


def _trying(function: Packed) -> Callable[..., pa.Array]:
    def trying(*arrays: pa.Array) -> pa.Array:  # Spark takes a plain function only
        own = _function(function)
        assert isinstance(own, Vectorised)
        values, failed = own.apply([array.cast(kind) for array, kind in zip(arrays, own.takes, strict=True)])
        told = list(map(failed.get, range(len(values)))) if failed else None
        raised = pa.array(told, pa.string()) if told else pa.nulls(len(values), pa.string())
        return pa.StructArray.from_arrays([values, raised], names=["value", "raised"])

    return trying


@cache
def _function(function: Packed) -> Vectorised | OwnOperator:
    return function.function()


def unpack_all(functions: tuple[Packed, ...]) -> None:
    """Lets the expressions of this process call functions that came from the driver."""
    for each in functions:
        make_known(_function(each))
