"""Results: what the engine is told of a unit, from the reports of its tasks."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from freshet.model import Chain, ChainResult, Operator, OperatorRun, SegmentFile, Unit, UnitResult
from freshet.model.scheduling.unit import NOTHING_KEPT, KeptCounts, Worths
from freshet.spark.worker.report import ChainReport, TaskReport
from freshet.sql import why_failed


@dataclass
class Outcome:
    """Gathers the results of the chains of a unit."""

    chains: Sequence[Chain]
    files: list[SegmentFile] = field(default_factory=list)
    results: dict[int, ChainResult] = field(default_factory=dict)
    """By the places of the chains."""
    kept: KeptCounts = NOTHING_KEPT
    worths: list[Worths] = field(default_factory=list)

    @property
    def busy(self) -> float:
        """Seconds in operators, as :func:`on_one_clock` counts them; the rest of the unit's time is overhead."""
        return sum([run.seconds for result in self.results.values() for run in result.operators])

    def take(self, place: int, part: ChainResult) -> None:
        """Takes the result of a chain, or of its next piece."""
        before = self.results.get(place)
        if before is not None:
            part = replace(
                part,
                operators=_joined(before.operators, part.operators),
                errors=before.errors + part.errors,
                dropped=added([*before.dropped, *part.dropped]),
                entered=before.entered,
            )
        whole = self.chains[place]
        self.results[place] = part if part.chain is whole else replace(part, chain=whole)

    def failed(self, places: Iterable[int], failure: str) -> None:
        """Takes the failure of connected chains."""
        for place in places:
            runs = tuple(OperatorRun(number, 0, 0, 0.0) for number in self.chains[place].nodes)
            self.results[place] = ChainResult(self.chains[place], 0, runs, failure=failure)

    def in_order(self, places: Iterable[int]) -> tuple[ChainResult, ...]:
        """The results of chains; raises if one is missing."""
        return tuple(self.results[place] for place in places)

    def result(self, unit: Unit, started: float, began: float, parts: dict[str, float], way: str) -> UnitResult:
        """What the engine is told of a unit that has just ended; raises if the result of a chain is missing.

        Args:
            unit: The unit.
            started: When it was started.
            began: The same on the stopwatch, :func:`time.perf_counter`.
            parts: Seconds by part.
            way: The way that it went.
        """
        chains = self.in_order(range(len(unit.chains)))
        overhead = max(time.perf_counter() - began - self.busy, 0.0)
        files, kept, worths = tuple(self.files), self.kept, tuple(self.worths)
        return UnitResult(unit, started, time.time(), chains, files, overhead, None, (), parts, way, kept, worths)

    def merge(self, other: Outcome) -> None:
        """Takes the results of other chains."""
        self.files += other.files
        self.results |= other.results
        self.kept = self.kept.plus(other.kept)
        self.worths += other.worths


def combine(chain: Chain, rows: int, report: ChainReport, strict: Sequence[Operator] = ()) -> ChainResult:
    """The result of a chain that this number of rows entered. Evaluation errors fail it if its operators are given as
    ``strict``."""
    failure, errors = report.failure, report.errors
    if failure is None and errors and strict:
        failure = why_failed(errors, rows, strict, report.raised)
    runs = []
    for number, rows_out, nanos in zip(chain.nodes, report.passed, report.nanos, strict=True):
        runs.append(OperatorRun(number, rows, rows_out, nanos / 1e9))
        rows = rows_out
    if failure is not None:
        return ChainResult(chain, 0, tuple(runs), errors=errors, failure=failure)
    arrivals = tuple([each / 1e6 for each in report.arrivals])
    return ChainResult(chain, rows, tuple(runs), arrivals, errors=errors, entered=report.entered, share=report.share)


def on_one_clock(tasks: Sequence[TaskReport]) -> list[TaskReport]:
    """Scales the times in reports to the clock of the worker that waits for the job.

    Tasks run side by side, so a job spends as long in operators as its longest task does. Each operator gets a share of
    that time, in proportion to what all tasks spent in it. So cost and overhead are both seconds that a unit keeps its
    worker, and policies may add them up and compare them with deadlines. (RT §4.1.3 learns costs on one processor,
    where there is no difference.)

    >>> chains = [(ChainReport(0, None, (1,), (nanos,)),) for nanos in (300, 100)]
    >>> tasks = [TaskReport(part, None, 0, chains[part]) for part in (0, 1)]
    >>> [task.chains[0].nanos for task in on_one_clock(tasks)]
    [(225,), (75,)]
    """
    spent = [sum([sum(report.nanos) for report in task.chains]) for task in tasks]
    if len(tasks) == 1 or not any(spent):
        return list(tasks)
    share = max(spent) / sum(spent)

    def scaled(report: ChainReport) -> ChainReport:
        return report._replace(nanos=tuple([int(nanos * share) for nanos in report.nanos]))

    return [replace(task, chains=tuple(map(scaled, task.chains))) for task in tasks]


def committed(task: TaskReport, written: Sequence[Sequence[str]], accepted: Collection[int]) -> SegmentFile | None:
    """A task's file with the members to commit; its other bytes mean nothing. Output for several streams is in the file
    once, but has a member for each. ``accepted`` has the places of the chains to commit, ``written`` their streams."""
    found = [(stream, each.member) for each in task.chains if each.chain in accepted for stream in written[each.chain]]
    found += [(each.stream, each.member) for each in task.states if each.chain in accepted]
    members = tuple((stream, *member) for stream, member in found if member is not None)
    return SegmentFile(task.file, task.bytes, members, task.synced) if task.file is not None and members else None


def _joined(runs: Sequence[OperatorRun], more: Sequence[OperatorRun]) -> tuple[OperatorRun, ...]:
    """Runs of a chain's operators. An operator that ends one job and begins the next has one run."""
    if runs and more and runs[-1].operator == more[0].operator:
        one, two = runs[-1], more[0]
        both = OperatorRun(one.operator, one.rows_in, two.rows_out, one.seconds + two.seconds)
        return (*runs[:-1], both, *more[1:])
    return (*runs, *more)


def added(changes: Iterable[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    """The rows of each stream, added up."""
    total: dict[str, int] = {}
    for stream, rows in changes:
        total[stream] = total.get(stream, 0) + rows
    return tuple(total.items())
