"""The functions that queries may call besides Spark's: the user's own, and those that only the user's Spark knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from freshet.model.errors import UserError
from freshet.model.functions import Function, Macro, OwnOperator
from freshet.model.schema import parse_schema
from freshet.sql.check.expressions import checked
from freshet.sql.check.functions import functions, name_of
from freshet.sql.check.own import ELSEWHERE
from freshet.sql.check.types import is_known, type_of
from freshet.sql.parse.errors import SqlError, did_you_mean, fail
from freshet.sql.parse.text import parse_expression, to_sql


@dataclass(frozen=True, slots=True)
class OwnFunctions:
    """What a query may call.

    Args:
        declared: Functions by name in lower case.
        packaged: Finds a function that an installed package brings, by its name in lower case.
        elsewhere: Whether Spark has a function of this name; nothing more is known of it.
        operators: What may be used in FROM, by name in lower case.
    """

    declared: Mapping[str, Function] = field(default_factory=dict)
    packaged: Callable[[str], Function | None] = field(default=lambda name: None)
    elsewhere: Callable[[str], bool] = field(default=lambda name: False)
    operators: Mapping[str, OwnOperator] = field(default_factory=dict)

    def find(self, tree: exp.Expr) -> exp.Expr:
        """Calls the functions in a tree by their keys; the tree is changed."""
        for node in tree.find_all(exp.Anonymous):
            if isinstance(node.parent, exp.Table):
                continue
            name = name_of(node) or ""
            of_spark = name in functions()
            function = self.declared.get(name) or (None if of_spark else self.packaged(name))
            if function is not None:
                node.set("this", function.key)
            elif name in self.operators and not _is_in_from(node):
                raise fail(f"{name} is an operator: name it in FROM, as in FROM {name}(s)", node)
            elif not of_spark and self.elsewhere(name):
                node.meta[ELSEWHERE] = True
            elif not of_spark and (hint := did_you_mean(name, self.declared)):
                raise fail(f"unknown function {name}{hint}", node)
        return tree


def _is_in_from(call: exp.Expr) -> bool:
    """Whether a call stands in FROM, also as the input of another one."""
    while isinstance(call.parent, exp.Anonymous):
        call = call.parent
    return isinstance(call.parent, exp.Table)


def check_function_name(name: str) -> None:
    """Refuses a name that cannot be called, or that is one of Spark's functions.

    >>> check_function_name("sqrt")
    Traceback (most recent call last):
    freshet.model.errors.UserError: function sqrt: Spark SQL has a function of this name already; choose another
    """
    if not name.isidentifier():
        raise UserError(f"function {name}: choose another name: letters, digits and _, beginning with a letter")
    if name.lower() in functions():
        raise UserError(f"function {name}: Spark SQL has a function of this name already; choose another")
    try:
        called = parse_expression(f"{name}(x)")
    except SqlError:
        called = exp.Null()
    if name_of(called) != name.lower():
        raise UserError(f"function {name}: it is a word of SQL; choose another, such as {name}_1")


def make_macro(name: str, text: str, takes: str, own: OwnFunctions) -> Macro:
    """A macro from its expression and its typed parameters; it may call functions declared before it.

    Raises:
        UserError: The expression is wrong.

    >>> macro = make_macro("twice", "x * 2 + y", "x double, y double", OwnFunctions())
    >>> macro.body, macro.returns
    ('x * 2 + y', DataType(double))
    """
    schema = parse_schema(takes)
    columns = {column.name.lower(): column.type for column in schema}
    try:
        tree = own.find(parse_expression(text))
        for node in tree.find_all(exp.Column):
            if node.name.lower() not in columns:
                raise fail(f"{node.name} is none of its parameters ({', '.join(schema.names)})")
        tree = checked(tree, columns, aggregates="a macro is computed for each row")
    except SqlError as error:
        raise UserError(f"function {name}: {error.problem}") from None
    kind = type_of(tree, columns)
    if not is_known(kind):
        raise UserError(f"function {name}: only Spark knows the type of {text}: put it into CAST(... AS type)")
    body = to_sql(tree)
    return Macro(name, tuple(schema.types), kind, body, tuple(columns), body)
