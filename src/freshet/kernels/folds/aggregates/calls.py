"""The partials that the calls of a fold need, and how they give the answers, with Spark's types and its NULL rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import pyarrow as pa

from freshet.kernels.expressions.types import DOUBLE, VOID, is_decimal, is_fractional, is_integral, is_numeric, name
from freshet.kernels.folds.aggregates.extremes import Extreme
from freshet.kernels.folds.aggregates.moments import SPREADS, Moments, finish_spread
from freshet.kernels.folds.aggregates.partials import Count, Loaded, Partial
from freshet.kernels.folds.aggregates.sketch import finish_quantile
from freshet.kernels.folds.aggregates.sums import DoubleSum, ExactSum, Finished, finish_average, finish_sum
from freshet.kernels.folds.arrays import Ints, arrow
from freshet.kernels.folds.groups import check_key
from freshet.model import Call, UserError

_WHOLE: Final = pa.int64()


@dataclass(frozen=True)
class Detail:
    """What a call needs besides partials of fixed size: the distinct values of a column, or counts of their buckets."""

    column: str
    what: Literal["values", "buckets"]


Wanted = tuple[Detail, float]
"""A detail and the quantile's share (0 for a number of distinct values)."""


@dataclass(frozen=True)
class Answer:
    """How a call is answered.

    Args:
        field: Column that it gives out.
        partials: The partials that it needs.
        finish: Computes the answers and the number of overflows from the partials and the detail's numbers.
        wanted: The detail that it needs: numbers of distinct values, or the buckets of its quantiles.
    """

    field: pa.Field
    partials: tuple[Partial, ...]
    finish: Callable[[Sequence[Loaded], Ints | None], Finished]
    wanted: Wanted | None = None


class Calls:
    """The calls of a fold over tuples of a schema."""

    def __init__(self, calls: Sequence[Call], schema: pa.Schema) -> None:
        self.answers: Final = tuple(_answer(call, schema) for call in calls)
        self.partials: Final = tuple(dict.fromkeys(p for answer in self.answers for p in answer.partials))
        self.wanted: Final = tuple(dict.fromkeys(a.wanted for a in self.answers if a.wanted is not None))
        self.details: Final = tuple(dict.fromkeys(detail for detail, _ in self.wanted))
        self.fields: Final = [answer.field for answer in self.answers]

    def finish(self, partials: Sequence[Loaded], details: Mapping[Wanted, Ints]) -> tuple[list[pa.Array], int]:
        """The columns that the calls give out, and the number of values that overflowed."""
        found = dict(zip(self.partials, partials, strict=False))
        columns, errors = [], 0
        for answer in self.answers:
            detail = None if answer.wanted is None else details[answer.wanted]
            column, wrong = answer.finish([found[partial] for partial in answer.partials], detail)
            columns.append(column)
            errors += wrong
        return columns, errors


def _answer(call: Call, schema: pa.Schema) -> Answer:
    if call.column is None:
        if call.function != "count":
            raise UserError(f"{call.function}(*) is not defined: name a column")
        return _whole(call, Count(None, _WHOLE))
    kind = schema.field(call.column).type
    kind = DOUBLE if kind == VOID else kind
    if call.function == "count":
        return _whole(call, Count(call.column, kind))
    if call.function == "count_distinct":
        check_key(schema, call.column)
        wanted = (Detail(call.column, "values"), 0.0)
        field = pa.field(call.output, _WHOLE)
        return Answer(field, (), lambda _, numbers: (arrow(_known(numbers), _WHOLE), 0), wanted)
    if call.function in ("min", "max"):
        return _extreme(call, call.column, kind)
    if not is_numeric(kind):
        raise UserError(f"{call.function} needs a number, but column {call.column} has type {name(kind)}")
    if call.function == "sum":
        return _sum(call, call.column, kind)
    if call.function == "avg":
        return _average(call, call.column, kind)
    if call.function in SPREADS:
        spread = Moments(call.column, kind)
        field = pa.field(call.output, DOUBLE)
        return Answer(field, (spread,), lambda loaded, _: (finish_spread(call.function, loaded[0]), 0))
    return _quantile(call, call.column, kind)


def _whole(call: Call, partial: Count) -> Answer:
    field = pa.field(call.output, _WHOLE)
    return Answer(field, (partial,), lambda loaded, _: (arrow(loaded[0].arrays[0], _WHOLE), 0))


def _extreme(call: Call, column: str, kind: pa.DataType) -> Answer:
    if pa.types.is_nested(kind):
        raise UserError(f"{call.function} of column {column} with type {name(kind)} is not defined")
    best = Extreme(column, kind, "min" if call.function == "min" else "max")
    return Answer(pa.field(call.output, kind), (best,), lambda loaded, _: (best.finish(loaded[0]), 0))


def _sum(call: Call, column: str, kind: pa.DataType) -> Answer:
    result = _WHOLE if is_integral(kind) else DOUBLE
    if is_decimal(kind):
        result = pa.decimal128(min(38, kind.precision + 10), kind.scale)
    return Answer(
        pa.field(call.output, result), (_total(column, kind),), lambda loaded, _: finish_sum(result, loaded[0])
    )


def _average(call: Call, column: str, kind: pa.DataType) -> Answer:
    result, scale = DOUBLE, 0
    if is_decimal(kind):
        result, scale = pa.decimal128(min(38, kind.precision + 4), min(38, kind.scale + 4)), kind.scale
    field = pa.field(call.output, result)
    return Answer(field, (_total(column, kind),), lambda loaded, _: finish_average(result, scale, loaded[0]))


def _total(column: str, kind: pa.DataType) -> Partial:
    return DoubleSum(column, kind) if is_fractional(kind) else ExactSum(column, kind)


def _quantile(call: Call, column: str, kind: pa.DataType) -> Answer:
    share = call.parameter
    if share is None or not 0 <= share <= 1:
        raise UserError(f"approx_percentile of column {column} needs a share between 0 and 1, not {share}")
    ends = (Extreme(column, kind, "min"), Extreme(column, kind, "max"))

    def finish(loaded: Sequence[Loaded], numbers: Ints | None) -> Finished:
        return finish_quantile(kind, _known(numbers), loaded[0], loaded[1]), 0

    return Answer(pa.field(call.output, kind), ends, finish, (Detail(column, "buckets"), share))


def _known(numbers: Ints | None) -> Ints:
    return np.zeros(0, np.int64) if numbers is None else numbers
