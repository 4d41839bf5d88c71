"""Reports: what a task tells the driver. Only files that a report names are ever committed."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, starmap
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from freshet.log.store.private import write_private
from freshet.model.scheduling.unit import NOTHING_KEPT, KeptCounts, Worths
from freshet.spark.driver.failures import no_blame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

REPORT_COLUMNS: Final = "report string"
_RANKS: Final = 17
# The gateway to the JVM sends an answer in pieces of 8,192 characters, and the kernel waits 40 ms between two of them
# for an acknowledgement; reading a file is quicker.
_LONGEST_ANSWER: Final = 6000


WrittenRange = tuple[int, int, int, int, int]
"""Rows, position, length, first arrival and last arrival of a part of a segment file."""


class ChainReport(NamedTuple):
    """What one chain (by its place in the job) did in one task.

    ``member`` is its output in the task's file. ``passed`` has the rows that came out of each operator, ``nanos`` the
    time spent in each. ``arrivals`` are arrival times of the output at evenly spaced ranks. ``entered`` has the rows
    that came in at each port, if not all tuples of its trains were kept. ``share`` is how much of what was to be kept
    was read, if the time of an instance was over before. ``raised`` is what one of the user's functions raised, if
    evaluation errors came from there.
    """

    chain: int
    member: WrittenRange | None
    passed: tuple[int, ...]
    nanos: tuple[int, ...]
    arrivals: tuple[int, ...] = ()
    errors: int = 0
    failure: str | None = None
    entered: tuple[int, ...] = ()
    share: float = 1.0
    raised: str = ""

    @classmethod
    def together(cls, reports: Sequence[ChainReport], operators: int) -> ChainReport:
        """What several tasks did in a chain with this number of operators.

        >>> ChainReport.together([ChainReport(0, None, (2, 1), (7, 8), (3,)), ChainReport(0, None, (4, 0), (1, 1))], 2)
        ChainReport(chain=0, member=None, passed=(6, 1), nanos=(8, 9), arrivals=(3,), errors=0, ...)
        """
        if len(reports) == 1:
            return reports[0]
        nothing = (0,) * operators
        return cls(
            0,
            None,
            tuple(map(sum, zip(nothing, *(report.passed for report in reports), strict=True))),
            tuple(map(sum, zip(nothing, *(report.nanos for report in reports), strict=True))),
            merge_samples([(report.arrivals, report.passed[-1]) for report in reports]),
            sum(report.errors for report in reports),
            next((report.failure for report in reports if report.failure), None),
            tuple(map(sum, zip(*(report.entered for report in reports if report.entered), strict=True))),
            raised=next((report.raised for report in reports if report.raised), ""),
        )


class StateReport(NamedTuple):
    """How one state stream of a fold changes: it loses ``dropped`` rows at its low end, and gains ``member``."""

    chain: int
    stream: str
    dropped: int
    member: WrittenRange | None


@dataclass(frozen=True, slots=True)
class TaskReport:
    """What one task did; ``file`` is None if no tuple came through.

    >>> report = TaskReport(0, "u-0-7.arrows", 640, (ChainReport(0, (1, 0, 640, 5, 5), (1,), (900,), (5,)),))
    >>> read_reports(f"[[{report.text()}]]") == [report]
    True
    """

    part: int
    file: str | None
    bytes: int
    chains: tuple[ChainReport, ...]
    states: tuple[StateReport, ...] = ()
    kept: KeptCounts = NOTHING_KEPT
    synced: bool = True
    """Whether its file is durable; if not, the driver syncs it with the others of a commit."""
    worths: tuple[Worths, ...] = ()

    def text(self) -> str:
        """As JSON: a text crosses the JVM faster than nested columns do."""
        fields = [self.part, self.file, self.bytes, self.chains, self.states, self.kept, self.synced, self.worths]
        return json.dumps(fields, separators=(",", ":"))


def report_row(text: str, file: Path, tasks: int) -> pa.RecordBatch:
    """The one row that a task returns: its report, or if that is long the name of a file that holds it. No other
    attempt may use that name."""
    if len(text) > _LONGEST_ANSWER // tasks:
        write_private(file, text)
        text = json.dumps(str(file))
    return pa.RecordBatch.from_arrays([pa.array([text], pa.string())], names=["report"])


def rows_of(plan: DataFrame) -> str:
    """Runs a plan; returns its rows as Java prints a list of them, ``[[report], [report]]``, which is JSON.

    Both ``toArrow`` and ``collect`` open a socket for every job, and the JVM remembers the path of every Unix domain
    socket for as long as it lives, to delete it on exit. This way is quicker, too.
    """
    rows: str = plan._jdf.collectAsList().toString()
    return rows


def read_reports(rows: str) -> list[TaskReport]:
    """The reports in the rows of a job's tasks, in the order of the train."""
    return in_order(map(report_of, contents(rows)))


