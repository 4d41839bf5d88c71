"""The batch answers of Table 2's queries over log minus ledger, by NumPy over whole windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from freshet.bench.periodic.table2 import Table2
from freshet.kernels.keeping import kept_mask
from freshet.log import Log, LogReader
from freshet.model import ARRIVAL, Instance, Keep, Train

_NEAR: Final = 1e-9
"""How far a mean may be off: sums depend on the order of their terms."""
_RANGE: Final = {"pairs": 4_000_000, "known": 2_000_000, "types": 1_000_000}


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


class AnswerCheck:
    """Compares answers with what a batch gives over log minus ledger.

    What an instance kept is committed with its answer; the ledger must have the same. An instance whose share is in its
    record, but not in the ledger, is wrong, whatever it answered.

    Args:
        log: Streams and outputs, kept whole.
        bed: The workload.
    """

    def __init__(self, log: Log | LogReader, bed: Table2) -> None:
        self._log, self._known = log, bed.known["id"].to_numpy()
        self._streams = {name: log.read(name, 0, log.end(name)) for name in bed.names}
        self._arrivals = {name: table[ARRIVAL].to_numpy() for name, table in self._streams.items()}
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
        if any((edge, ratio) not in self._ledger for edge, ratio in one.kept.items()):
            return False
        kind, _, stream = one.query.partition("_")
        output = self._outputs[one.query]
        given = output.slice(one.first, one.rows) if output is not None else None
        windows = [self._window(one, each, _RANGE[kind]) for each in self._streams_of(kind, stream)]
        return _COMPARED[kind](given, windows, self._known) if one.rows else not _ROWS[kind](windows, self._known)

    def _streams_of(self, kind: str, stream: str) -> list[str]:
        return [stream, self._after[stream]] if kind == "pairs" else [stream]

    def _window(self, one: Instance, stream: str, size: int) -> pa.Table:
        arrivals = self._arrivals[stream]
        first, end = np.searchsorted(arrivals, [one.release - size, one.release])
        edge = self._edge(one, stream)
        if edge in one.ends and one.ends[edge] != end:
            return self._streams[stream].slice(0, 0)  # it saw another end: the answer will differ
        ratio = one.kept.get(edge)
        window = self._streams[stream].slice(first, end - first)
        if ratio is None:
            return window
        kept = kept_mask(Train(stream, int(first), int(end), keep=Keep(ratio, edge)))
        return window.filter(pa.array(kept))

    def _edge(self, one: Instance, stream: str) -> str:
        """The name of the cursor over a stream: of a join, the edges are in the order of its streams."""
        edges = sorted(one.ends)
        if len(edges) == 1:
            return edges[0]
        return edges[0] if one.query.endswith(stream) else edges[1]


def _pairs(windows: Sequence[pa.Table], known: Any) -> Any:
    """All pairs (x, y), as sorted complex numbers: the values of tuples are all different."""
    (one, left), (other, right) = ((_keys(each), each["value"].to_numpy()) for each in windows)
    order = np.argsort(other, kind="stable")
    low, high = (np.searchsorted(other[order], one, side) for side in ("left", "right"))
    counts = high - low
    first = np.repeat(np.arange(len(one)), counts)
    place = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(low, counts)
    return np.sort(left[first] + 1j * right[order][place])


def _keys(table: pa.Table) -> Any:
    types = table["type"].combine_chunks().dictionary_encode() if table.num_rows else None
    if types is None:
        return np.empty(0, np.int64)
    types = types.chunk(0) if isinstance(types, pa.ChunkedArray) else types
    codes = np.array([int(name.as_py().rpartition("-")[2]) for name in types.dictionary])[types.indices.to_numpy()]
    return table["id"].to_numpy().astype(np.int64) * 100 + codes


def _same_pairs(given: pa.Table, windows: Sequence[pa.Table], known: Any) -> bool:
    return np.array_equal(np.sort(given["x"].to_numpy() + 1j * given["y"].to_numpy()), _pairs(windows, known))


def _values(windows: Sequence[pa.Table], known: Any) -> Any:
    return windows[0]["value"].to_numpy()[np.isin(windows[0]["id"].to_numpy(), known)]


def _same_statistics(given: pa.Table, windows: Sequence[pa.Table], known: Any) -> bool:
    values, row = _values(windows, known), given.to_pylist()[0]
    if not len(values):
        return False
    exact = (row["low"], row["high"]) == (values.min(), values.max())
    return exact and given.num_rows == 1 and bool(abs(row["mean"] - values.mean()) <= _NEAR)


def _same_counts(given: pa.Table, windows: Sequence[pa.Table], known: Any) -> bool:
    values, counts = np.unique(windows[0]["type"].to_numpy(zero_copy_only=False).astype(str), return_counts=True)
    rows = {row["type"]: row["n"] for row in given.to_pylist()}
    return rows == dict(zip(values.tolist(), counts.tolist(), strict=True)) and len(rows) == given.num_rows


_COMPARED: Final[dict[str, Callable[[pa.Table, Sequence[pa.Table], Any], bool]]] = {
    "pairs": _same_pairs, "known": _same_statistics, "types": _same_counts,
}  # fmt: skip
_ROWS: Final[dict[str, Callable[[Sequence[pa.Table], Any], int]]] = {
    "pairs": lambda windows, known: len(_pairs(windows, known)),
    "known": lambda windows, known: len(_values(windows, known)),
    "types": lambda windows, known: windows[0].num_rows,
}
"""Number of rows that a batch has, or of tuples that they are made of: an answer without rows needs none."""
