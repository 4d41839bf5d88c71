"""Functions and operators of one's own: what an application says of them, and what becomes of that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import pyarrow as pa

from freshet.app.declared.spec import NAME, check_free
from freshet.model import UserError, parse_schema
from freshet.model.code_version import code_version
from freshet.model.functions import Function, OwnOperator, Vectorised, make_known
from freshet.model.plugins import Registry
from freshet.sql import OwnFunctions, check_function_name, make_macro
from freshet.sql.check.functions import functions

Called = TypeVar("Called", bound=Callable[..., Any])
_DECLARED: Final = "__freshet_function__"


@dataclass(frozen=True, slots=True)
class Declaration:
    """What a function or an operator takes and returns, and its version, as far as that is declared."""

    takes: str | None = None
    returns: str | None = None
    version: str | None = None
    time: str | None = None
    """Of an operator, what becomes of event time."""

    def completed(self, what: Any) -> Declaration:
        """The same, completed by what :func:`function` or :func:`operator` says of a thing."""
        own: Declaration = getattr(what, _DECLARED, Declaration())
        version = self.version or own.version or code_version(what)
        takes = own.takes if self.takes is None else self.takes
        return Declaration(takes, self.returns or own.returns, version, self.time or own.time)


def function(*, takes: str, returns: str, version: str | None = None) -> Callable[[Called], Called]:
    """Declares the types of a Python function where it is defined, so that its name alone is enough elsewhere.

    Args:
        takes: Types of its arguments as Spark names them: ``"double, string"``.
        returns: Type of its value.
        version: Say another one when its values change; None: a hash of its content.

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
    return _declaring(Declaration(takes, returns, version))


def operator(
    *, takes: str, returns: str, time: str | None = None, version: str | None = None
) -> Callable[[Called], Called]:
    """Declares an operator where it is defined, a function or a class, so that its name alone is enough elsewhere.

    Args:
        takes: Columns that it reads, as Spark DDL.
        returns: Columns that it outputs, as Spark DDL.
        time: What becomes of event time; see :meth:`~freshet.App.operator`.
        version: Say another one when its rows change; None: a hash of its content.
    """
    return _declaring(Declaration(takes, returns, version, time))


def _declaring(declaration: Declaration) -> Callable[[Called], Called]:
    def declared(called: Called) -> Called:
        setattr(called, _DECLARED, declaration)
        return called

    return declared


def declare_function(
    name: str, what: Callable[..., Any] | str, given: Declaration, known: Mapping[str, Function]
) -> Function:
    """The function of a declaration; a text is a macro's expression."""
    check_function_name(name)
    if name.lower() in known:
        raise UserError(f"function {name}: there is one of this name already; choose another")
    if isinstance(what, str):
        return make_known(_macro(name, what, given, known))
    if not callable(what):
        raise UserError(f"function {name}: it must be a Python function or a SQL expression, not {what!r}")
    said = given.completed(what)
    _check_takes(name, said.takes)
    if said.takes is None or said.returns is None:
        raise UserError(
            f"function {name}: say what it takes and returns, as in takes = 'double, string', returns = 'double', or "
            "declare it with @freshet.function(takes=..., returns=...)"
        )
    kind = _types(name, "returns", said.returns)
    if len(kind) != 1:
        raise UserError(f"function {name}: returns must be one type, such as 'double', not {said.returns!r}")
    made = Vectorised(name, _types(name, "takes", said.takes), kind[0], str(said.version), lambda: what)
    if wrong := made.why_not():
        raise UserError(f"function {name}: {wrong}")
    return make_known(made)


def _check_takes(name: str, takes: str | None) -> None:
    if takes is not None and not takes.strip():
        raise UserError(
            f"function {name}: it must take at least one argument: without any, write its value in the query"
        )


