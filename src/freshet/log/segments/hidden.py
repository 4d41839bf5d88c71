"""Hidden columns: when a tuple arrived, and of answers of periodic queries also their release, window and quality."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from freshet.model import ARRIVAL, Instance

RELEASE: Final = "__release"
"""The release that an answer belongs to: its windows end before it."""
SINCE: Final = "__window_start"
"""Where the longest window of time of an answer begins; NULL if all its windows count rows."""
QUALITY: Final = "__quality"
"""What an answer is worth by the share of the tuples that was kept for it, from 0 to 1."""
_TIME: Final = pa.timestamp("us", tz="UTC")


class AnswerMark(NamedTuple):
    """What the rows of an answer have in common.

    Args:
        release: In microseconds: all rows of the answer bear it as their arrival.
        since: Where its longest window of time begins, in microseconds; negative: it has none.
        quality: What it is worth.
    """

    release: int
    since: int
    quality: float

    @classmethod
    def of(cls, one: Instance) -> AnswerMark:
        """That of an instance."""
        return cls(one.release, one.since, one.quality)


def show_hidden(table: pa.Table, arrival: bool, marks: Sequence[AnswerMark] | None) -> pa.Table:
    """Tuples with their hidden columns, or without them.

    Args:
        table: Tuples with their arrivals.
        arrival: Whether to show hidden columns.
        marks: Of the answers, by release; None: they are no answers of a periodic query. Answers whose record is
            forgotten have neither window nor quality.

    >>> table = pa.table({"n": [1, 2], ARRIVAL: [4_000_000, 8_000_000]})
    >>> show_hidden(table, False, None).column_names, show_hidden(table, True, None).column_names
    (['n'], ['n', '__arrival'])
    >>> shown = show_hidden(table, True, [AnswerMark(4_000_000, 1_000_000, 0.5)])
    >>> [(str(row["__release"])[14:19], row["__window_start"] and 1, row["__quality"]) for row in shown.to_pylist()]
    [('00:04', 1, 0.5), ('00:08', None, None)]
    """
    if not arrival:
        return table.drop_columns([ARRIVAL])
    if marks is None:
        return table
    arrivals = table.column(ARRIVAL).to_numpy()
    releases = np.array([each.release for each in marks], np.int64)
    places = np.searchsorted(releases, arrivals)
    known = places < len(releases)
    known[known] = releases[places[known]] == arrivals[known]
    at = np.where(known, places, 0)
    since = np.array([each.since for each in marks] or [-1], np.int64)[at]
    quality = np.array([each.quality for each in marks] or [0.0])[at]
    return (
        table.append_column(RELEASE, table.column(ARRIVAL).cast(_TIME))
        .append_column(SINCE, pa.array(since, mask=~known | (since < 0)).cast(_TIME))
        .append_column(QUALITY, pa.array(quality, mask=~known))
    )
