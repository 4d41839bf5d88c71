"""Distinct values and quantiles at boundaries; each has a state stream of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from freshet.kernels.folds.aggregates.calls import Detail
from freshet.kernels.folds.aggregates.partials import Count, valid_of
from freshet.kernels.folds.aggregates.sketch import buckets, rank
from freshet.kernels.folds.arrays import Ints, arrow, flat
from freshet.kernels.folds.groups import canonical, encode_groups
from freshet.kernels.folds.panes.boundaries import Places, SortedPanes
from freshet.kernels.folds.panes.rows import PaneRows
from freshet.kernels.folds.panes.stream import FIRST, LAST, NEWEST, PaneStream, numbers
from freshet.kernels.folds.sorting import Runs, previous, running_maximum, sort_rows
from freshet.model import ARRIVAL

_COUNT: Final = Count(None, pa.int64())


@dataclass(frozen=True)
class PaneDetail:
    """Values, or buckets of values, as additional keys of panes.

    Args:
        detail: The column, and whether its values or their buckets are kept.
        stream: The state stream that keeps them.
    """

    detail: Detail
    stream: PaneStream

    def rows(self, table: pa.Table, start: Ints, until: Ints | None, keys: Sequence[pa.Array]) -> PaneRows:
        """The tuples as rows of its stream, without those whose value is NULL."""
        values, arrivals = flat(table, self.detail.column), flat(table, ARRIVAL)
        valid = valid_of(values)
        if valid is not None:
            keep = pa.array(valid)
            values, arrivals, keys = values.filter(keep), arrivals.filter(keep), [key.filter(keep) for key in keys]
            start, until = start[valid], None if until is None else until[valid]
        if self.detail.what == "values":
            return PaneRows(start, until, [*keys, canonical(values)], [NEWEST.lift(arrivals)])
        more = arrow(buckets(values), pa.int64())
        return PaneRows(start, until, [*keys, more], [_COUNT.lift(values), NEWEST.lift(arrivals)])

    def answer(self, panes: pa.Table, codes: Ints, size: int, places: Places, shares: Sequence[float]) -> list[Ints]:
        """For each share the answer at each place: the number of distinct values, or the bucket of the quantile."""
        first, last, more = numbers(panes, FIRST), numbers(panes, LAST), flat(panes, self.stream.keys[-1])
        if self.detail.what == "values":
            return [_distinct(codes, size, more, first, last, places)] * len(shares)
        order = SortedPanes(codes, size, first, last)
        counts = self.stream.load(panes)[0].arrays[0]
        return _quantiles(order, numbers(panes, self.stream.keys[-1]), counts, places, shares)


def pane_detail(detail: Detail, keys: Sequence[pa.DataType], schema: pa.Schema) -> PaneDetail:
    """The detail of panes that are grouped by keys of these types."""
    if detail.what == "values":
        return PaneDetail(detail, PaneStream([*keys, schema.field(detail.column).type], ()))
    return PaneDetail(detail, PaneStream([*keys, pa.int64()], (_COUNT,)))


def _distinct(codes: Ints, size: int, values: pa.Array, first: Ints, last: Ints, places: Places) -> Ints:
    """Counts, for each place, the stretches of boundaries that cover it; stretches of one value do not overlap."""
    if not len(codes):
        return np.zeros(len(places.codes), np.int64)
    both, many = encode_groups([codes, values], len(codes))
    order = sort_rows(both, many, first)
    both, codes, first, last = both[order], codes[order], first[order], last[order]
    covered = previous(both, running_maximum(both, many, last), first - 1)
    first = np.maximum(first, covered + 1)
    some = first <= last
    begins, ends = (_sorted_runs(codes[some], size, each[some]) for each in (first, last))
    after = begins.first(places.codes, places.boundaries + 1)
    return after - ends.first(places.codes, places.boundaries)


def _sorted_runs(codes: Ints, size: int, values: Ints) -> Runs:
    order = sort_rows(codes, size, values)
    return Runs(codes[order], size, values[order])


def _quantiles(panes: SortedPanes, bucket: Ints, count: Ints, at: Places, shares: Sequence[float]) -> list[Ints]:
    """The bucket of each quantile at each place; 0 if there is no value."""
    bucket, count = bucket[panes.order], count[panes.order]
    results = [np.zeros(len(at.codes), np.int64) for _ in shares]
    for begin, end, index, ids in panes.windows(at).pairs():
        if not len(index):
            continue
        order = sort_rows(ids, end - begin, bucket[index])
        index, ids = index[order], ids[order]
        total = np.concatenate([np.zeros(1, np.int64), np.cumsum(count[index])])
        starts = total[np.searchsorted(ids, np.arange(end - begin))]
        sizes = total[np.searchsorted(ids, np.arange(end - begin), "right")] - starts
        for share, result in zip(shares, results, strict=True):
            found = np.searchsorted(total, starts + rank(share, sizes), "right") - 1
            result[begin:end] = np.where(sizes > 0, bucket[index[np.minimum(found, len(index) - 1)]], 0)
    return results
