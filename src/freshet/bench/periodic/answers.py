"""The batch answers of Table 2's queries over log minus ledger, by NumPy over whole windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from freshet.bench.periodic.table2 import TYPES, Table2
from freshet.kernels.keeping import kept_mask
from freshet.log import Log, LogReader
from freshet.model import ARRIVAL, Instance, Keep, Train

_NEAR: Final = 1e-9
"""How far a mean may be off: sums depend on the order of their terms."""


class AnswersChecked(NamedTuple):
    """How many answers were compared, how many of them are wrong, and how many are from some of the tuples only."""

    checked: int = 0
    wrong: int = 0
    thinned: int = 0

    def plus(self, other: AnswersChecked) -> AnswersChecked:
        """Both together.

        >>> AnswersChecked(2, 1, 0).plus(AnswersChecked(3, 0, 1))
        AnswersChecked(checked=5, wrong=1, thinned=1)
        """
        return AnswersChecked(*(one + another for one, another in zip(self, other, strict=True)))


class _Tuples(NamedTuple):
    """Tuples of a stream, column by column; types by their place in :data:`TYPES`."""

    ids: Any
    values: Any
    types: Any

    @classmethod
    def of(cls, table: pa.Table) -> _Tuples:
        """All rows of a table."""
        types = pc.index_in(table["type"], pa.array(TYPES)).to_numpy()
        return cls(table["id"].to_numpy(), table["value"].to_numpy(), types)

    def part(self, first: int, end: int) -> _Tuples:
        """Those of a range."""
        return _Tuples(*(column[first:end] for column in self))

    def kept(self, mask: Any) -> _Tuples:
        """Those that a mask keeps."""
        return _Tuples(*(column[mask] for column in self))

    @property
    def keys(self) -> Any:
        """What they are joined by."""
        return self.ids.astype(np.int64) * len(TYPES) + self.types


class AnswerCheck:
    """Compares answers with what a batch gives over log minus ledger.

    What an instance kept is committed with its answer; the ledger must have the same. An instance whose share is in its
    record, but not in the ledger, is wrong, whatever it answered.

    Args:
        log: Streams and outputs, kept whole.
        bed: The workload.
    """

    def __init__(self, log: Log | LogReader, bed: Table2) -> None:
        self._log, self._bed, self._known = log, bed, bed.known["id"].to_numpy()
        self._arrivals: dict[str, Any] = {}
        self._streams: dict[str, _Tuples] = {}
        for name in bed.names:
            table = log.read(name, 0, log.end(name))
            self._arrivals[name], self._streams[name] = table[ARRIVAL].to_numpy(), _Tuples.of(table)
        self._after = dict(zip(bed.names, (*bed.names[1:], bed.names[0]), strict=True))
        self._outputs = {name: log.read(name, 0, log.end(name)) if log.end(name) else None for name in bed.texts}
        self._ledger = {(each.edge, each.ratio) for each in log.ledger() if each.kind == "thinned"}

    def all(self, instances: Sequence[Instance]) -> AnswersChecked:
        """Checks every answered instance."""
        answered = [each for each in instances if each.state == "answered"]
        wrong = sum(not self.is_right(each) for each in answered)
        return AnswersChecked(len(answered), wrong, sum(bool(each.kept) for each in answered))

    def is_right(self, one: Instance) -> bool:
        """Whether an answer is the batch answer over what the instance kept of its windows."""
        kind, _, stream = one.query.partition("_")
        size = self._bed.window(kind)
        if not all(self._is_told(one, each, size) for each in self._streams_of(kind, stream)):
            return False
        output = self._outputs[one.query]
        given = output.slice(one.first, one.rows) if output is not None else None
        windows = [self._window(one, each, size) for each in self._streams_of(kind, stream)]
        return _COMPARED[kind](given, windows, self._known) if one.rows else not _ROWS[kind](windows, self._known)

    def _streams_of(self, kind: str, stream: str) -> list[str]:
        return [stream, self._after[stream]] if kind == "pairs" else [stream]

    def _is_told(self, one: Instance, stream: str, size: int) -> bool:
        """Whether the ledger has what was left out of a window; of an empty one nothing is."""
        first, end, edge = *self._range(one, stream, size), self._edge(one, stream)
        return first == end or edge not in one.kept or (edge, one.kept[edge]) in self._ledger

    def _range(self, one: Instance, stream: str, size: int) -> tuple[int, int]:
        first, end = np.searchsorted(self._arrivals[stream], [one.release - size, one.release])
        return int(first), int(end)

    def _window(self, one: Instance, stream: str, size: int) -> _Tuples:
        first, end = self._range(one, stream, size)
        edge = self._edge(one, stream)
        if edge in one.ends and one.ends[edge] != end:
            return self._streams[stream].part(0, 0)  # it saw another end: the answer will differ
        ratio, window = one.kept.get(edge), self._streams[stream].part(first, end)
        if ratio is None:
            return window
        return window.kept(kept_mask(Train(stream, first, end, keep=Keep(ratio, edge))))

    def _edge(self, one: Instance, stream: str) -> str:
        """The name of the cursor over a stream: of a join, the edges are in the order of its streams."""
        edges = sorted(one.ends)
        if len(edges) == 1:
            return edges[0]
        return edges[0] if one.query.endswith(stream) else edges[1]


def _pairs(windows: Sequence[_Tuples], known: Any) -> Any:
    """All pairs (x, y), as sorted complex numbers: the values of tuples are all different."""
    left, right = windows
    one, other = left.keys, right.keys
    order = np.argsort(other)
    ordered = other[order]
    low, high = (np.searchsorted(ordered, one, side) for side in ("left", "right"))
    counts = high - low
    first = np.repeat(np.arange(len(one)), counts)
    place = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(low, counts)
    return np.sort(left.values[first] + 1j * right.values[order][place])


def _same_pairs(given: pa.Table, windows: Sequence[_Tuples], known: Any) -> bool:
    return np.array_equal(np.sort(given["x"].to_numpy() + 1j * given["y"].to_numpy()), _pairs(windows, known))


def _values(windows: Sequence[_Tuples], known: Any) -> Any:
    return windows[0].values[np.isin(windows[0].ids, known)]


def _same_statistics(given: pa.Table, windows: Sequence[_Tuples], known: Any) -> bool:
    values, row = _values(windows, known), given.to_pylist()[0]
    if not len(values):
        return False
    exact = (row["low"], row["high"]) == (values.min(), values.max())
    return exact and given.num_rows == 1 and bool(abs(row["mean"] - values.mean()) <= _NEAR)


def _same_counts(given: pa.Table, windows: Sequence[_Tuples], known: Any) -> bool:
    counts = np.bincount(windows[0].types, minlength=len(TYPES)).tolist()
    rows = {row["type"]: row["n"] for row in given.to_pylist()}
    expected = {name: count for name, count in zip(TYPES, counts, strict=True) if count}
    return rows == expected and len(rows) == given.num_rows


_COMPARED: Final[dict[str, Callable[[pa.Table, Sequence[_Tuples], Any], bool]]] = {
    "pairs": _same_pairs, "known": _same_statistics, "types": _same_counts,
}  # fmt: skip
_ROWS: Final[dict[str, Callable[[Sequence[_Tuples], Any], int]]] = {
    "pairs": lambda windows, known: len(_pairs(windows, known)),
    "known": lambda windows, known: len(_values(windows, known)),
    "types": lambda windows, known: len(windows[0].values),
}
"""Number of rows that a batch has, or of tuples that they are made of: an answer without rows needs none."""
