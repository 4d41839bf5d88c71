"""Schemas: Spark DDL text to Arrow, without Spark."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np
import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token

from freshet.model.errors import UserError

ARRIVAL: Final = "__arrival"
"""Hidden last column of every segment: when the tuple arrived, in microseconds since the epoch (int64).

An output tuple carries the arrival of the tuple it was made from, so response time is end to end
and ``now()`` has one value per tuple, whatever the schedule.
"""

WEIGHT: Final = "__weight"
"""Hidden column of tuples of which some were left out, for queries that ask for estimates: how many of the tuples that
there were each of them stands for (double)."""

KEPT: Final = "choose one that does not begin with two underscores and is not _arrival"
MOST_CHARACTERS: Final = 200_000
"""Maximum number of characters in a schema's text."""
MOST_COLUMNS: Final = 2_000
"""Maximum number of columns in a schema."""
TEXT_BYTES: Final = 24.0
"""Bytes at which a text, or another value of any length, is reckoned before any was seen."""
_INSTANT: Final = pa.timestamp("us", tz="UTC")
_SIMPLE: Final = {
    "boolean": pa.bool_(), "tinyint": pa.int8(), "smallint": pa.int16(), "int": pa.int32(), "bigint": pa.int64(),
    "float": pa.float32(), "double": pa.float64(), "string": pa.string(), "binary": pa.binary(),
    "date": pa.date32(), "timestamp": _INSTANT, "timestamp_ntz": pa.timestamp("us"),
}  # fmt: skip
"""Arrow types by the names that Spark has for them."""
_TEXT: Final = {kind: name for name, kind in _SIMPLE.items()}
_PARSED: Final[dict[exp.DType, pa.DataType]] = {
    **{exp.DataType.build(name, dialect="spark").this: kind for name, kind in _SIMPLE.items()},
    exp.DataType.Type.TIMESTAMP: _INSTANT,
    exp.DataType.Type.TIMESTAMPLTZ: _INSTANT,
}


def is_kept(name: str) -> bool:
    """Whether Freshet keeps the name of a column for itself.

    >>> is_kept("__arrival"), is_kept("_Arrival"), is_kept("_id")
    (True, True, False)
    """
    return name.startswith("__") or name.lower() == "_arrival"


class _DdlParser(SparkParser):
    def _parse_as_command(self, start: Token) -> exp.Command:
        # sqlglot would accept the rest as it is, and log a warning.
        raise sqlglot.ParseError("this is not a list of columns")


class _Ddl(Spark):
    Parser = _DdlParser


@lru_cache(maxsize=256)
def parse_schema(ddl: str, *, own: bool = False) -> pa.Schema:
    """The Arrow schema of a Spark DDL text; names that Freshet keeps for itself are allowed in its ``own``.

    >>> parse_schema("k bigint, v double, ts timestamp").names
    ['k', 'v', 'ts']
    >>> parse_schema("k biggint")
    Traceback (most recent call last):
    freshet.model.errors.UserError: schema 'k biggint' is not Spark DDL (name type, name type, ...) at 'biggint'
    """
    schema = f"schema {repr(ddl) if len(ddl) <= 200 else f'{ddl[:197]!r}...'}"
    if len(ddl) > MOST_CHARACTERS and not own:
        raise UserError(f"{schema} has {len(ddl):,} characters: at most {MOST_CHARACTERS:,} are allowed")
    columns = _definitions(ddl, schema)
    if not columns:
        raise UserError(f"{schema} names no column")
    if len(columns) > MOST_COLUMNS and not own:
        raise UserError(f"{schema} has {len(columns):,} columns: at most {MOST_COLUMNS:,} are allowed")
    fields: dict[str, pa.Field] = {}
    for column in columns:
        name, where = column.name, f"{schema}: column {column.name}"
        if not isinstance(column, exp.ColumnDef | exp.Identifier) or not name:
            raise UserError(f"{schema}: {column.sql('spark')} is not a column: write its name and its type")
        if not own and is_kept(name):
            raise UserError(f"{where} is a name that Freshet keeps for itself: {KEPT}")
        if name.lower() in fields:
            raise UserError(f"{where} appears twice")
        if column.args.get("kind") is None:
            raise UserError(f"{where} has no type")
        for constraint in column.args.get("constraints") or ():
            if not isinstance(constraint.args.get("kind"), exp.CommentColumnConstraint):
                raise UserError(f"{where} is declared {constraint.sql('spark')}, which is not checked: leave it out")
        fields[name.lower()] = pa.field(name, _arrow_type(column.args["kind"], where))
    return pa.schema(list(fields.values()))


def _definitions(ddl: str, schema: str) -> list[exp.Expr]:
    """The outermost column definitions of a DDL text: the fields of a struct are such, too."""
    form = f"{schema} is not Spark DDL (name type, name type, ...)"
    try:
        _check_commas(sqlglot.tokenize(ddl, read="spark"), form)
        trees = sqlglot.parse(f"CREATE TABLE t ({ddl})", read=_Ddl)
    except sqlglot.ParseError as error:
        place = next((each.get("highlight") for each in error.errors), None) or "its end"
        raise UserError(f"{form} at {place!r}") from None
    except sqlglot.TokenError:
        raise UserError(f"{form}: a quote or a comment is not closed") from None
    except RecursionError:
        raise UserError(f"{schema}: types are nested too deeply") from None
    first = trees[0] if len(trees) == 1 else None
    # If a parenthesis closes too early, something follows the list of columns.
    if not isinstance(first, exp.Create) or not isinstance(first.this, exp.Schema) or _behind(first):
        raise UserError(f"{form}: something follows the columns")
    return list(first.this.expressions)


