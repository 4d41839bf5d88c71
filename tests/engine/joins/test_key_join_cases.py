"""Joins by ordered keys, drawn at random with their logs: the answer is the join of all rows that the log says count,
whatever the trains, policies, crashes, parts of states, ways of buffering, and bounds on memory."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest

from freshet import App
from freshet.model.join_buffer import JOIN_BUFFERS, is_sorted
from freshet.testing import LocalRun, assert_same
from freshet.testing.schedule import POLICIES, make_policy

Row = dict[str, Any]
NAMES = "abcd"
QUICK, LONG = 30, 2_000


@dataclass(frozen=True)
class Input:
    """An input of a join: a stream under an alias, maybe in a sub-query with a filter."""

    alias: str
    stream: str
    least: int | None

    @property
    def text(self) -> str:
        inner = f"(SELECT k, v, n, t FROM {self.stream} WHERE v >= {self.least})"
        return f"{self.stream if self.least is None else inner} {self.alias}"

    def takes(self, row: Row) -> bool:
        return self.least is None or bool(row["v"] >= self.least)


@dataclass(frozen=True)
class KeyCase:
    """What is asked, what comes, and how it is run."""

    inputs: tuple[Input, ...]
    left: bool
    same: tuple[tuple[int, int], ...]
    """Inputs whose v must be equal, too."""
    below: tuple[tuple[int, int], ...]
    """Inputs of which one's n must be below the other's, but for a multiple of three."""
    disorder: Mapping[str, int]
    steps: tuple[tuple[str, tuple[Row, ...]], ...]
    buffer: Any
    memory: str | None
    seed: int

    @property
    def text(self) -> str:
        on = [f"{one.alias}.k = {other.alias}.k" for one, other in pairwise(self.inputs)]
        on += [f"{self.inputs[one].alias}.v = {self.inputs[other].alias}.v" for one, other in self.same]
        on += [f"{self.inputs[one].alias}.n % 3 <= {self.inputs[other].alias}.n % 3" for one, other in self.below]
        shown = ", ".join(f"{each.alias}.n AS n{at}" for at, each in enumerate(self.inputs))
        froms = (" LEFT JOIN " if self.left else ", ").join(each.text for each in self.inputs)
        first = self.inputs[0].alias
        return f"SELECT {first}.k AS k, {first}.t AS t, {shown} FROM {froms} {'ON' if self.left else 'WHERE'} " + (
            " AND ".join(on)
        )

    def app(self) -> App:
        app = App("case")
        for name in NAMES:
            rows = self.disorder[name]
            app.stream(name, "k int, v int, n int, t string", ordered_by="k", disorder=f"{rows} rows")
        app.query("q", self.text, join_buffer=self.buffer, join_memory=self.memory)
        return app

    def joins(self, rows: Sequence[Row | None]) -> bool:
        return all(
            rows[one]["v"] == rows[other]["v"]  # type: ignore[index]
            for one, other in self.same
        ) and all(
            rows[one]["n"] % 3 <= rows[other]["n"] % 3  # type: ignore[index]
            for one, other in self.below
        )


def draw_case(seed: int) -> KeyCase:
    draw = random.Random(seed)
    count, streams = draw.choice((2, 2, 2, 3, 4)), NAMES[: draw.randint(1, 4)]
    inputs = tuple(Input(f"x{at}", draw.choice(streams), draw.choice((None, None, 0, 1))) for at in range(count))
    pairs = [(one, other) for one in range(count) for other in range(one + 1, count)]
    memory, left = draw.choice((None, "64 KiB")), count == 2 and draw.random() < 0.4
    return KeyCase(
        inputs,
        left=left,
        same=tuple(pair for pair in pairs if draw.random() < 0.3),
        below=() if left else tuple(pair for pair in pairs if draw.random() < 0.2),
        disorder={name: draw.choice((1, 2, 4, 9)) for name in NAMES},
        steps=tuple(_steps(draw, streams, 5000 if memory else 3)),
        buffer=draw.choice(JOIN_BUFFERS),
        memory=memory,
        seed=draw.randint(0, 1000),
    )


def _steps(draw: random.Random, streams: str, widest: int) -> list[tuple[str, tuple[Row, ...]]]:
    at, found, number = dict.fromkeys(streams, 0), [], 0
    for _ in range(draw.randint(4, 22)):
        name, rows = draw.choice(streams), list[Row]()
        for _ in range(draw.randint(1, 12)):
            late = draw.choice((0, 0, 1, 2, 3, 12))
            text = "x" * draw.randint(0, widest)
            rows.append({"k": max(0, at[name] - late), "v": draw.randint(-1, 2), "n": number, "t": text})
            at[name] += draw.choice((0, 0, 1))
            number += 1
        found.append((name, tuple(rows)))
    return found


def play(case: KeyCase) -> tuple[list[Row], list[Row]]:
    """The answers of a case, and those that there should be."""
    draw = random.Random(case.seed)
    policies = [draw.choice(POLICIES) for _ in range(2)]
    crash = draw.choice((None, draw.randrange(len(case.steps))))
    with LocalRun(
        case.app(),
        policy=make_policy(policies[0], case.seed),
        workers=draw.randint(1, 3),
        max_train_rows=draw.choice((1, 5, 100_000)),
        seed=case.seed,
        resplits=draw.choice((0.0, 0.2, 0.6)),
    ) as run:
        for number, (stream, rows) in enumerate(case.steps):
            if number == crash:
                run.crash(make_policy(policies[1], case.seed), case.seed)
            run.push(stream, list(rows))
            for _ in range(draw.choice((0, 1, 4))):
                run.turn()
        run.drain()
        run.close_windows()
        run.drain()
        return run.rows("q"), _expected(case, run)


def _expected(case: KeyCase, run: LocalRun) -> list[Row]:
    sides: list[list[Row]] = []
    for each in case.inputs:
        rows = [row for stream, some in case.steps if stream == each.stream for row in some]
        end = len(rows)
        out = {*run.log.past(each.stream, 0, end), *run.log.let_go(each.stream, 0, end, "q.join_1")}
        sides.append([row for at, row in enumerate(rows) if at not in out and each.takes(row)])
    found: list[list[Row | None]] = [[row] for row in sides[0]]
    for side in sides[1:]:
        found = [[*some, row] for some in found for row in side if some[0] is not None and some[0]["k"] == row["k"]]
    found = [rows for rows in found if case.joins(rows)]
    if case.left:
        met = {rows[0]["n"] for rows in found if rows[0] is not None}
        found += [[row, None] for row in sides[0] if row["n"] not in met]
    return [
        {"k": rows[0]["k"], "t": rows[0]["t"]} | {f"n{at}": row and row["n"] for at, row in enumerate(rows)}
        for rows in found
        if rows[0] is not None
    ]


def _check(seeds: range) -> None:
    answered = 0
    for seed in seeds:
        case = draw_case(seed)
        found, expected = play(case)
        try:
            assert_same(found, expected)
            if is_sorted(case.buffer):
                keys = [row["k"] for row in found]
                assert keys == sorted(keys)
        except AssertionError as error:
            raise AssertionError(f"case {seed}, {case.buffer}, {case.memory}: {case.text}\n{error}") from None
        answered += bool(found)
    assert answered >= len(seeds) // 2, "most cases have no answer: such a test would find nothing"


def test_answers_are_the_joins_of_what_counts() -> None:
    _check(range(QUICK))


@pytest.mark.long
@pytest.mark.timeout(0)
def test_answers_are_the_joins_of_what_counts_in_thousands_of_cases() -> None:
    _check(range(QUICK, QUICK + LONG))
