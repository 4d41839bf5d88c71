"""Results: what the engine is told of a unit, from the reports of its tasks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace

from freshet.model import Chain, ChainResult, OperatorRun, SegmentFile
from freshet.spark.worker.report import ChainReport, TaskReport


@dataclass
class Outcome:
    """Gathers what came of the chains of a unit."""

    chains: Sequence[Chain]
    files: list[SegmentFile] = field(default_factory=list)
    results: dict[int, ChainResult] = field(default_factory=dict)
    """By the places of the chains."""

    @property
    def busy(self) -> float:
        """Seconds in operators, as :func:`on_one_clock` counts them: what is left of the unit's time is overhead."""
        return sum([run.seconds for result in self.results.values() for run in result.operators])

    def take(self, place: int, part: ChainResult) -> None:
        """Takes what came of a chain, or of its next piece."""
        before = self.results.get(place)
        if before is not None:
            part = replace(
                part,
                operators=_joined(before.operators, part.operators),
                errors=before.errors + part.errors,
                dropped=added([*before.dropped, *part.dropped]),
            )
        whole = self.chains[place]
        self.results[place] = part if part.chain is whole else replace(part, chain=whole)

    def failed(self, places: Iterable[int], failure: str) -> None:
        """Takes the failure of chains that hang together."""
        for place in places:
            runs = tuple(OperatorRun(number, 0, 0, 0.0) for number in self.chains[place].nodes)
            self.results[place] = ChainResult(self.chains[place], 0, runs, failure=failure)

    def in_order(self, places: Iterable[int]) -> tuple[ChainResult, ...]:
        """The results of chains, none of which may be missing."""
        return tuple(self.results[place] for place in places)

    def merge(self, other: Outcome) -> None:
        """Takes the results of other chains."""
        self.files += other.files
        self.results |= other.results


def combine(chain: Chain, rows: int, report: ChainReport, is_strict: bool = False) -> ChainResult:
    """What came of a chain into which so many rows came; evaluation errors are a failure where it ``is_strict``."""
    failure, errors = report.failure, report.errors
    if failure is None and errors and is_strict:
        failure = f"{errors} evaluation error{'s' if errors > 1 else ''} in {rows} tuples (on_error = fail)"
    runs = []
    for number, rows_out, nanos in zip(chain.nodes, report.passed, report.nanos, strict=True):
        runs.append(OperatorRun(number, rows, rows_out, nanos / 1e9))
        rows = rows_out
    if failure is not None:
        return ChainResult(chain, 0, tuple(runs), errors=errors, failure=failure)
    return ChainResult(chain, rows, tuple(runs), tuple([each / 1e6 for each in report.arrivals]), errors=errors)


def on_one_clock(tasks: Sequence[TaskReport]) -> list[TaskReport]:
    """Reports in which a second of a task is one on the clock of the worker that waits for the job.

    Tasks run side by side, so a job is in operators for as long as its longest task is, and operators get shares of
    that by the time that all tasks spent in them. So cost and overhead are both seconds that a unit keeps its worker,
    and policies may add them up and hold them against deadlines. (RT §4.1.3 learns costs on one processor, where there
    is no difference.)

    >>> chains = [(ChainReport(0, None, (1,), (nanos,)),) for nanos in (300, 100)]
    >>> tasks = [TaskReport(part, None, 0, chains[part]) for part in (0, 1)]
    >>> [task.chains[0].nanos for task in on_one_clock(tasks)]
    [(225,), (75,)]
    """
    spent = [sum([sum(report.nanos) for report in task.chains]) for task in tasks]
    if len(tasks) == 1 or not any(spent):
        return list(tasks)
    share = max(spent) / sum(spent)
    return [replace(task, chains=tuple([_scaled(report, share) for report in task.chains])) for task in tasks]


def _scaled(report: ChainReport, share: float) -> ChainReport:
    return report._replace(nanos=tuple([int(nanos * share) for nanos in report.nanos]))


def committed(task: TaskReport, chains: Sequence[Chain], accepted: Collection[int]) -> SegmentFile | None:
    """A task's file with what is to be committed; other bytes stay and mean nothing. What goes to several streams is
    in it once, and a member for each. ``accepted`` are the places of the chains that are to be committed."""
    members = [
        (stream, *report.member)
        for report in task.chains
        if report.member is not None and report.chain in accepted
        for stream in chains[report.chain].writes
    ]
    members += [
        (state.stream, *state.member) for state in task.states if state.member is not None and state.chain in accepted
    ]
    return SegmentFile(task.file, task.bytes, tuple(members)) if task.file is not None and members else None


def _joined(runs: Sequence[OperatorRun], more: Sequence[OperatorRun]) -> tuple[OperatorRun, ...]:
    """Runs of a chain's operators; one that ran in two jobs, at the end of one and the begin of the next, is one."""
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
