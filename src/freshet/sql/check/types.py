"""Types of expressions without Spark, as Arrow types; ``pa.null()`` where the type is not known for sure.

Operators follow Spark's rules in ANSI mode. Functions are left to sqlglot's knowledge of Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, reduce
from typing import Final

import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.optimizer.annotate_types import annotate_types

from freshet.model.errors import UserError
from freshet.model.functions import known_function
from freshet.model.numbers import INTEGERS, as_decimal, common_number, common_type, is_number
from freshet.model.operators import AggregateFunction
from freshet.model.schema import ARRIVAL, WEIGHT, parse_schema, type_text
from freshet.sql.check.functions import CAST_FUNCTIONS, UNIT_FUNCTIONS, name_of
from freshet.sql.lower.calls import AGGREGATES
from freshet.sql.parse.dialect import Suffixed

UNKNOWN: Final = pa.null()
COMPARISONS: Final = (
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Between, exp.In,
)  # fmt: skip
_ALTERNATIVES: Final = {"coalesce": 0, "nvl": 0, "ifnull": 0, "greatest": 0, "least": 0, "if": 1, "nvl2": 1}
"""Functions that give one of their arguments, from the numbered one on."""

ColumnTypes = Mapping[str, pa.DataType]


def type_of(tree: exp.Expr, columns: ColumnTypes) -> pa.DataType:
    """The type of an expression over columns of known types (names in lower case).

    >>> from freshet.sql.parse.text import parse_expression
    >>> type_of(parse_expression("price * 2"), {"price": pa.float64()})
    DataType(double)
    """
    for kinds, rule in _RULES:
        if isinstance(tree, kinds):
            return rule(tree, columns)
    return UNKNOWN


def compared(node: exp.Expr) -> list[exp.Expr]:
    """The value on the left of a comparison and those on its right; nothing if the node is no comparison."""
    if isinstance(node, exp.Between):
        return [node.this, node.args["low"], node.args["high"]]
    if isinstance(node, exp.In):
        return [node.this, *node.expressions]
    return [node.this, node.expression] if isinstance(node, COMPARISONS) else []


def alternatives(node: exp.Expr) -> list[exp.Expr]:
    """The values of which a node gives one, as the branches of a CASE; nothing for other nodes."""
    if isinstance(node, exp.Case):
        results = [*(branch.args["true"] for branch in node.args["ifs"]), node.args.get("default")]
        return [result for result in results if result is not None]
    name = name_of(node)
    return node.expressions[_ALTERNATIVES[name] :] if name in _ALTERNATIVES else []


def is_known(kind: pa.DataType) -> bool:
    """Whether a type is known."""
    return not pa.types.is_null(kind)


def is_time(kind: pa.DataType) -> bool:
    """Whether a type is a date or a timestamp."""
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def _decimal(precision: int, scale: int) -> pa.DataType:
    """Spark's adjustment of a decimal that is too wide: digits before the point win over all but 6 after it."""
    if precision > 38:
        whole = precision - scale
        scale = max(38 - whole, min(scale, 6))
        precision = 38
    return pa.decimal128(precision, scale)


def _literal(tree: exp.Literal, columns: ColumnTypes) -> pa.DataType:
    if tree.is_string:
        return pa.string()
    text = tree.name.lower()
    if "e" in text:
        return pa.float64()
    if "." in text:
        whole, _, fraction = text.partition(".")
        digits = len(whole.lstrip("0")) + len(fraction)
        return pa.decimal128(max(digits, len(fraction), 1), len(fraction)) if digits <= 38 else UNKNOWN
    value = int(text)
    if value < 2**31:
        return pa.int32()
    return pa.int64() if value < 2**63 else UNKNOWN


def _arithmetic(tree: exp.Binary, columns: ColumnTypes) -> pa.DataType:
    left, right = type_of(tree.this, columns), type_of(tree.expression, columns)
    if not (is_number(left) and is_number(right)):
        return _mixed_arithmetic(tree, left, right)
    kind = common_number(left, right)
    if pa.types.is_decimal(kind):
        return _decimal_arithmetic(tree, left, right)
    return pa.float64() if isinstance(tree, exp.Div) else kind


