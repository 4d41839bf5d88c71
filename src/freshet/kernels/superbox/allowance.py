"""The maximum number of rows that a query may give out in a unit, checked before they fill the memory."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from freshet.model import FreshetError

_MOST: Final[ContextVar[float]] = ContextVar("rows that may be given out", default=math.inf)


class TooManyRows(FreshetError):
    """A query gives out more rows than its limit allows."""


@contextmanager
def allowance(rows_in: int, per_row: int | None) -> Iterator[None]:
    """Within it, :func:`check_rows` allows ``per_row`` rows out for each row in; None: any number.

    >>> with allowance(10, 2):
    ...     check_rows(20)
    ...     check_rows(21)
    Traceback (most recent call last):
    freshet.kernels.superbox.allowance.TooManyRows: more than 20 rows out of 10 rows in (max_rows_out_per_row = 2)
    """
    token = _MOST.set(math.inf if per_row is None else max(rows_in, 1) * per_row)
    try:
        yield
    except TooManyRows as error:
        raise TooManyRows(f"{error} out of {rows_in:,} rows in (max_rows_out_per_row = {per_row})") from None
    finally:
        _MOST.reset(token)


def check_rows(rows: int) -> None:
    """Raises if this number of rows is more than allowed."""
    most = _MOST.get()
    if rows > most:
        raise TooManyRows(f"more than {most:,.0f} rows")