def declare_operator(name: str, what: Any, given: Declaration, taken: Mapping[str, str]) -> OwnOperator:
    """The operator of a declaration; what has states remembers. Names that are taken come with their kind."""
    if not NAME.fullmatch(name) or name.lower() in (*functions(), "tumble", "hop", "session"):
        raise UserError(f"operator {name}: choose another name: letters, digits and _, and no function of Spark SQL")
    check_free(name, "operator", taken)
    if not callable(what) and not hasattr(what, "states"):
        raise UserError(f"operator {name}: it must be a Python function, or have states and a run, not {what!r}")
    said = given.completed(what)
    if said.takes is None or said.returns is None:
        raise UserError(
            f"operator {name}: say the columns that it takes and returns, as in takes = 'text string', returns = 'word "
            "string', or declare it with @freshet.operator(takes=..., returns=...)"
        )
    read, gives = _columns(name, "takes", said.takes), _columns(name, "returns", said.returns)
    time, any_order = said.time or "keep", bool(getattr(what, "any_order", False))
    states = _states(name, what, time)
    made = OwnOperator(name, read, gives, time, str(said.version), lambda: what, states, any_order)
    _check_time(made)
    if wrong := made.why_never():
        raise UserError(f"operator {name}: {wrong}")
    return make_known(made)


def _states(name: str, what: Any, time: str) -> tuple[pa.Schema, ...]:
    """The columns of the tables that an operator remembers."""
    states = getattr(what, "states", None)
    if states is None and isinstance(what, type) and hasattr(what, "run"):
        raise UserError(f"operator {name}: a class with a run must have states, as in states = ('user string, n int',)")
    if states is None:
        return ()
    if isinstance(states, str) or not states or not all(isinstance(state, str) for state in states):
        raise UserError(f"operator {name}: states must be columns, as in states = ('user string, n int',)")
    if not callable(getattr(what, "run", None)):
        raise UserError(f"operator {name}: what has states must have a method run(tuples, states, before, after)")
    if time == "keep":
        raise UserError(
            f"operator {name}: a stateful operator must say what becomes of event time: time = 'column:X', where "
            "the column X holds it, or 'none'"
        )
    return tuple(_columns(name, "states", state) for state in states)


def _check_time(made: OwnOperator) -> None:
    if made.time not in ("keep", "none") and made.time_column is None:
        raise UserError(f"operator {made.name}: time must be 'keep', 'none' or 'column:X', not {made.time!r}")
    times = [field.name for field in made.returns if field.type == pa.timestamp("us", tz="UTC")]
    if made.time_column is not None and made.time_column not in times:
        raise UserError(f"operator {made.name}: returns has no column {made.time_column} of type timestamp")


def _columns(name: str, key: str, text: str) -> pa.Schema:
    try:
        return parse_schema(text)
    except UserError as error:
        raise UserError(f"operator {name}: {key}: {error}") from None


PACKAGED: Final = Registry[Callable[..., Any]](
    "freshet.functions", {}, callable, "a Python function with @freshet.function(takes=..., returns=...)"
)
"""Functions that installed packages bring."""


def packaged_function(name: str) -> Function | None:
    """The function that an installed package brings by a name in lower case; None: none does."""
    found = next((each for each in PACKAGED.names() if each.lower() == name), None)
    if found is None:
        return None
    try:
        return declare_function(found, PACKAGED[found], Declaration(), {})
    except UserError as error:
        problem = str(error).removeprefix(f"function {found}: ")
        raise UserError(f"function {found} of {PACKAGED.package(found)}: {problem}") from None


def _macro(name: str, text: str, given: Declaration, known: Mapping[str, Function]) -> Function:
    if given.takes is None:
        raise UserError(f"function {name}: say the parameters of its expression, as in takes = 'x double, y double'")
    if given.version is not None:
        raise UserError(f"function {name}: its expression is its version: leave out the version")
    _check_takes(name, given.takes)
    if _is_wrong(given.takes):
        _types(name, "takes", given.takes)  # says which types there are, if that is what is wrong
        raise UserError(
            f"function {name}: an expression needs a name for each argument, as in takes = 'x double, y double', not "
            f"{given.takes!r}"
        )
    macro = make_macro(name, text, given.takes, OwnFunctions(known))
    if given.returns is None or _types(name, "returns", given.returns) == (macro.returns,):
        return macro
    return make_macro(name, f"CAST({text} AS {given.returns})", given.takes, OwnFunctions(known))


def _is_wrong(schema: str) -> bool:
    try:
        parse_schema(schema)
    except UserError:
        return True
    return False


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
    """A text, split at its outermost commas."""
    parts, depth = [""], 0
    for sign in text:
        depth += (sign in "(<") - (sign in ")>")
        if sign == "," and not depth:
            parts.append("")
        else:
            parts[-1] += sign
    return parts
