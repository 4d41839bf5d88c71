"""Functions of one's own: what an application says of them, and what becomes of that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import pyarrow as pa

from freshet.model import UserError, parse_schema
from freshet.model.functions import Function, Vectorised, make_known, source_version
from freshet.sql import OwnFunctions, check_function_name, make_macro

Called = TypeVar("Called", bound=Callable[..., Any])
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
