"""What a stream declares about the order of its rows by a key."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from freshet.model.errors import UserError
from freshet.model.units import parse_duration

DEFAULT_IN_ORDER: Final = 0.999
_ROWS: Final = re.compile(r"\s*([0-9][0-9_,]*)\s+rows?\s*", re.IGNORECASE)
_MOST_ROWS: Final = 10**9


@dataclass(frozen=True, slots=True)
class KeyOrder:
    """How far the rows of a stream may come out of the order of a key (WU §3.2.2). After each row there is a *key
    mark*; later rows at or below it are past the mark, and joins without windows leave them out.

    Args:
        column: The key: whole numbers, timestamps or dates.
        rows: Maximum number of rows by which a row comes after one with an equal or greater key; None: not declared.
        distance: Maximum distance of a key behind the greatest one before it, in the units of the key (microseconds);
            None: not declared. If neither is, both are measured.
        in_order: If they are measured, the share of rows that must lie above the mark.

    >>> KeyOrder.of("epoch", "500 rows"), KeyOrder.of("ts", "8 s").distance, KeyOrder.of("ts", "measured").is_measured
    (KeyOrder(column='epoch', rows=500, distance=None, in_order=0.999), 8000000, True)
    """

    column: str
    rows: int | None = None
    distance: int | None = None
    in_order: float = DEFAULT_IN_ORDER

    @property
    def is_measured(self) -> bool:
        """Whether the data tell how far they come out of order."""
        return self.rows is None and self.distance is None

    @classmethod
    def of(cls, column: str, disorder: str, in_order: float | None = None) -> KeyOrder:
        """From what a user writes.

        Raises:
            UserError: It has no meaning; the message says what has.
        """
        if in_order is not None and not 0.5 <= in_order < 1.0:
            raise UserError(f"in_order must be at least 0.5 and below 1, not {in_order:g}: it is a share of the rows")
        if disorder.strip().lower() == "measured":
            return cls(column, in_order=DEFAULT_IN_ORDER if in_order is None else in_order)
        if in_order is not None:
            raise UserError(f"in_order is for disorder = 'measured'; disorder = {disorder!r} says all of it")
        found = _ROWS.fullmatch(disorder)
        if found is not None:
            rows = int(found[1].replace("_", "").replace(",", ""))
            if rows > _MOST_ROWS:
                raise UserError(f"a disorder of {rows:,} rows is more than {_MOST_ROWS:,}, the most that is allowed")
            return cls(column, rows=rows)
        try:
            return cls(column, distance=round(parse_duration(disorder) * 1e6))
        except UserError:
            raise UserError(f"disorder must be like '500 rows', '8 s' or 'measured', not {disorder!r}") from None

    def check(self, schema: pa.Schema) -> None:
        """Refuses a column that is not there, or whose values have no order that can be marked."""
        if self.column not in schema.names:
            raise UserError(f"ordered_by {self.column!r} is not a column (columns: {', '.join(schema.names)})")
        kind = schema.field(self.column).type
        if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
            raise UserError(
                f"ordered_by {self.column} is {kind}, and rows join on it only if it is exactly equal: use a whole "
                "number or a timestamp, such as a column with the number in milliseconds"
            )
        is_time = pa.types.is_timestamp(kind) or pa.types.is_date(kind)
        if not is_time and not pa.types.is_integer(kind):
            raise UserError(f"ordered_by {self.column} is {kind}: it must be a whole number, a timestamp or a date")
        if self.distance is not None and not is_time:
            raise UserError(
                f"disorder is a time, but ordered_by {self.column} is a number: give it in rows, such as '500 rows', "
                "or say 'measured'"
            )

    def text(self) -> str:
        """For people.

        >>> KeyOrder("ts").text()
        'ordered by ts, disorder measured, 0.999 of the rows in order'
        """
        if self.rows is not None:
            return f"ordered by {self.column}, at most {self.rows:,} rows out of order"
        if self.distance is not None:
            return f"ordered by {self.column}, at most {self.distance / 1e6:g} s out of order"
        return f"ordered by {self.column}, disorder measured, {self.in_order:g} of the rows in order"
