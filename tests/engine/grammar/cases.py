"""One case: what comes, which queries, and how it is run."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import pyarrow as pa
from tests.engine.grammar.batch import joins_more
from tests.engine.grammar.draws import queries
from tests.engine.grammar.duckdb_text import output
from tests.engine.grammar.forms import SECOND, Query
from tests.engine.grammar.freshet_text import query_text
from tests.engine.grammar.levels import DrawnLevels, DrawnStopwatch
from tests.engine.grammar.logs import END, NAMED, STREAMS, Step, log
from tests.engine.grammar.moments import Append, Heartbeat, Moment, Turns, contents, moments
from tests.engine.kit import Application

from freshet.engine.fold_states import MOST_PIECES
from freshet.model import releases_between
from freshet.model.promises.promise import Missed
from freshet.testing import Faults, local_run
from freshet.testing.schedule import POLICIES, make_policy

TWIN = "_twin"
START = round(local_run.START * SECOND)
"""When applications start."""
PERIODIC = ("edf", "edf-fused", "rm", "dm", "llf", "edf(shortest)")
LARGEST = 10_000
"""Rows that the joins of a case may make. One case in a thousand would make a million, and take longer than
all the others together."""
PATIENCE = 400
"""Turns of a case's own policy to work off what waits: one that takes a tuple at a time would need minutes for all."""
Twins = Literal["free", "held", "failing", "one"] | None


@dataclass(frozen=True, repr=False)
class Case:
    """What happens to which queries, run how.

    Args:
        steps: What comes.
        queries: The queries.
        policies: The policy before the crash and the one after it.
        slots: Units at once.
        seed: Draws trains and the order in which units finish.
        crash: The step before which the process dies; None: it does not.
        start: Event time at the beginning, which may lie before 1970.
        pieces: Segments in which a state may lie before it is written anew.
        resplits: Share of the units before which states are divided anew, into parts by key.
        twins: What befalls those queries that are there a second time under another name and share all their operators
            but the last one: nothing, their outputs now and then take nothing, or they raise. ``one``: nothing, and
            they share the last one, too. None: there are none.
        periodic: Which instance of periodic queries runs first.
        missed: What becomes of releases that a crash made them miss.
        thin: Whether levels leave some tuples out of the windows of periodic queries, in parts now and then.
    """

    steps: Sequence[Step]
    queries: Sequence[Query]
    policies: tuple[str, str]
    slots: int
    seed: int
    crash: int | None
    start: int
    pieces: int
    resplits: float = 0.0
    twins: Twins = None
    periodic: str = "edf"
    missed: Missed = "skip"
    thin: bool = False

    def __repr__(self) -> str:
        texts = [f"{query.name}: {query_text(query)}\n      in DuckDB: {output(query)}" for query in self.queries]
        run = f"{' then '.join(self.policies)}, {self.slots} slots, seed {self.seed}, crash at {self.crash}"
        run += f", states in {self.pieces} pieces, resplits {self.resplits}, twins {self.twins}"
        run += f", {self.periodic}, missed releases: {self.missed}, thin {self.thin}"
        lines = [*texts, f"from {self.start}, {run}:", *(f"  {step}" for step in self.steps)]
        return "\n".join(["a case", *(f"    {line}" for line in lines)])


def draw_case(form: str, seed: int) -> Case:
    """A case at random in which one query has a form."""
    draw = random.Random(f"{form} {seed}")
    while True:
        case = _draw(draw, form)
        if not joins_more(LARGEST, case.queries, contents(case.steps, case.start), _due(case)):
            break
    twins: Twins = draw.choice((None, "free", "held", "failing", "one"))
    return case if twins is None else replace(case, queries=_with_twins(case.queries), twins=twins)


def _due(case: Case) -> dict[str, range]:
    """The releases of periodic queries while a case is played."""
    last = max(case.start, START) + sum(gap for _, _, gap, _ in case.steps)
    return {query.name: releases_between(START, last, query.period) for query in case.queries if query.period}