def _behind(table: exp.Create) -> bool:
    return any(value for key, value in table.args.items() if key not in ("this", "kind"))


def _check_commas(tokens: list[Token], form: str) -> None:
    # sqlglot accepts a superfluous comma in silence.
    texts = ["(", *(token.text for token in tokens), ")"]
    for before, comma, after in zip(texts, texts[1:], texts[2:], strict=False):
        if comma == "," and (before in ("(", "<", ",") or after in (")", ">", ",")):
            raise UserError(f"{form}: a comma has nothing next to it: remove it, or write a column next to it")


def _arrow_type(kind: exp.DataType, where: str) -> pa.DataType:
    if kind.this in _PARSED:
        return _PARSED[kind.this]
    if kind.this == exp.DataType.Type.DECIMAL:
        return _decimal(kind, where)
    if kind.this == exp.DataType.Type.ARRAY and kind.expressions:
        return pa.list_(_arrow_type(kind.expressions[0], where))
    if kind.this == exp.DataType.Type.MAP and len(kind.expressions) == 2:
        return pa.map_(*(_arrow_type(part, where) for part in kind.expressions))
    if kind.this == exp.DataType.Type.STRUCT and kind.expressions:
        if any(part.args.get("kind") is None or not part.name for part in kind.expressions):
            raise UserError(f"{where} has a field without a name or a type: write name:type")
        names = [part.name.lower() for part in kind.expressions]
        if len(set(names)) < len(names):
            raise UserError(f"{where} has two fields of one name")
        return pa.struct([(part.name, _arrow_type(part.args["kind"], where)) for part in kind.expressions])
    raise UserError(f"{where} has the unknown type {kind.sql('spark')}")


def _decimal(kind: exp.DataType, where: str) -> pa.DataType:
    texts = [size.name for size in kind.expressions] or ["10", "0"]
    sizes = [int(text) if text.isdigit() and len(text) <= 2 else -1 for text in texts]
    precision, scale = (*sizes, 0)[:2]
    if len(sizes) > 2 or not 1 <= precision <= 38 or not 0 <= scale <= precision:
        raise UserError(
            f"{where} has the type {kind.sql('spark')}: a decimal has 1 to 38 digits, and no more of them behind the "
            "point, as in decimal(10, 2)"
        )
    return pa.decimal128(precision, scale)


def type_text(kind: pa.DataType) -> str:
    """Spark's name of an Arrow type.

    >>> type_text(pa.list_(pa.int32()))
    'array<int>'
    """
    if kind in _TEXT:
        return _TEXT[kind]
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_list(kind):
        return f"array<{type_text(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"map<{type_text(kind.key_type)},{type_text(kind.item_type)}>"
    if pa.types.is_struct(kind):
        parts = (f"{_field_name(field.name)}:{type_text(field.type)}" for field in kind)
        return f"struct<{','.join(parts)}>"
    raise UserError(f"Arrow type {kind} has no name in Spark")


def _field_name(name: str) -> str:
    return name if name.isidentifier() and name.isascii() else quoted(name)


def quoted(name: str) -> str:
    """A name in back quotes.

    >>> quoted("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"


def schema_text(schema: pa.Schema) -> str:
    """Spark DDL text of an Arrow schema; the reverse of :func:`parse_schema`.

    >>> schema_text(parse_schema("k BIGINT, price DECIMAL(10, 2)"))
    '`k` bigint, `price` decimal(10,2)'
    """
    return ", ".join(f"{quoted(field.name)} {type_text(field.type)}" for field in schema)


def row_bytes(columns: pa.Schema) -> float:
    """Bytes of a row with its arrival, as far as types say; a value of any length counts as :data:`TEXT_BYTES`.

    >>> row_bytes(parse_schema("id bigint, name string"))
    40.0
    """
    return 8.0 + sum(_value_bytes(kind) for kind in columns.types)


def _value_bytes(kind: pa.DataType) -> float:
    if pa.types.is_struct(kind):
        return sum(_value_bytes(field.type) for field in kind)
    try:
        return max(1.0, float(kind.bit_width) / 8)
    except ValueError:
        return TEXT_BYTES


def without_arrival(schema: pa.Schema) -> pa.Schema:
    """The columns that a user knows, by name and type."""
    return pa.schema([(field.name, field.type) for field in schema if field.name != ARRIVAL])


def with_arrival(columns: pa.Schema) -> pa.Schema:
    """The columns of a stream as they are in its segments."""
    return columns if ARRIVAL in columns.names else columns.append(pa.field(ARRIVAL, pa.int64()))


def with_one_arrival(table: pa.Table | pa.RecordBatch, arrival: int | None) -> pa.Table | pa.RecordBatch:
    """Rows that all bear one arrival; None: each keeps its own.

    >>> with_one_arrival(pa.table({"v": [1, 2], ARRIVAL: [5, 6]}), 7).column(ARRIVAL).to_pylist()
    [7, 7]
    """
    if arrival is None:
        return table
    place = table.schema.get_field_index(ARRIVAL)
    return table.set_column(place, ARRIVAL, pa.array(np.full(table.num_rows, arrival, np.int64)))
