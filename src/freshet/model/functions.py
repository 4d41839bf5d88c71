"""Functions of the user's own, as expressions call them.

An expression calls such a function by its *key*: its name with a hash of its types and its version. So a text says
exactly which function it means, wherever it goes: into the fingerprint of a query, into what operators are compared by,
to workers. A process knows each function by its key. The version is the user's word that values are the same, or a hash
of the function's content (:mod:`~freshet.model.code_version`).
"""

from __future__ import annotations

import hashlib
import inspect
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import pyarrow as pa

from freshet.model.errors import UserError
from freshet.model.messages import counted
from freshet.model.schema import schema_text, type_text

_KEY: Final = re.compile(r"(__\w+?_[0-9a-f]{12})(?:_try)?\b", re.IGNORECASE)


_TOLD: Final[set[str]] = set()
"""Functions of which this process has told an error."""
_RAISED: Final[dict[str, str]] = {}
"""By the key of a function: what it raised first since :func:`forget_raised`."""
_MOST_TOLD: Final = 500
"""Number of characters of what a function raised."""
_MOST_CONSTANTS: Final = 32
"""Maximum number of constants that the code of an operator may demand."""


def _key(name: str, *told: str) -> str:
    return f"__{name.lower()}_{hashlib.sha256(repr([name.lower(), *told]).encode()).hexdigest()[:12]}"


@dataclass(frozen=True, slots=True)
class Function:
    """What a query must know of a function.

    Args:
        name: How queries call it.
        takes: Types of its arguments.
        returns: Type of its value.
        version: Another one says that its values may have changed.
    """

    name: str
    takes: tuple[pa.DataType, ...]
    returns: pa.DataType
    version: str

    @property
    def key(self) -> str:
        """How expressions call it, in lower case."""
        return _key(self.name, *map(type_text, self.takes), type_text(self.returns), self.version)

    @property
    def try_key(self) -> str:
        """How Spark's expressions call its form that does not raise: a struct of its value and what it raised."""
        return f"{self.key}_try"


@dataclass(frozen=True, slots=True)
class Macro(Function):
    """A SQL expression in the place of a call; ``parameters`` are the columns in it that stand for the arguments."""

    parameters: tuple[str, ...]
    body: str


