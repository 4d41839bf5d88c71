"""Results: what the engine is told of a unit, from the reports of its tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from freshet.model import Chain, ChainResult, OperatorRun, SegmentFile, Train, Work
from freshet.spark.installation import Installation
from freshet.spark.report import ChainReport, TaskReport, merge_samples

Place = tuple[str, int, Chain]


@dataclass
class Outcome:
    """Gathers the reports of a unit's jobs."""

    installation: Installation
    fail_on_error: AbstractSet[str]
    files: list[SegmentFile] = field(default_factory=list)
    busy: float = 0.0
    """Seconds in operators, as :func:`on_the_clock` counts them: what is left of the unit's time is overhead."""
    _results: dict[Place, ChainResult] = field(default_factory=dict)

    def succeeded(self, works: Sequence[Work], tasks: Sequence[TaskReport]) -> None:
        """Takes the reports of a job."""
        accepted = set()
        found = [{(report.work, report.chain): report for report in task.chains} for task in tasks]
        share = on_the_clock(tasks)
        for number, work in enumerate(works):
            for index, chain in enumerate(work.chains):
                reports = [chains[number, index] for chains in found]
                result = self.combine(chain, work.train, reports, share)
                states = [
                    state for task in tasks for state in task.states if (state.work, state.chain) == (number, index)
                ]
                if states:
                    result = replace(result, dropped=tuple((state.stream, state.dropped) for state in states))
                self._results[_place(work.train, chain)] = result
                if result.failure is None:
                    accepted.add((number, index))
        streams = {
            (number, index): self.installation.stream(chain.operators[-1])
            for number, work in enumerate(works)
            for index, chain in enumerate(work.chains)
        }
        self.files += [file for task in tasks if (file := _file(task, accepted, streams))]

    def staged(self, result: ChainResult, files: Sequence[SegmentFile]) -> None:
        """Takes a chain that ran as several jobs."""
        self._results[_place(result.train, result.chain)] = result
        if result.failure is None:
            self.files += files

    def failed(self, works: Sequence[Work], failure: str) -> None:
        """Takes the failure of a chain that runs by itself, or of chains that go together."""
        for work in works:
            for chain in work.chains:
                runs = tuple(OperatorRun(number, 0, 0, 0.0) for number in chain.operators)
                result = ChainResult(chain, work.train, 0, runs, failure=failure)
                self._results[_place(work.train, chain)] = result

    def chains(self, works: Sequence[Work]) -> tuple[ChainResult, ...]:
        """The results, in the order of the works."""
        return tuple(self._results[_place(work.train, chain)] for work in works for chain in work.chains)

    def merge(self, other: Outcome) -> None:
        """Takes the results of other works."""
        self.files += other.files
        self.busy += other.busy
        self._results |= other._results

    def combine(self, chain: Chain, train: Train, reports: Sequence[ChainReport], share: float) -> ChainResult:
        """What the tasks of one job did together in a chain; ``share`` is what a second of theirs is on the clock."""
        failure = next((report.failure for report in reports if report.failure), None)
        errors = sum(report.errors for report in reports)
        query = self.installation.query(chain.operators[0])
        if failure is None and errors and query in self.fail_on_error:
            failure = f"{errors} evaluation error{'s' if errors > 1 else ''} in {train.rows} tuples (on_error = fail)"
        rows_in = train.rows
        runs = []
        for position, number in enumerate(chain.operators):
            rows_out = sum(report.passed[position] for report in reports)
            seconds = share * sum(report.nanos[position] for report in reports) / 1e9
            self.busy += seconds
            runs.append(OperatorRun(number, rows_in, rows_out, seconds))
            rows_in = rows_out
        arrivals = merge_samples([(report.arrivals, report.rows) for report in reports])
        if failure is not None:
            return ChainResult(chain, train, 0, tuple(runs), errors=errors, failure=failure)
        seconds_of = tuple(arrival / 1e6 for arrival in arrivals)
        return ChainResult(chain, train, rows_in, tuple(runs), seconds_of, errors=errors)


def on_the_clock(tasks: Sequence[TaskReport]) -> float:
    """What a second that a task of a job spends in operators is on the clock of the worker that waits for the job.

    Tasks run side by side, so a job is in operators for as long as its longest task is, and operators get shares of
    that by the time that all tasks spent in them. So cost and overhead are both seconds that a unit keeps its worker,
    and policies may add them up and hold them against deadlines. (RT §4.1.3 learns costs on one processor, where there
    is no difference.)

    >>> long, short = (TaskReport(part, None, 0, (ChainReport(0, 0, None, (1,), (nanos,)),))
    ...                for part, nanos in ((0, 300), (1, 100)))
    >>> on_the_clock([long]), on_the_clock([long, long]), on_the_clock([long, short]), on_the_clock([])
    (1.0, 0.5, 0.75, 1.0)
    """
    nanos = [sum(sum(report.nanos) for report in task.chains) for task in tasks]
    return max(nanos) / sum(nanos) if any(nanos) else 1.0


def _file(
    task: TaskReport, accepted: AbstractSet[tuple[int, int]], streams: Mapping[tuple[int, int], str]
) -> SegmentFile | None:
    """The task's file with the outputs that are to be committed; the bytes of others stay and mean nothing."""
    members = tuple(
        (streams[report.work, report.chain], *report.member)
        for report in task.chains
        if report.member is not None and (report.work, report.chain) in accepted
    ) + tuple(
        (state.stream, *state.member)
        for state in task.states
        if state.member is not None and (state.work, state.chain) in accepted
    )
    return SegmentFile(task.file, task.bytes, members) if task.file is not None and members else None


def _place(train: Train, chain: Chain) -> Place:
    return train.stream, train.first, chain