def _draw(draw: random.Random, form: str) -> Case:
    streams = draw.choice((1, 2, 2, 3, 4))
    made = queries(draw, NAMED[:streams], form)
    # No query is released before it is there.
    early = () if any(query.period for query in made) else (20 * SECOND, -5 * SECOND)
    return Case(
        steps=log(draw, streams),
        queries=made,
        policies=(draw.choice(POLICIES), draw.choice(POLICIES)),
        slots=draw.randint(1, 3),
        seed=draw.randint(0, 1000),
        crash=draw.choice((None, draw.randint(1, 14), draw.randint(1, 28))),
        start=draw.choice((*early, START)),
        pieces=draw.choice((MOST_PIECES, 2)),
        resplits=draw.choice((0.0, 0.1, 0.5)),
        periodic=draw.choice(PERIODIC),
        missed=draw.choice(("skip", "catch-up")),
        thin=draw.choice((False, True, True)),
    )


def _with_twins(found: Sequence[Query]) -> list[Query]:
    return [twin for query in found for twin in (query, replace(query, name=query.name + TWIN))]


@dataclass
class Play:
    """A case being played, and beside it what the streams should hold in the end."""

    case: Case
    app: Application = field(init=False)

    def __post_init__(self) -> None:
        case = self.case
        texts = {query.name: query_text(query) for query in case.queries}
        self._twins = [name for name in texts if name.endswith(TWIN)]
        self._faults = Faults()
        if case.twins == "failing":
            self._faults = Faults.at_random(case.seed, 0.2, ["fail"])
            for twin in self._twins:
                self._faults.raise_in(twin, 0.3)
        self.app = Application(
            texts,
            make_policy(case.policies[0], case.seed),
            slots=case.slots,
            seed=case.seed,
            streams=STREAMS.values(),
            share="root" if case.twins == "one" else case.twins is not None,
            faults=self._faults,
            resplits=case.resplits,
            periodic=case.periodic,
            missed=case.missed,
            levels=DrawnLevels(case.seed) if case.thin else None,
            stopwatch=DrawnStopwatch(case.seed) if case.thin else None,
        )
        self._random = random.Random(case.seed)
        self.held = contents(case.steps, case.start)

    def play(self) -> None:
        """Everything that happens, until nothing is left to do."""
        for number, moment in enumerate(moments(self.case.steps, self.case.start)):
            if number == self.case.crash:
                self.crash()
            self._do(moment)
            if self.case.twins == "held":
                self.app.hold([name for name in self._twins if self._random.random() < 0.4])
        if self.case.twins == "held":
            self.app.hold(())
        if self.case.twins == "failing":
            self._faults.end()
            self.crash()  # what was quarantined goes on where it was
        self._work_off()

    def _work_off(self) -> None:
        """Runs until nothing is left to do; if that takes long, the rest runs all at once."""
        for _ in range(PATIENCE):
            if self.app.engine.is_idle():
                break
            self.app.turn()
        else:
            self.app.engine.set_policy(make_policy("everything", self.case.seed))
        self.app.run()

    def releases(self) -> dict[str, list[int]]:
        """The releases at which periodic queries have answered."""
        return {
            query.name: [each.release for each in self.app.instances(query.name) if each.state == "answered"]
            for query in self.case.queries
            if query.period
        }

    def crash(self) -> None:
        """The process dies, with units on their way, and another one goes on with what is in the state folder."""
        seed = self.case.seed + 1
        self.app.crash(make_policy(self.case.policies[1], seed), seed)

    def _do(self, moment: Moment) -> None:
        match moment:
            case Append(stream, rows, arrival):
                schema = STREAMS[stream].schema
                columns = zip(zip(*rows, strict=True), schema, strict=True)
                arrays = [pa.array(column, each.type) for column, each in columns]
                self.app.push(stream, pa.Table.from_arrays(arrays, schema=schema), at=arrival / 1e6)
            case Heartbeat(stream, time):
                self.app.heartbeat(stream, time / 1e6)
            case Turns(count):
                for _ in range(count):
                    self.app.turn()

    def end_time(self) -> None:
        """All time passes."""
        now = self.case.start + sum(gap for _, _, gap, _ in self.case.steps)
        for stream in STREAMS:
            self.app.heartbeat(stream, (END + now) / 1e6)
        self._work_off()
