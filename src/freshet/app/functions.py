"""Functions of one's own: what an application says of them, and what becomes of that."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import pyarrow as pa

from freshet.model import UserError, parse_schema
from freshet.model.functions import Function, RowWise, Vectorised, make_known, source_version
from freshet.model.plugins import Registry
from freshet.sql import OwnFunctions, check_function_name, make_macro
from freshet.sql.check.functions import functions

Called = TypeVar("Called", bound=Callable[..., Any])
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_DECLARED: Final = "__freshet_function__"


@dataclass(frozen=True, slots=True)
class Declaration:
    """What a function takes and returns, and its version, as far as that is said."""

    takes: str | None = None
    returns: str | None = None
    version: str | None = None


def function(*, takes: str, returns: str, version: str | None = None) -> Callable[[Called], Called]:
    """Declares the types of a Python function where it is defined, so that its name alone is enough elsewhere.

    Args:
        takes: Types of its arguments as Spark names them: ``"double, string"``.
        returns: Type of its value.
        version: Say another one when its values change; None: a hash of its source.

    >>> import pyarrow.compute as pc
    >>> @function(takes="double", returns="double")
    ... def fahrenheit(celsius):
    ...     return pc.add(pc.multiply(celsius, 1.8), 32.0)
    >>> from freshet import App
    >>> app = App("weather")
    >>> app.stream("air", "place string, celsius double")
    >>> app.function("fahrenheit", fahrenheit)
    >>> app.query("hot", "SELECT place, fahrenheit(celsius) AS f FROM air WHERE fahrenheit(celsius) > 100")
    >>> app.check()
    []
    """

    def declared(called: Called) -> Called:
        setattr(called, _DECLARED, Declaration(takes, returns, version))
        return called

    return declared


def declare_function(
    name: str, what: Callable[..., Any] | str, given: Declaration, known: Mapping[str, Function]
) -> Function:
    """The function of a declaration; a text is a macro's expression.

    Raises:
        UserError: The declaration is wrong.
    """
    check_function_name(name)
    if name.lower() in known:
        raise UserError(f"function {name}: there is one of this name already; choose another")
    if isinstance(what, str):
        return make_known(_macro(name, what, given, known))
    if not callable(what):
        raise UserError(f"function {name}: it must be a Python function or a SQL expression, not {what!r}")
    own = getattr(what, _DECLARED, Declaration())
    takes, returns = given.takes or own.takes, given.returns or own.returns
    if takes is None or returns is None:
        raise UserError(
            f"function {name}: say what it takes and returns, as in takes = 'double, string', returns = 'double', or "
            "declare it with @freshet.function(takes=..., returns=...)"
        )
    version = given.version or own.version or source_version(what)
    kind = _types(name, "returns", returns)
    if len(kind) != 1:
        raise UserError(f"function {name}: returns must be one type, such as 'double', not {returns!r}")
    return make_known(Vectorised(name, _types(name, "takes", takes), kind[0], version, lambda: what))


def declare_operator(
    name: str,
    what: Callable[..., Any],
    takes: str,
    returns: str,
    time: str,
    version: str | None,
    known: Mapping[str, RowWise],
) -> RowWise:
    """The operator of a declaration.

    Raises:
        UserError: The declaration is wrong.
    """
    if not _NAME.fullmatch(name) or name.lower() in (*functions(), "tumble", "hop", "session"):
        raise UserError(f"operator {name}: choose another name: letters, digits and _, and no function of Spark SQL")
    if name.lower() in known:
        raise UserError(f"operator {name}: there is one of this name already; choose another")
    if not callable(what):
        raise UserError(f"operator {name}: it must be a Python function, not {what!r}")
    try:
        read, given = parse_schema(takes), parse_schema(returns)
    except UserError as error:
        raise UserError(f"operator {name}: {error}") from None
    made = RowWise(name, read, given, time, version or source_version(what), lambda: what)
    if time not in ("keep", "none") and made.time_column is None:
        raise UserError(f"operator {name}: time must be 'keep', 'none' or 'column:X', not {time!r}")
    times = [field.name for field in given if field.type == pa.timestamp("us", tz="UTC")]
    if made.time_column is not None and made.time_column not in times:
        raise UserError(f"operator {name}: returns has no column {made.time_column} of type timestamp")
    return make_known(made)


PACKAGED: Final = Registry[Callable[..., Any]](
    "freshet.functions", {}, callable, "a Python function with @freshet.function(takes=..., returns=...)"
)
"""Functions that installed packages bring."""


def packaged_function(name: str) -> Function | None:
    """The function that an installed package brings by a name in lower case; None: none does."""
    found = next((each for each in PACKAGED.names() if each.lower() == name), None)
    return None if found is None else declare_function(found, PACKAGED[found], Declaration(), {})


def _macro(name: str, text: str, given: Declaration, known: Mapping[str, Function]) -> Function:
    if given.takes is None:
        raise UserError(f"function {name}: say the parameters of its expression, as in takes = 'x double, y double'")
    if given.version is not None:
        raise UserError(f"function {name}: its expression is its version: leave out the version")
    macro = make_macro(name, text, given.takes, OwnFunctions(known))
    if given.returns is None:
        return macro
    [kind] = _types(name, "returns", given.returns)
    if kind == macro.returns:
        return macro
    return make_macro(name, f"CAST({text} AS {given.returns})", given.takes, OwnFunctions(known))


def _types(name: str, key: str, text: str) -> tuple[pa.DataType, ...]:
    """Types in a text, with or without names.

    >>> _types("f", "takes", "double, decimal(10, 2)")
    (DataType(double), Decimal128Type(decimal128(10, 2)))
    """
    parts = _parts(text)
    for named in (text, ", ".join(f"a{number} {part}" for number, part in enumerate(parts))):
        try:
            return tuple(parse_schema(named).types)
        except UserError as error:
            problem = error
    raise UserError(f"function {name}: {key} must be types, such as 'double, string', not {text!r}") from problem


def _parts(text: str) -> list[str]:
    """What stands between the outermost commas."""
    parts, depth = [""], 0
    for sign in text:
        depth += (sign in "(<") - (sign in ")>")
        if sign == "," and not depth:
            parts.append("")
        else:
            parts[-1] += sign
    return parts
