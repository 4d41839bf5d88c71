"""Sliding aggregates over the same tuples and with the same keys: each tuple is read once for all of them.

Tuples are merged once into short stretches of time, so that the panes of every aggregate consist of whole stretches.
The length of a stretch is the greatest common divisor of all slides and sizes. A stretch keeps every partial that any
aggregate needs, once. From then on each aggregate works alone, over far fewer rows. (Paired windows over common panes,
as in S. Krishnamurthy et al., "On-the-fly sharing for streamed aggregation", SIGMOD 2006.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import gcd
from typing import Final

import numpy as np
import pyarrow as pa

from freshet.kernels.folds.aggregates.calls import Detail
from freshet.kernels.folds.aggregates.partials import Partial
from freshet.kernels.folds.arrays import flat, select
from freshet.kernels.folds.groups import canonical
from freshet.kernels.folds.panes.details import PaneDetail, pane_detail
from freshet.kernels.folds.panes.panes import CompiledPanes
from freshet.kernels.folds.panes.rows import PaneRows
from freshet.kernels.folds.times import micros
from freshet.model import ARRIVAL, Panes

_WORTH: Final = 0.5
"""If merging leaves a larger share of the rows than this, it costs more than it saves."""

Names = Mapping[str, str]
"""Columns of one aggregate's input, with their names in the common input."""


class CommonPanes:
    """Several aggregates over one input.

    Args:
        members: Each with the names of its columns; all with the same time and keys, and windows of a known size.
        schema: Columns of the common input.
    """

    def __init__(self, members: Sequence[tuple[CompiledPanes, Names]], schema: pa.Schema) -> None:
        first, names = members[0]
        operator = first.operator
        self._members: Final = members
        self._time: Final = None if operator.validity.time is None else names[operator.validity.time]
        self._keys: Final = sorted(names[key] for key in operator.keys)
        sizes = [fold.operator.validity.size or 0 for fold, _ in members]
        self._width: Final = common_width([fold.operator for fold, _ in members])
        self._latest: Final = np.iinfo(np.int64).max - 2 * max(sizes)
        self._partials: Final = tuple(
            dict.fromkeys(_renamed(each, names) for fold, names in members for each in fold.partials)
        )
        kinds = [schema.field(key).type for key in self._keys]
        wanted = dict.fromkeys(_detail(each, names) for fold, names in members for each in fold.details)
        self._details: Final = {detail: pane_detail(detail, kinds, schema) for detail in wanted}

    def make(self, table: pa.Table) -> list[list[PaneRows]] | None:
        """For each aggregate the rows of each of its state streams; None if merging would not pay."""
        start, known = micros(table, self._time)
        if known is not None and not known.all():
            table, start = select(table, known), start[known]
        if not len(start) or int(start.max()) > self._latest:
            return None
        keys = [canonical(flat(table, key)) for key in self._keys]
        lifted = [each.lift(flat(table, each.column or ARRIVAL)) for each in self._partials]
        cells = PaneRows(start, None, keys, lifted).merged(self._width, self._partials, _WORTH * len(start))
        if cells is None:
            return None
        details = {
            detail: _merged(detail_rows, each, self._width)
            for detail, each in self._details.items()
            for detail_rows in [each.rows(table, start, None, keys)]
        }
        return [self._rows_of(fold, names, cells, details) for fold, names in self._members]

    def _rows_of(
        self, fold: CompiledPanes, names: Names, cells: PaneRows, details: Mapping[Detail, PaneRows]
    ) -> list[PaneRows]:
        """The part of the common rows that one aggregate needs."""
        places = [self._keys.index(names[key]) for key in fold.operator.keys]
        partials = [cells.partials[self._partials.index(_renamed(each, names))] for each in fold.partials]
        rows = [PaneRows(cells.start, None, [cells.keys[place] for place in places], partials)]
        for each in fold.details:
            some = details[_detail(each, names)]
            keys = [*(some.keys[place] for place in places), some.keys[-1]]
            rows.append(PaneRows(some.start, None, keys, some.partials))
        return rows


def common_width(folds: Sequence[Panes]) -> int:
    """Length, in microseconds, of the stretches into which tuples of several sliding aggregates can be merged.

    >>> from freshet.model import Lifetime
    >>> common_width([Panes("a", Lifetime("ts", 60), 20), Panes("b", Lifetime("ts", 40), 40)])
    20
    """
    return gcd(*(length for each in folds for length in (each.validity.size or 0, each.slide, each.offset)))


def _merged(rows: PaneRows, detail: PaneDetail, width: int) -> PaneRows:
    merged = rows.merged(width, detail.stream.partials, np.inf)
    assert merged is not None
    return merged


def _renamed(partial: Partial, names: Names) -> Partial:
    # A partial without a column, or over the arrival, is about the tuple itself.
    column = partial.column if partial.column is None else names.get(partial.column, partial.column)
    return replace(partial, column=column)


def _detail(each: PaneDetail, names: Names) -> Detail:
    return replace(each.detail, column=names[each.detail.column])
