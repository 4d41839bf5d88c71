"""Random logs of tuples with true watermarks, cut into trains; and a fold run over them as the engine would."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from random import Random
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from hypothesis import strategies as st

from freshet.kernels.folds import CompiledFold, LiveFold, compile_fold
from freshet.kernels.folds.states import key_index
from freshet.model import ARRIVAL, Operator

INF, NAN = float("inf"), float("nan")

SCHEMA = pa.schema(
    {
        "ts": pa.timestamp("us", tz="UTC"),
        "k": pa.string(),
        "f": pa.float64(),
        "i": pa.int64(),
        "t": pa.int8(),
        "v": pa.float64(),
        "d": pa.decimal128(38, 3),
        "c": pa.decimal128(9, 2),
        "s": pa.string(),
        "b": pa.bool_(),
        "day": pa.date32(),
    }
)
VALUES: dict[str, list[Any]] = {
    "k": [None, "a", "b", "é"],
    "f": [None, NAN, 0.0, -0.0, 1.5],
    "i": [None, 0, 1, -1, 7, 2**63 - 1, -(2**63), 2**62, 5_000_000_000],
    "t": [None, -128, 127, 0, 3],
    "v": [None, 0.0, -0.0, 1.5, -2.25, 1e9, 1e9 + 1, 1e-3, 1e9 + 2],
    "d": [None, Decimal("99999999999999999999999999999999999.999"), Decimal("-1.001"), Decimal("0.001"), Decimal(7)],
    "c": [None, Decimal("0.01"), Decimal("-3.55"), Decimal("9999999.99"), Decimal(2)],
    "s": [None, "", "a", "b", "é", "z"],
    "b": [None, True, False],
    "day": [None, date(1970, 1, 1), date(1969, 5, 1), date(2024, 2, 29)],
}
UNFINITE = [NAN, INF, -INF]


@dataclass
class Step:
    """What one run gets: some tuples, then the watermark."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    watermark: int | None = None


@st.composite
def logs(draw: st.DrawFn, most: int = 40, unfinite: bool = True) -> list[Step]:
    """Tuples late by up to the lateness, equal and negative times, heartbeats, and cuts anywhere."""
    # One number for all choices: drawing each by itself would take longer than what is tested.
    return make_log(Random(draw(st.integers(0, 2**32))), draw(st.integers(0, most)), unfinite)


def make_log(random: Random, count: int, unfinite: bool = True) -> list[Step]:
    """The same, from a random number generator."""
    lateness, newest = random.choice([0, 3, 25]), None
    jump, cuts = random.choice([1, 3, 30]), random.choice([0.1, 0.5])
    steps = [Step()]
    for place in range(count):
        low = random.randint(-30, 0) if newest is None else newest - lateness
        time = random.randint(low, low + lateness + random.choice([0, jump]))
        if random.random() < 0.85:
            steps[-1].rows.append(make_row(random, time, place, unfinite))
        newest = time if newest is None else max(newest, time)
        if random.random() < cuts:
            # A watermark may lag behind what is known.
            steps[-1].watermark = newest - lateness if random.random() < 0.8 else None
            steps.append(Step())
    if newest is not None and random.random() < 0.7:
        steps[-1].watermark = newest - lateness + random.choice([0, 0, 100])
    return _monotone(steps)


def make_row(random: Random, time: int, arrival: int, unfinite: bool) -> dict[str, Any]:
    row = {"ts": time, **{name: random.choice(values) for name, values in VALUES.items()}, ARRIVAL: arrival}
    if unfinite and random.random() < 0.05:
        row["v"] = random.choice(UNFINITE)
    return row


def _monotone(steps: list[Step]) -> list[Step]:
    last: int | None = None
    for step in steps:
        if step.watermark is None or (last is not None and step.watermark < last):
            step.watermark = last
        last = step.watermark
    return steps


def table(rows: Sequence[dict[str, Any]], schema: pa.Schema = SCHEMA) -> pa.Table:
    """The tuples as Arrow; times are given as numbers."""
    columns = []
    for column in schema:
        values = [row[column.name] for row in rows]
        if pa.types.is_timestamp(column.type):
            columns.append(pa.array(values, pa.int64()).cast(column.type))
        else:
            columns.append(pa.array(values, column.type))
    arrivals = pa.array([row[ARRIVAL] for row in rows], pa.int64())
    return pa.Table.from_arrays([*columns, arrivals], schema=schema.append(pa.field(ARRIVAL, pa.int64())))


class Memory:
    """The state streams of a fold between runs.

    What a run made of them is used for the next one, unless it is lost, and the fold is made of the rows again. A run
    may be in vain: it runs again from where it was, and must give the same.

    Args:
        fold: The fold.
        operator: What it was compiled from; given, a run without tuples must give nothing out unless that is due.
    """

    def __init__(self, fold: CompiledFold, operator: Operator | None = None) -> None:
        self._operator = operator
        self._live: LiveFold | None = None
        self._random = Random(0)
        self.states = [schema.empty_table() for schema in fold.states]
        self.appended = 0

    def run(
        self,
        fold: CompiledFold,
        rows: pa.Table,
        before: Sequence[int | None],
        after: Sequence[int | None],
        port: int = 0,
    ) -> list[dict[str, Any]]:
        """One run; the state becomes what the log would make of it."""
        live = self._live if self._live is not None and self._random.random() < 0.9 else fold.live(self.states)
        with patch.object(key_index, "SHORT", self._random.choice([0, 64])):
            folded, self._live = live.run(rows, before, after, port)
            if self._random.random() < 0.2:
                again, self._live = live.run(rows, before, after, port)
                assert again.dropped == folded.dropped
                assert repr(list(map(plain, again.appended))) == repr(list(map(plain, folded.appended)))
                assert repr(plain(again.output)) == repr(plain(folded.output))
        assert [state.schema for state in folded.appended] == list(fold.states)
        assert folded.output.schema.names == [*fold.output.names, ARRIVAL]
        assert folded.output.schema.types[:-1] == fold.output.types
        if self._operator is not None:
            due = self._operator.is_due(before, after) and any(state.num_rows for state in self.states)
            assert due or rows.num_rows or not folded.output.num_rows
        self.states = [
            pa.concat_tables([state.slice(gone), new])
            for state, new, gone in zip(self.states, folded.appended, folded.dropped, strict=True)
        ]
        assert self._live.rows == sum(state.num_rows for state in self.states)
        self.appended += sum(new.num_rows for new in folded.appended)
        return plain(folded.output)


def plain(output: pa.Table) -> list[dict[str, Any]]:
    """Rows in which times are numbers."""
    names = output.schema.names
    columns = [c.cast(pa.int64()) if pa.types.is_timestamp(c.type) else c for c in output.columns]
    rows: list[dict[str, Any]] = pa.Table.from_arrays(columns, names=names).to_pylist()
    return rows


def run_steps(operator: Operator, steps: Sequence[Step]) -> tuple[list[dict[str, Any]], Memory]:
    """All rows that a fold with one port gives out over a log."""
    fold = compile_fold(operator, SCHEMA)
    memory, rows = Memory(fold, operator), []
    before: int | None = None
    for step in steps:
        rows += memory.run(fold, table(step.rows), [before], [step.watermark])
        before = step.watermark
    return rows, memory
