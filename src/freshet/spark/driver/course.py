"""The course of a unit: its jobs one after the other, each over trains and over the output of earlier jobs.

Nothing is committed between two jobs; intermediate files without state become orphans.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import replace

from freshet.model import Chain, ChainResult, Input, Operator, Segment, State, Train, Unit
from freshet.model.scheduling.unit import given_by
from freshet.spark.driver.forms import Form
from freshet.spark.driver.installation import Installation
from freshet.spark.driver.jobs import Job
from freshet.spark.driver.planning import Piece, jobs
from freshet.spark.driver.results import Outcome, added, combine, committed, on_one_clock
from freshet.spark.worker.report import ChainReport, StateReport, TaskReport, WrittenRange

Reports = list[TaskReport]
"""What the tasks of a job told, in the order of the train."""
JobCourse = Generator[Job, Reports, Outcome]
"""Gives out one job after the other, takes the reports of each, and returns what came of all."""


class Course:
    """Runs pieces of a unit, each after those that it reads. An evaluation error fails a query that is ``strict``.

    It does not know who runs its jobs: a thread that waits for each, or workers that answer later.
    """

    def __init__(
        self,
        unit: Unit,
        pieces: Sequence[Piece],
        installation: Installation,
        strict: frozenset[str],
    ) -> None:
        self._unit, self._pieces, self._installed, self._strict = unit, pieces, installation, strict
        self._states = {state.fold: state for state in unit.states}
        self._lasts = {piece.place: number for number, piece in enumerate(pieces)}
        self._outcome = Outcome(unit.chains)
        self._failures: dict[int, str] = {}
        self._given: dict[int, Train] = {}
        """What pieces gave to pieces of later jobs."""

    def run(self, submit: Callable[[Job], Reports]) -> Outcome:
        """Runs all jobs, and waits for each of them."""
        course = self.jobs()
        try:
            job = next(course)
            while True:
                job = course.send(submit(job))
        except StopIteration as end:
            outcome: Outcome = end.value
            return outcome

    def jobs(self) -> JobCourse:
        """All jobs, one after the other."""
        planned = jobs(self._pieces)
        kept: set[int] = set()
        for _, numbers in planned[1:]:
            read = {each for number in numbers for each in _places(self._pieces[number].chain)}
            kept |= read.difference(numbers)
        for form, numbers in planned:
            yield from self._job(form, self._without_failed(numbers), kept)
        self._outcome.in_order(piece.place for piece in self._pieces)  # raises if one is missing
        return self._outcome

    def _without_failed(self, numbers: Iterable[int]) -> list[int]:
        """The pieces that can run; the others fail because a piece that they read has failed."""
        if not self._failures:
            return list(numbers)
        left = []
        for number in numbers:
            piece = self._pieces[number]
            failure = next((self._failures[each] for each in _places(piece.chain) if each in self._failures), None)
            if failure is None:
                left.append(number)
            else:
                self._failures[number] = failure
                self._outcome.take(piece.place, ChainResult(piece.chain, 0, (), failure=failure))
        return left

    def _job(self, form: Form, numbers: Sequence[int], kept: set[int]) -> Generator[Job, Reports, None]:
        if not numbers:
            return
        places = {number: place for place, number in enumerate(numbers)}
        chains = tuple(self._bound(number, places, kept) for number in numbers)
        folds = [self._installed.folds(chain.nodes) for chain in chains]
        if not any(folds) and not any(chain.rows for chain in chains):
            reports: Reports = []
        elif form == "shuffled":
            reports = yield from self._shuffle(chains[0])
        else:
            pieces = [self._pieces[number] for number in numbers]
            parted = {fold for piece, some in zip(pieces, folds, strict=True) if piece.parted for fold in some}
            # Merging in parts neither reads the state nor lets time pass.
            found = [self._states[fold] for some in folds for fold in some]
            states = tuple(
                replace(each, ranges=(), after=each.before, rewrites=()) if each.fold in parted else each
                for each in found
            )
            reports = on_one_clock((yield Job(form, chains, states, tuple(sorted(parted)))))
        self._take(numbers, chains, reports)
        for number in kept.intersection(numbers):
            self._give(number, reports, places[number])

    def _bound(self, number: int, places: dict[int, int], kept: set[int]) -> Chain:
        """The chain of a piece with the inputs of its job; if a later job reads it, it writes to a train for that."""
        chain = self._pieces[number].chain
        writes = (*chain.writes, self._name(number)) if number in kept else chain.writes
        if number not in kept and not _places(chain):
            return chain

        def bound(each: Input) -> Input:
            return each if isinstance(each, Train) else places[each] if each in places else self._given[each]

        return replace(chain, inputs=tuple(map(bound, chain.inputs)), writes=writes)

    def _name(self, number: int) -> str:
        return f"{self._unit.id}.{number}"

    def _take(self, numbers: Sequence[int], chains: Sequence[Chain], tasks: Sequence[TaskReport]) -> None:
        """Takes the reports of a job: results, states and files."""
        for task in tasks:
            self._outcome.kept = self._outcome.kept.plus(task.kept)
            self._outcome.worths += task.worths
        found = [{report.chain: report for report in task.chains} for task in tasks]
        states = _states_by_chain(tasks)
        results: list[ChainResult] = []
        for place, (number, chain) in enumerate(zip(numbers, chains, strict=True)):
            before = [results[each] for each in _places(chain)]
            report = ChainReport.together([some[place] for some in found if place in some], len(chain.nodes))
            entered = sum(report.entered) if report.entered else chain.rows + sum([each.rows_out for each in before])
            result = combine(chain, entered, report, self._strict_operators(chain) if report.errors else ())
            failures = [each.failure for each in before if each.failure]
            results.append(replace(result, rows_out=0, failure=failures[0]) if failures else result)
            self._note(number, results[-1], states.get(place, ()))
        accepted = {place for place, result in enumerate(results) if result.failure is None}
        written = [self._written(number, all_well=len(accepted) == len(results)) for number in numbers]
        self._outcome.files += [file for task in tasks if (file := committed(task, written, accepted))]

    def _strict_operators(self, chain: Chain) -> list[Operator]:
        """The operators of a chain that an evaluation error fails; none of any other chain."""
        is_strict = bool(self._strict) and not self._strict.isdisjoint(self._installed.queries(chain.nodes))
        return [self._installed.network.nodes[number].operator for number in chain.nodes] if is_strict else []

    def _written(self, number: int, all_well: bool) -> tuple[str, ...]:
        """The streams that the output of a piece goes to. If others failed, it may be the input of one of them."""
        piece = self._pieces[number]
        if piece.chain.writes or all_well or number != self._lasts[piece.place]:
            return piece.chain.writes
        return (given_by(self._unit.id, piece.place),)

    def _note(self, number: int, result: ChainResult, states: Sequence[tuple[str | None, StateReport]]) -> None:
        """Notes the result of a piece, and the changes of its states."""
        piece = self._pieces[number]
        if result.failure is not None:
            self._failures[number] = result.failure
        elif states:
            result = replace(result, dropped=added([(state.stream, state.dropped) for _, state in states]))
            if piece.parted:
                self._move(states)
        self._outcome.take(piece.place, result)

    def _move(self, states: Iterable[tuple[str | None, StateReport]]) -> None:
        """Applies the changes that a job made to states, for the next job of the same fold."""
        for file, each in states:
            state = next(one for one in self._states.values() if any(part.stream == each.stream for part in one.ranges))
            grown = tuple(_grown(one, each, file) if one.stream == each.stream else one for one in state.ranges)
            self._states[state.fold] = replace(state, ranges=grown)

    def _give(self, number: int, tasks: Sequence[TaskReport], place: int) -> None:
        """Keeps what a piece wrote, as a train for later jobs."""
        name, end = self._name(number), 0
        segments: list[Segment] = []
        for task in tasks:
            for report in task.chains:
                if report.chain == place and report.member is not None and task.file is not None:
                    segments.append(_segment(name, end, report.member, task.file))
                    end = segments[-1].end
        self._given[number] = Train(name, 0, end, tuple(segments))

    def _shuffle(self, chain: Chain) -> Generator[Job, Reports, Reports]:
        """Makes the pairs of a join by a shuffle, port by port, and remembers the tuples of each port."""
        ports = [port for port, train in enumerate(chain.trains) if train.rows]
        tasks: Reports = []
        for port in ports:
            tasks += on_one_clock((yield Job("shuffled", (_only(chain, port),), (self._state_of(chain),))))
            tasks += yield from self._remember(_only(chain, port), port, port == ports[-1])
        # The tuples of earlier ports had to wait for those of the last one.
        for port in ports[:-1]:
            tasks += yield from self._remember(_only(chain, None), port, True)
        return tasks

    def _remember(self, chain: Chain, port: int, closing: bool) -> Generator[Job, Reports, Reports]:
        """Updates what one port of a join remembers, after a shuffle has made its pairs."""
        state = self._state_of(chain)
        # The other inputs are empty there, so no pair is made a second time.
        own = replace(state, ranges=_emptied(state.ranges, port), after=state.after if closing else state.before)
        tasks = on_one_clock((yield Job("vectorised", (replace(chain, writes=()),), (own,))))
        self._move((task.file, each) for task in tasks for each in task.states)
        return tasks

    def _state_of(self, chain: Chain) -> State:
        [fold] = self._installed.folds(chain.nodes)
        return self._states[fold]


def _places(chain: Chain) -> list[int]:
    return [each for each in chain.inputs if isinstance(each, int)]


def _only(chain: Chain, port: int | None) -> Chain:
    """A chain with the tuples of only one port, or of none."""
    return replace(chain, inputs=_emptied(chain.trains, port))


def _emptied(trains: Sequence[Train], but: int | None) -> tuple[Train, ...]:
    """Trains without their tuples, except for one train."""
    return tuple(each if place == but else Train(each.stream, each.end, each.end) for place, each in enumerate(trains))


def _states_by_chain(tasks: Sequence[TaskReport]) -> dict[int, list[tuple[str | None, StateReport]]]:
    found: dict[int, list[tuple[str | None, StateReport]]] = {}
    for task in tasks:
        for state in task.states:
            found.setdefault(state.chain, []).append((task.file, state))
    return found


def _grown(old: Train, change: StateReport, file: str | None) -> Train:
    first = old.first + change.dropped
    segments = tuple(segment for segment in old.segments if segment.end > first)
    if change.member is None or file is None:
        return Train(old.stream, first, old.end, segments)
    new = _segment(old.stream, old.end, change.member, file)
    return Train(old.stream, first, new.end, (*segments, new))


def _segment(stream: str, first: int, member: WrittenRange, file: str) -> Segment:
    rows, position, length, arrival, last = member
    return Segment(stream, first, rows, 0, arrival, last, file, position, length)