def _mixed_arithmetic(tree: exp.Binary, left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """Of a number and a text, which becomes a number; of a date and days."""
    for number, other in ((left, right), (right, left)):
        if is_number(number) and pa.types.is_string(other):
            whole = number in INTEGERS and not isinstance(tree, exp.Div)
            return pa.int64() if whole else pa.float64()
        if pa.types.is_date(other) and number in INTEGERS[:3] and isinstance(tree, exp.Add | exp.Sub):
            return other if number is right or isinstance(tree, exp.Add) else UNKNOWN
    return UNKNOWN


def _decimal_arithmetic(tree: exp.Binary, left: pa.DataType, right: pa.DataType) -> pa.DataType:
    one, two = _narrow_literal(tree.this, left), _narrow_literal(tree.expression, right)
    whole_one, whole_two = one.precision - one.scale, two.precision - two.scale
    scale = max(one.scale, two.scale)
    if isinstance(tree, exp.Add | exp.Sub):
        return _decimal(max(whole_one, whole_two) + scale + 1, scale)
    if isinstance(tree, exp.Mul):
        return _decimal(one.precision + two.precision + 1, one.scale + two.scale)
    if isinstance(tree, exp.Div):
        scale = max(6, one.scale + two.precision + 1)
        return _decimal(whole_one + two.scale + scale, scale)
    return _decimal(min(whole_one, whole_two) + scale, scale)


def _narrow_literal(tree: exp.Expr, kind: pa.DataType) -> pa.DataType:
    # Spark gives a whole literal next to a decimal just the digits it needs, except for a tinyint.
    tree = tree.unnest()
    if isinstance(tree, Suffixed) and kind in INTEGERS[1:]:
        tree = tree.this
    if isinstance(tree, exp.Neg):
        tree = tree.this
    if isinstance(tree, exp.Literal) and kind in INTEGERS:
        return pa.decimal128(len(tree.name.lstrip("0")) or 1, 0)
    return as_decimal(kind)


@lru_cache(maxsize=256)
def _named_type(name: str) -> pa.DataType:
    try:
        return parse_schema(f"x {name}").field(0).type
    except UserError:
        return UNKNOWN


def _common(tree: exp.Expr, columns: ColumnTypes) -> pa.DataType:
    # A NULL takes the type of the others.
    kinds = [type_of(each, columns) for each in alternatives(tree) if not isinstance(each, exp.Null)]
    return reduce(common_type, kinds) if kinds else UNKNOWN


def _call(tree: exp.Anonymous, columns: ColumnTypes) -> pa.DataType:
    name = name_of(tree) or ""
    arguments = tree.expressions
    if name in CAST_FUNCTIONS:
        return _named_type(name)
    if name in ("timestamp_micros", "timestamp_millis", "timestamp_seconds"):
        return pa.timestamp("us", tz="UTC")
    if name in _ALTERNATIVES and arguments:
        return _common(tree, columns)
    if name == "nullif" and arguments:
        return type_of(arguments[0], columns)
    if name == "mod" and len(arguments) == 2:
        return _arithmetic(exp.Mod(this=arguments[0].copy(), expression=arguments[1].copy()), columns)
    own = known_function(name)
    if own is not None:
        return own.returns
    kinds = tuple(type_of(argument, columns) for argument in arguments)
    if name in AGGREGATES:
        return aggregate_type(AGGREGATES[name], kinds[0] if kinds else UNKNOWN)
    if name in UNIT_FUNCTIONS and len(kinds) == 3:
        return pa.int64() if "diff" in name else UNKNOWN
    if name == "trunc":
        return pa.date32()
    if name in ("abs", "positive", "negative") and len(kinds) == 1:
        return kinds[0]
    if name in ("round", "bround", "ceil", "ceiling", "floor", "sequence"):
        simple = bool(kinds) and (kinds[0] in INTEGERS or pa.types.is_floating(kinds[0]))
        if name in ("round", "bround"):
            return kinds[0] if simple else UNKNOWN
        return pa.int64() if simple and len(kinds) == 1 and name != "sequence" else UNKNOWN
    return _function_type(name, tuple(type_text(kind) if is_known(kind) else None for kind in kinds))


def aggregate_type(function: AggregateFunction, kind: pa.DataType) -> pa.DataType:
    """The type of an aggregate over values of a type.

    >>> aggregate_type("sum", pa.int32()), aggregate_type("avg", pa.decimal128(10, 2))
    (DataType(int64), Decimal128Type(decimal128(14, 6)))
    """
    if function in ("count", "count_distinct"):
        return pa.int64()
    if function in ("min", "max", "approx_percentile"):
        return kind
    if function not in ("sum", "avg"):
        return pa.float64()
    if pa.types.is_decimal(kind):
        digits, after = (10, 0) if function == "sum" else (4, 4)
        return pa.decimal128(min(38, kind.precision + digits), min(38, kind.scale + after))
    if function == "sum" and kind in INTEGERS:
        return pa.int64()
    return pa.float64() if kind in INTEGERS or pa.types.is_floating(kind) else UNKNOWN


_SURE: Final = (
    pa.bool_(), pa.int32(), pa.int64(), pa.float64(), pa.string(), pa.binary(), pa.date32(),
    pa.timestamp("us", tz="UTC"),
)  # fmt: skip


@lru_cache(maxsize=1024)
def _function_type(name: str, kinds: tuple[str | None, ...]) -> pa.DataType:
    """The type that sqlglot gives for a function of Spark; only simple types are trusted."""
    arguments = ", ".join("x" if kind is None else f"CAST(NULL AS {kind})" for kind in kinds)
    try:
        tree = annotate_types(sqlglot.parse_one(f"{name}({arguments})", dialect="spark"), dialect="spark")
    except sqlglot.errors.SqlglotError:
        return UNKNOWN
    if tree.type is None or tree.type.expressions:
        return UNKNOWN
    kind = _named_type(tree.type.sql("spark"))
    return kind if kind in _SURE else UNKNOWN


def _column(tree: exp.Column, columns: ColumnTypes) -> pa.DataType:
    name = tree.name.lower()
    return pa.int64() if name == ARRIVAL else pa.float64() if name == WEIGHT else columns.get(name, UNKNOWN)


def _field(tree: exp.Dot, columns: ColumnTypes) -> pa.DataType:
    outer, name = type_of(tree.this, columns), tree.expression.name.lower()
    fields = outer if pa.types.is_struct(outer) else ()
    return next((field.type for field in fields if field.name.lower() == name), UNKNOWN)


def _element(tree: exp.Bracket, columns: ColumnTypes) -> pa.DataType:
    outer = type_of(tree.this, columns)
    if pa.types.is_list(outer):
        return outer.value_type
    return outer.item_type if pa.types.is_map(outer) else UNKNOWN


def _always(kind: pa.DataType) -> Callable[[exp.Expr, ColumnTypes], pa.DataType]:
    return lambda tree, columns: kind


def _negative(tree: exp.Neg, columns: ColumnTypes) -> pa.DataType:
    number = tree.this
    if isinstance(number, exp.Literal) and not number.is_string and number.name in (str(2**31), str(2**63)):
        return pa.int32() if number.name == str(2**31) else pa.int64()  # the sign is a part of the literal
    kind = type_of(number, columns)
    return pa.float64() if pa.types.is_string(kind) else kind


_BOOLEAN: Final = (
    exp.Predicate, exp.And, exp.Or, exp.Not, exp.Boolean, exp.Between, exp.In, exp.Is, exp.Like, exp.ILike,
    exp.RegexpLike, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Escape,
)  # fmt: skip
_RULES: Final[tuple[tuple[tuple[type[exp.Expr], ...], Callable[..., pa.DataType]], ...]] = (
    ((exp.Column,), _column),
    ((exp.Literal,), _literal),
    ((exp.Cast,), lambda tree, columns: _named_type(tree.to.sql("spark"))),
    (_BOOLEAN, _always(pa.bool_())),
    ((exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod), _arithmetic),
    ((exp.IntDiv,), _always(pa.int64())),
    ((exp.Neg,), _negative),
    ((exp.Paren, exp.BitwiseNot, exp.Filter), lambda tree, columns: type_of(tree.this, columns)),
    ((exp.Case,), _common),
    ((exp.Anonymous,), _call),
    ((exp.Dot,), _field),
    ((exp.Bracket,), _element),
    ((exp.DPipe, exp.Trim, exp.Substring), _always(pa.string())),
    ((exp.StrPosition,), _always(pa.int32())),
)