def in_order(reports: Iterable[TaskReport]) -> list[TaskReport]:
    """The reports of a job's tasks in the order of the train."""
    return sorted(reports, key=lambda report: report.part)


def contents(rows: str) -> list[Any]:
    """What the tasks of a job told, each in one row (see :func:`report_row`)."""
    return [_content(told) for (told,) in json.loads(rows)]


def _content(told: Any) -> Any:
    if not isinstance(told, str):
        return told
    with no_blame("the report of a task cannot be read"):
        text = Path(told).read_text(encoding="utf-8")
        Path(told).unlink()
    return json.loads(text)


def sample(arrivals: np.ndarray) -> tuple[int, ...]:
    """Arrival times at evenly spaced ranks, the earliest and the latest among them; a single one if all are equal.

    >>> sample(np.array([3, 1, 2])), sample(np.array([5, 5]))
    ((1, 2, 3), (5,))
    >>> sample(np.arange(1001))[:3], len(sample(np.arange(1001)))
    ((0, 62, 125), 17)
    """
    if not len(arrivals):
        return ()
    # Outputs of queries over several inputs need not be in order.
    if (arrivals[1:] < arrivals[:-1]).any():
        arrivals = np.sort(arrivals)
    if arrivals[0] == arrivals[-1]:
        # One rank says as much as seventeen, and a unit may have a thousand chains.
        return (int(arrivals[0]),)
    if len(arrivals) > _RANKS:
        arrivals = arrivals[np.arange(_RANKS) * (len(arrivals) - 1) // (_RANKS - 1)]
    return tuple(arrivals.tolist())


def merge_samples(samples: Sequence[tuple[tuple[int, ...], int]]) -> tuple[int, ...]:
    """One sample of several (sample, number of tuples it stands for); ends are exact, ranks between them nearly so.

    >>> merge_samples([((1, 2), 2), ((3, 4), 2)]), merge_samples([((5,), 9), ((5,), 3)])
    ((1, 2, 3, 4), (5,))
    """
    full = [(sample, count) for sample, count in samples if sample]
    if len(full) <= 1:
        return full[0][0] if full else ()
    # Plain Python: for a few dozen numbers NumPy takes ten times as long, and a unit may have hundreds of chains.
    weighted = sorted((value, count / len(sample)) for sample, count in full for value in sample)
    if weighted[0][0] == weighted[-1][0]:
        return (weighted[0][0],)
    ends = list(accumulate(weight for _, weight in weighted))
    total = sum(count for _, count in full)
    number = min(total, _RANKS)
    ranks = (place * (total - 1) / (number - 1) for place in range(1, number - 1))
    inner = (weighted[min(bisect_right(ends, rank), len(ends) - 1)][0] for rank in ranks)
    return (weighted[0][0], *inner, weighted[-1][0])


def report_of(content: Any) -> TaskReport:
    """A report from the list that :meth:`TaskReport.text` writes."""
    part, file, size, chains, states, kept, synced, worths = content
    found = tuple(starmap(_chain, chains)), tuple(starmap(_state, states))
    told = tuple(Worths(edge, tuple(values), rows) for edge, values, rows in worths)
    return TaskReport(part, file, size, *found, KeptCounts(*kept), synced, told)


def _chain(
    chain: int, member: Any, passed: Any, nanos: Any, arrivals: Any, errors: int, failure: str | None, *rest: Any
) -> ChainReport:
    whole = member and tuple(member), tuple(passed), tuple(nanos), tuple(arrivals)
    entered, share, raised = rest
    return ChainReport(chain, *whole, errors, failure, tuple(entered), share, raised)


def _state(chain: int, stream: str, dropped: int, member: Any) -> StateReport:
    return StateReport(chain, stream, dropped, member and tuple(member))
