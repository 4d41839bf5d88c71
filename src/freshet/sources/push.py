"""Tuples that a Python program pushes."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from freshet.log import LogFull, Malformed
from freshet.log.intake.plain import is_missing
from freshet.log.intake.shown import shown
from freshet.model import FreshetError, Stream, UserError
from freshet.sources.options import Options
from freshet.sources.source import Batch

if TYPE_CHECKING:
    from freshet.log import Receipt
    from freshet.log.intake.intake import Rows

_FIRST_WAIT: Final = 0.01
_LONGEST_WAIT: Final = 0.5
_SAFE: Final = {str, bytes, bool, int, float, date}
"""Types that Arrow accepts in a column of objects."""

PushedRows: TypeAlias = pa.Table | pa.RecordBatch | Iterable[Mapping[str, Any]]
"""Rows as programs have them; a pandas DataFrame is possible, too."""


class Backpressure(FreshetError):
    """The log has no room at present. Nothing of the push was taken in; push the same rows again later."""


class PushOptions(Options):
    """Options of the source kind ``push``: it has none."""


class PushSource:
    """Takes rows from any thread of the program. When :meth:`push` returns, the rows are durable: they take effect
    exactly once, whatever happens to the process afterwards. Malformed and late rows are set aside like those of any
    other source; the receipt counts them."""

    def __init__(self, options: PushOptions, stream: Stream) -> None:
        self._stream, self._declared = stream.name, stream
        self._append: Callable[[Rows], Receipt] | None = None
        self._beat: Callable[[int], object] | None = None
        self._closed = threading.Event()

    def push(self, rows: PushedRows, *, block: bool = True, timeout: float | None = None) -> Receipt:
        """Appends rows to the stream.

        Args:
            rows: A list of mappings of column to value, a pyarrow Table or RecordBatch, or a pandas DataFrame (its
                index is left out, its missing values are NULL). They arrive together, now.
            block: Wait if the log has no room, instead of raising at once.
            timeout: Maximum wait in seconds; None: as long as it takes.

        Raises:
            Backpressure: The log has no room; nothing was taken in.
            FreshetError: The application is not running.
            UserError: The value cannot be read as rows.
        """
        taken = as_rows(rows)
        end = math.inf if timeout is None else time.monotonic() + timeout
        wait = _FIRST_WAIT
        while True:
            try:
                return self._running()(taken)
            except LogFull as full:
                left = end - time.monotonic() if block else 0.0
                if left <= 0.0:
                    raise Backpressure(str(full)) from None
            self._closed.wait(min(wait, left))
            wait = min(2 * wait, _LONGEST_WAIT)

    def heartbeat(self, time: datetime | float) -> None:
        """Says that event time has come this far although nothing was pushed, so that windows close. It decides whether
        rows that are pushed later are late.

        Args:
            time: A datetime (in the stream's zone if it names none), or seconds since the epoch.

        Raises:
            FreshetError: The application is not running.
        """
        from freshet.sources.times import event_seconds  # not before: a check of an application never needs it

        self._running()
        if self._beat is not None:
            self._beat(round(event_seconds(time, self._declared) * 1e6))

    def _running(self) -> Callable[[Rows], Receipt]:
        if self._append is None or self._closed.is_set():
            raise FreshetError(f"stream {self._stream} takes no pushes: its application is not running")
        return self._append

    def connect(self, append: Callable[[Rows], Receipt], beat: Callable[[int], object] | None = None) -> None:
        """Sets how rows and heartbeats (in microseconds) come into the log."""
        self._append, self._beat = append, beat

    def restore(self, position: Mapping[str, Any]) -> None:
        """Has nothing to continue from: the program that pushed knows what was acknowledged."""

    def poll(self, now: float) -> Batch | None:
        return None

    def next_due(self) -> float | None:
        return math.inf

    def close(self) -> None:
        self._closed.set()


def as_rows(rows: Any) -> Rows:
    """Rows of a program in a form that the log takes.

    >>> as_rows({"v": 1})
    Traceback (most recent call last):
    freshet.model.errors.UserError: push a list of rows, a pyarrow Table or RecordBatch, or a pandas DataFrame, not a
    dict (a single row is pushed as [row])
    """
    if isinstance(rows, pa.Table | pa.RecordBatch | list | tuple):
        return rows
    # It can only be a pandas frame if the program itself has loaded pandas.
    if "pandas" in sys.modules and isinstance(rows, sys.modules["pandas"].DataFrame):
        return _from_pandas(rows)
    if isinstance(rows, Iterable) and not isinstance(rows, Mapping | str | bytes) and not hasattr(rows, "columns"):
        return list(rows)
    single = " (a single row is pushed as [row])" if isinstance(rows, Mapping) else ""
    raise UserError(
        "push a list of rows, a pyarrow Table or RecordBatch, or a pandas DataFrame, "
        f"not a {type(rows).__name__}{single}"
    )


def _from_pandas(frame: Any) -> Rows:
    """A table, if Arrow may see the columns as they are. Otherwise it goes row by row: values that do not fit become
    dead letters, and the others do not."""
    names, columns = [_label(name) for name in frame.columns], [frame.iloc[:, place] for place in range(frame.shape[1])]
    try:
        return pa.table([_arrow(column) for column in columns], names=names)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        pass
    rows = list(zip(*map(_objects, columns), strict=True))
    if len(set(names)) < len(names):
        return [Malformed(shown(row), "a column of the frame appears twice") for row in rows]
    return [dict(zip(names, row, strict=True)) for row in rows]


def _label(name: Any) -> str:
    try:
        return str(name)
    except Exception:
        return shown(name)


def _arrow(column: Any) -> Any:
    """A column for Arrow; some mixtures of objects would crash Arrow.

    Raises:
        TypeError: Arrow must not see its values.
    """
    if column.dtype != object:
        return pa.array(column, from_pandas=True)
    values = column.tolist()
    types = set(map(type, values)) - {type(None)}
    if types != {str}:
        values = _objects(column)
        types = set(map(type, values)) - {type(None)}
    if len(types) > 1 or not types <= _SAFE:
        raise TypeError(f"column {column.name} holds objects")
    return pa.array(values)


def _objects(column: Any) -> list[Any]:
    """The values of a column; None for a missing one."""
    # Not column.notna(): that asks each value whether it equals itself, and some values fail at that.
    return [None if is_missing(value) or _is_nan(value) else value for value in column.astype(object).tolist()]


def _is_nan(value: Any) -> bool:
    return type(value) in (float, np.float64, np.float32) and value != value


KINDS: Final = {"push": (PushOptions, PushSource)}
