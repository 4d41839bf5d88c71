"""Which types Spark allows together, in ANSI mode; what is not known passes.

The tables are what Spark itself says of every pair; a test holds them against it.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from sqlglot import exp

from freshet.sql.check.signatures import letter_of

_NUMBERS: Final = frozenset("ilfn")
_TIMES: Final = frozenset("dtz")
_NESTED: Final = frozenset("amr")
_CASTS: Final = {
    "b": "bilfns", "i": "bilfnst", "l": "bilfnst", "f": "bilfnst", "n": "bilfnst", "s": "bilfnsxdtz", "x": "sx",
    "d": "sdtz", "t": "ilfnsdtz", "z": "sdtz", "a": "sa", "m": "sm", "r": "sr",
}  # fmt: skip
"""By letter of a type the letters of those that it can be cast to."""


def castable(one: pa.DataType, other: pa.DataType) -> bool:
    """Whether there is a CAST from one type to another.

    >>> castable(pa.timestamp("us", tz="UTC"), pa.int64()), castable(pa.date32(), pa.int64())
    (True, False)
    """
    left, right = letter_of(one), letter_of(other)
    return left is None or right is None or right in _CASTS[left]


def comparable(one: pa.DataType, other: pa.DataType) -> bool:
    """Whether values of two types can be compared.

    >>> comparable(pa.string(), pa.int32()), comparable(pa.date32(), pa.int32())
    (True, False)
    """
    return not (pa.types.is_map(one) or pa.types.is_map(other)) and share_a_column(one, other)


def share_a_column(one: pa.DataType, other: pa.DataType) -> bool:
    """Whether a value may be of one type or the other: the branches of a CASE, the arguments of COALESCE."""
    left, right = letter_of(one), letter_of(other)
    if left is None or right is None or left == right:
        return True
    if "s" in (left, right):
        return not {left, right} & _NESTED
    return {left, right} <= _NUMBERS or {left, right} <= _TIMES


def computable(operator: type[exp.Expr], one: pa.DataType, other: pa.DataType) -> bool:
    """Whether an arithmetic operator takes two types; each alone is allowed in arithmetic.

    >>> computable(exp.Add, pa.date32(), pa.int32()), computable(exp.Add, pa.timestamp("us", tz="UTC"), pa.int32())
    (True, False)
    """
    left, right = letter_of(one), letter_of(other)
    if left is None or right is None:
        return True
    both = {left, right}
    if both & _TIMES:
        if operator is exp.Add:
            return both == {"d", "i"}
        return operator is exp.Sub and (both <= _TIMES | {"s"} or (left, right) == ("d", "i"))
    if operator is exp.IntDiv and ("f" in both or both == {"n", "s"}):
        return False
    return both != {"s"}
