"""Chains with folds or lookups that need Spark's own form somewhere: one job after the other, each over what the last
one wrote. So do chains with a join that is shuffled, or a train that is merged in parts.

Nothing between two stages is committed; files in the middle that hold no state become orphans.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from freshet.model import Chain, ChainResult, OperatorRun, Segment, SegmentFile, State, Train, Work, state_stream
from freshet.spark.installation import Form, Installation
from freshet.spark.report import ChainReport, StateReport, TaskReport
from freshet.spark.results import Outcome, on_the_clock
from freshet.spark.shuffled import without_other

Run = Callable[[Form, tuple[Work, ...], tuple[State, ...]], list[TaskReport]]


@dataclass(frozen=True, slots=True)
class Spread:
    """What of a chain does not run in one task.

    Args:
        joins: Joins that are shuffled, by their numbers.
        parted: Whether it runs in parts up to its first aggregate.
    """

    joins: Collection[int] = ()
    parted: bool = False

    def __bool__(self) -> bool:
        return bool(self.joins) or self.parted


@dataclass
class Stages:
    """Runs the chains of one query that share folds, in their order.

    Args:
        installation: Knows the stages of a chain.
        outcome: Gets the results.
        states: States of the folds; they move on from job to job.
        run: Runs one job.
        spread: Says what of a chain does not run in one task, over a train and with these states.
    """

    installation: Installation
    outcome: Outcome
    states: dict[str, State]
    run: Run
    spread: Callable[[Chain, Train, Mapping[str, State]], Spread] = lambda chain, train, states: Spread()
    _dropped: dict[str, int] = field(default_factory=dict)

    def chains(self, works: Sequence[Work]) -> None:
        """Runs all chains; only the last one through a fold closes windows."""
        pairs = [(work.train, chain) for work in works for chain in work.chains]
        last = {
            fold: number for number, (_, chain) in enumerate(pairs) for fold in self.installation.folds(chain.operators)
        }
        results = []
        for number, (train, chain) in enumerate(pairs):
            closing = {fold for fold, place in last.items() if place == number}
            results.append(self._chain(train, chain, closing))
        failure = next((result.failure for result, _ in results if result.failure), None)
        for result, files in results:
            # What became of the states goes with the outputs: nothing of a query that failed is kept.
            self.outcome.staged(replace(result, failure=failure, dropped=()) if failure else result, files)

    def _chain(self, whole: Train, chain: Chain, closing: set[str]) -> tuple[ChainResult, list[SegmentFile]]:
        train = whole
        runs: list[OperatorRun] = []
        files: list[SegmentFile] = []
        arrivals: Sequence[float] | np.ndarray = ()
        errors = 0
        place = 0
        spread = self.spread(chain, whole, self.states)
        for form, numbers in self.installation.stages_around(chain.operators, spread.joins, spread.parted):
            place += len(numbers) - (form == "parted")
            if not train.rows and not self.installation.folds(numbers):
                arrivals = ()
                runs += [OperatorRun(number, 0, 0, 0.0) for number in numbers]
                train = replace(train, stream=self.installation.stream(numbers[-1]))
                continue
            piece = Chain(tuple(numbers))
            states = self._states(numbers, closing)
            if form == "parted":
                states = tuple(State(state.fold, (), state.before, state.before) for state in states)
            reports = self.run(form, (Work(train, (piece,)),), states)
            result = self._combine(piece, train, reports)
            runs = _joined(runs, result.operators)
            errors += result.errors
            arrivals = result.arrivals
            if result.failure is not None:
                return ChainResult(chain, whole, 0, tuple(runs), errors=errors, failure=result.failure), []
            self._move(reports)
            if form == "shuffled":
                kept, seconds = self._remember(train, numbers[0], closing)
                files += kept
                runs[-1] = replace(runs[-1], seconds=runs[-1].seconds + seconds)
            train = _output(self.installation.stream(numbers[-1]), reports)
            is_last = place == len(chain.operators)
            files += [file for report in reports if (file := _file(report, train.stream if is_last else None))]
        done = ChainResult(chain, whole, train.rows, tuple(runs), arrivals, errors=errors)
        folds = [fold for fold in self.installation.folds(chain.operators) if fold in closing]
        dropped = tuple((name, rows) for name, rows in self._dropped.items() if name.rpartition(".")[0] in folds)
        return replace(done, dropped=dropped), files

    def _combine(self, piece: Chain, train: Train, reports: Sequence[TaskReport]) -> ChainResult:
        return self.outcome.combine(piece, train, [_only(report) for report in reports], on_the_clock(reports))

    def _remember(self, train: Train, join: int, closing: set[str]) -> tuple[list[SegmentFile], float]:
        """Brings the own side of a join whose pairs were made by a shuffle up to date; files, and seconds."""
        states = without_other(self._states([join], closing), self.installation.side(join)[1])
        piece = Chain((join,))
        reports = self.run("vectorised", (Work(train, (piece,)),), states)
        failure = next((_only(report).failure for report in reports if _only(report).failure), None)
        if failure is not None:
            raise RuntimeError(failure)
        self._move(reports)
        [run] = self._combine(piece, train, reports).operators
        return [file for report in reports if (file := _file(report, None))], run.seconds

    def _states(self, numbers: Sequence[int], closing: set[str]) -> tuple[State, ...]:
        folds = self.installation.folds(numbers)
        return tuple(
            state if fold in closing else replace(state, after=state.before)
            for fold, state in self.states.items()
            if fold in folds
        )

    def _move(self, reports: Sequence[TaskReport]) -> None:
        """Brings the states up to what a job has made of them."""
        for report in reports:
            for each in report.states:
                fold = each.stream.rpartition(".")[0]
                self._dropped[each.stream] = self._dropped.get(each.stream, 0) + each.dropped
                self.states[fold] = _moved(self.states[fold], each, report.file, self.installation.states(fold))


def _joined(runs: Sequence[OperatorRun], more: Sequence[OperatorRun]) -> list[OperatorRun]:
    """Runs of a chain's operators; one that ran in two jobs, at the end of one and the begin of the next, is one."""
    if runs and more and runs[-1].operator == more[0].operator:
        one, two = runs[-1], more[0]
        both = OperatorRun(one.operator, one.rows_in, two.rows_out, one.seconds + two.seconds)
        return [*runs[:-1], both, *more[1:]]
    return [*runs, *more]