@dataclass(frozen=True, slots=True)
class Vectorised(Function):
    """A Python function from Arrow arrays of one length to an Arrow array of that length.

    ``load`` gives the function itself: a worker unpacks it when it is first called.

    >>> import pyarrow.compute as pc
    >>> share = Vectorised("share", (pa.int64(),), pa.int64(), "1", lambda: lambda x: pc.divide(10, x))
    >>> values, failed = share.apply([pa.array([5, 0, None, 2])])
    >>> values.to_pylist(), failed
    ([2, None, None, 5], {1: 'function share raised ArrowInvalid: divide by zero'})
    """

    load: Callable[[], Callable[..., Any]]

    def why_not(self) -> str | None:
        """Why its code does not take as many arguments as declared; None: it does, as far as its signature tells."""
        wrong = _why_not(self.load(), len(self.takes))
        return None if wrong is None else f"it does not take ({', '.join(map(type_text, self.takes))}): {wrong}"

    def apply(self, arrays: Sequence[pa.Array]) -> tuple[pa.Array, dict[int, str]]:
        """Its values, and for each row for which it raised, what it raised; there the value is NULL.

        If the whole call raises, each half is called by itself, down to single rows.

        Raises:
            UserError: It returned something other than its declaration says.
        """
        failed: dict[int, str] = {}
        parts = self._parts(self.load(), arrays, 0, failed) or [pa.array([], self.returns)]
        if failed:
            _RAISED.setdefault(self.key, next(iter(failed.values())))
        return (parts[0] if len(parts) == 1 else pa.concat_arrays(parts)), failed

    def _parts(
        self, call: Callable[..., Any], arrays: Sequence[pa.Array], first: int, failed: dict[int, str]
    ) -> list[pa.Array]:
        rows = len(arrays[0])
        if not rows:
            return []
        try:
            made = call(*arrays)
        except MemoryError:
            raise
        except (Exception, SystemExit) as error:  # an exit must not end the process of other queries
            if rows == 1:
                what = f"function {self.name} raised {type(error).__name__}: {error}"[:_MOST_TOLD]
                failed[first] = what
                self._warn(what)
                return [pa.nulls(1, self.returns)]
            half = rows // 2
            left = self._parts(call, [array.slice(0, half) for array in arrays], first, failed)
            return left + self._parts(call, [array.slice(half) for array in arrays], first + half, failed)
        return [self._fitting(made, rows)]

    def _warn(self, what: str) -> None:
        """Tells the first error in a process: the others may be millions, and a query only counts them."""
        if self.key not in _TOLD:
            _TOLD.add(self.key)
            warnings.warn(f"{what}; such rows are evaluation errors", stacklevel=2)

    def _fitting(self, made: Any, rows: int) -> pa.Array:
        if isinstance(made, pa.ChunkedArray):
            made = made.combine_chunks()
        declared = type_text(self.returns)
        if not isinstance(made, pa.Array):
            given = "None" if made is None else f"a value of the type {type(made).__name__}"
            raise UserError(
                f"function {self.name} returned {given}: return an Arrow array of {declared}, with a value for each row"
            )
        if len(made) != rows:
            raise UserError(
                f"function {self.name} gave {counted(len(made), 'value')} for {counted(rows, 'row')}: return one for "
                "each"
            )
        if made.type != self.returns and not (pa.types.is_nested(self.returns) and _same_text(made.type, declared)):
            raise UserError(
                f"function {self.name} gave values of the Arrow type {made.type}, but is declared to return "
                f"{declared}: cast them, or declare what it returns"
            )
        return made if made.type == self.returns else made.cast(self.returns)


def _why_not(call: Callable[..., Any], arguments: int, constants: Sequence[object] = ()) -> str | None:
    """Why a call with that many arguments and these constants would fail; None: not because of its signature."""
    try:
        signature = inspect.signature(call)
    except ValueError:  # written in C
        return None
    try:
        signature.bind(*[None] * arguments, *constants)
    except TypeError as error:
        plain = [each.replace(annotation=each.empty) for each in signature.parameters.values()]
        form = signature.replace(parameters=plain, return_annotation=signature.empty)
        name = getattr(call, "__name__", type(call).__name__)
        return f"{error} ({name}{form})"
    return None


def _same_text(kind: pa.DataType, declared: str) -> bool:
    """Whether types differ only in what Spark does not know, such as names of the elements of arrays."""
    try:
        return type_text(kind) == declared
    except UserError:
        return False


