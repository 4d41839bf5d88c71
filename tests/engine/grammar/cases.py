"""One case: what comes, which queries, and how it is run."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import pyarrow as pa
from tests.engine.grammar.draws import queries
from tests.engine.grammar.duckdb_text import output
from tests.engine.grammar.forms import SECOND, Query
from tests.engine.grammar.freshet_text import text
from tests.engine.grammar.logs import END, NAMED, STREAMS, Expected, Row, Step, log
from tests.engine.kit import Application

from freshet.engine.fold_states import MOST_PIECES
from freshet.testing import Faults
from freshet.testing.schedule import POLICIES, make_policy

TWIN = "_twin"
PATIENCE = 400
"""Turns of a case's own policy to work off what waits. A join of four inputs may give out 100,000 tuples, and a policy
that takes a tuple at a time would need an hour for them."""
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

    def __repr__(self) -> str:
        texts = [f"{query.name}: {text(query.body)}\n      in DuckDB: {output(query.body)}" for query in self.queries]
        run = f"{' then '.join(self.policies)}, {self.slots} slots, seed {self.seed}, crash at {self.crash}"
        run += f", states in {self.pieces} pieces, resplits {self.resplits}, twins {self.twins}"
        lines = [*texts, f"from {self.start}, {run}:", *(f"  {step}" for step in self.steps)]
        return "\n".join(["a case", *(f"    {line}" for line in lines)])


def draw_case(form: str, seed: int) -> Case:
    """A case at random in which one query has a form."""
    draw = random.Random(f"{form} {seed}")
    streams = draw.choice((1, 2, 2, 3, 4))
    case = Case(
        steps=log(draw, streams),
        queries=queries(draw, NAMED[:streams], form),
        policies=(draw.choice(POLICIES), draw.choice(POLICIES)),
        slots=draw.randint(1, 3),
        seed=draw.randint(0, 1000),
        crash=draw.choice((None, draw.randint(1, 14), draw.randint(1, 28))),
        start=draw.choice((20 * SECOND, -5 * SECOND, 1_700_000_000 * SECOND)),
        pieces=draw.choice((MOST_PIECES, 2)),
    )
    twins: Twins = draw.choice((None, "free", "held", "failing", "one"))
    case = replace(case, resplits=draw.choice((0.0, 0.1, 0.5)))
    return case if twins is None else replace(case, queries=_with_twins(case.queries), twins=twins)


def _with_twins(found: Sequence[Query]) -> list[Query]:
    return [twin for query in found for twin in (query, replace(query, name=query.name + TWIN))]


@dataclass
class Play:
    """A case being played, and beside it what the streams should hold."""

    case: Case
    app: Application = field(init=False)

    def __post_init__(self) -> None:
        case = self.case
        texts = {query.name: text(query.body) for query in case.queries}
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
        )
        self._random = random.Random(case.seed)
        self.expected = {name: Expected(stream) for name, stream in STREAMS.items()}
        self._clock = case.start
        self._arrival = max(case.start, 0)
        self._last: tuple[str, list[Row]] | None = None

    def play(self) -> None:
        """Everything that happens, until nothing is left to do."""
        for number, step in enumerate(self.case.steps):
            if number == self.case.crash:
                self.crash()
            self._step(*step)
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

    def crash(self) -> None:
        """The process dies, with units on their way, and another one goes on with what is in the state folder."""
        seed = self.case.seed + 1
        self.app.crash(make_policy(self.case.policies[1], seed), seed)

    def _step(self, what: str, stream: str, gap: int, more: Any) -> None:
        self._clock += gap
        self._arrival += gap
        if what == "append":
            timed = STREAMS[stream].event_time is not None
            self._append(stream, [(*([self._clock + at] if timed else []), *values) for at, values in more])
        elif what == "again" and self._last is not None:
            self._append(*self._last)
        elif what == "heartbeat":
            time = self._clock if STREAMS[stream].event_time else self._arrival
            self.app.heartbeat(stream, time / 1e6)
            self.expected[stream].heartbeat(time)
        elif what == "turns":
            for _ in range(more):
                self.app.turn()

    def _append(self, stream: str, rows: list[Row]) -> None:
        self._last = (stream, rows)
        schema = STREAMS[stream].schema
        columns = [pa.array(column, each.type) for column, each in zip(zip(*rows, strict=True), schema, strict=True)]
        self.app.push(stream, pa.Table.from_arrays(columns, schema=schema), at=self._arrival / 1e6)
        self.expected[stream].append(rows, self._arrival)

    def end_time(self) -> None:
        """All time passes."""
        for stream in STREAMS:
            self.app.heartbeat(stream, (END + self._clock) / 1e6)
        self._work_off()