def _only(report: TaskReport) -> ChainReport:
    [chain] = report.chains
    return chain


def _moved(state: State, change: StateReport, file: str | None, streams: int) -> State:
    ranges = state.ranges or tuple(Train(state_stream(state.fold, number), 0, 0) for number in range(streams))
    return replace(
        state, ranges=tuple(_grown(one, change, file) if one.stream == change.stream else one for one in ranges)
    )


def _grown(old: Train, change: StateReport, file: str | None) -> Train:
    first = old.first + change.dropped
    segments = tuple(segment for segment in old.segments if segment.end > first)
    if change.member is None or file is None:
        return Train(old.stream, first, old.end, segments)
    rows, position, length, arrival, last = change.member
    new = Segment(old.stream, old.end, rows, 0, arrival, last, file, position, length)
    return Train(old.stream, first, new.end, (*segments, new))


def _output(stream: str, reports: Sequence[TaskReport]) -> Train:
    """What the tasks of a job wrote, as a train."""
    segments: list[Segment] = []
    end = 0
    for report in reports:
        member = _only(report).member
        if member is not None and report.file is not None:
            rows, position, length, arrival, last = member
            segments.append(Segment(stream, end, rows, 0, arrival, last, report.file, position, length))
            end += rows
    return Train(stream, 0, end, tuple(segments))


def _file(report: TaskReport, stream: str | None) -> SegmentFile | None:
    """The members of a task's file that are to stay: those of states, and of the last stage its output."""
    members = [(state.stream, *state.member) for state in report.states if state.member is not None]
    member = _only(report).member
    if stream is not None and member is not None:
        members.insert(0, (stream, *member))
    return SegmentFile(report.file, report.bytes, tuple(members)) if report.file is not None and members else None