@dataclass(frozen=True, slots=True)
class OwnOperator:
    """An operator of the user's own: a Python function from rows to rows, or an object that also remembers rows.

    Args:
        name: How queries call it.
        takes: Columns that it reads.
        returns: Columns that it outputs.
        time: What becomes of event time: ``keep``, ``none``, or ``column:X``.
        version: Another one says that its rows may have changed.
        load: Gives the function itself, or the class or object that remembers.
        states: Columns of each table that it remembers.
        any_order: Whether it gives the same answers in whatever order its tuples come.
    """

    name: str
    takes: pa.Schema
    returns: pa.Schema
    time: str
    version: str
    load: Callable[[], Any]
    states: tuple[pa.Schema, ...] = ()
    any_order: bool = False

    @property
    def key(self) -> str:
        """How operators name it."""
        columns = [schema_text(self.takes), schema_text(self.returns)]
        return _key(self.name, *columns, self.time, self.version, *map(schema_text, self.states))

    def why_not(self, constants: Sequence[object]) -> str | None:
        """Why its code does not take some constants; None: it does, as far as its signature tells."""
        wrong = _why_not(*self._call(), constants)
        return None if wrong is None else f"{self.name}() does not take these constants: {wrong}"

    def why_never(self) -> str | None:
        """Why its code takes no constants whatever; None: it takes some, or none, as far as its signature tells."""
        what = self.load()
        if self.states and isinstance(what, type) and (wrong := _why_not(what, 0)) is not None:
            return f"give an object of the class, which cannot be made without arguments: {wrong}"
        call, before = self._call()
        wrong = _why_not(call, before)
        if wrong is None or any(_why_not(call, before, [None] * more) is None for more in range(1, _MOST_CONSTANTS)):
            return None
        takes = "tuples, states, before and after" if self.states else "an Arrow batch"
        return f"its code must take {takes}, and then the constants of the query, if there are any: {wrong}"

    def _call(self) -> tuple[Callable[..., Any], int]:
        """What is called, with the number of arguments before the constants."""
        what = self.load()
        if not self.states:
            return what, 1
        # The run of a class also takes self, if it is no static method.
        own = isinstance(what, type) and inspect.isfunction(inspect.getattr_static(what, "run"))
        return what.run, 4 + own

    @property
    def time_column(self) -> str | None:
        """The output column that carries event time."""
        return self.time.removeprefix("column:") if self.time.startswith("column:") else None


_Known = TypeVar("_Known", bound=Function | OwnOperator)
_KNOWN: Final[dict[str, Function | OwnOperator]] = {}


def make_known(function: _Known) -> _Known:
    """Lets expressions and operators of this process name a function by its key."""
    _KNOWN[function.key] = function
    return function


def known_function(key: str | None) -> Function | None:
    """The function that expressions call by a key; None: there is none."""
    found = None if key is None else _KNOWN.get(key.lower())
    return found if isinstance(found, Function) else None


def is_tried(name: str | None) -> bool:
    """Whether a name is the :attr:`~Function.try_key` of a function of this process."""
    return name is not None and name.endswith("_try") and known_function(name.removesuffix("_try")) is not None


def known_operator(key: str) -> OwnOperator:
    """The operator of a key."""
    found = _KNOWN.get(key)
    if not isinstance(found, OwnOperator):
        raise UserError(f"there is no operator {key} in this process")
    return found


def readable(text: str) -> str:
    """A text of operators for people: the names of functions, not their keys.

    >>> half = make_known(Macro("half", (pa.float64(),), pa.float64(), "1", ("x",), "x / 2"))
    >>> readable(f"{half.key.upper()}(v) > 1")
    'half(v) > 1'
    """
    names = {each.key: each.name for each in functions_in(text)}
    return _KEY.sub(lambda found: names.get(found[1].lower(), found[0]), text) if names else text


def functions_in(text: str) -> list[Function | OwnOperator]:
    """The functions and operators that a text names, each once, also in their forms that do not raise."""
    found = (_KNOWN.get(key.lower()) for key in _KEY.findall(text))
    return sorted({each.key: each for each in found if each is not None}.values(), key=lambda each: each.key)


def forget_raised() -> None:
    """Forgets what functions have raised in this process."""
    _RAISED.clear()


def raised_in(operators: Sequence[object]) -> str:
    """What a function that operators call has raised in this process since :func:`forget_raised`; empty: nothing.

    >>> wrong = make_known(Vectorised("wrong", (pa.int64(),), pa.int64(), "1", lambda: lambda x: x.no_method()))
    >>> values, failed = wrong.apply([pa.array([1])])
    >>> raised_in([f"{wrong.key}(v) > 1"])
    "function wrong raised AttributeError: 'pyarrow.lib.Int64Array' object has no attribute 'no_method'"
    >>> forget_raised()
    >>> raised_in([f"{wrong.key}(v) > 1"])
    ''
    """
    called = functions_in(repr(operators)) if _RAISED else ()
    return next((_RAISED[each.key] for each in called if each.key in _RAISED), "")
