"""Instances that run in parts: whenever their time is over, the answer is that of log minus ledger (RT §4.4)."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest
from tests.engine.grammar.levels import DrawnLevels, DrawnStopwatch
from tests.engine.periodic.test_periodic import COLUMNS, QUERIES, Arrival, answers, batch, survived

from freshet import App
from freshet.kernels.keeping import kept_mask
from freshet.model import InstanceView, Train, View
from freshet.model.promises.keep import Timing
from freshet.policies.outcome import InstanceOutcome
from freshet.policies.periodic.levels import InstanceLevel
from freshet.testing import Faults, LocalRun
from freshet.testing.local_run import START

EXPECTED = Timing(1.0, 1.0)
"""Seconds that instances are expected to take, and may take: the first part reads half of what is to be kept."""


class Stopwatch:
    """Each part takes so many seconds."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.now = seconds, 0.0

    def __call__(self) -> float:
        self.now += self.seconds
        return self.now


class Timed:
    """Keeps shares of the inputs in turn, and has a second for each instance."""

    def __init__(self, *shares: float) -> None:
        self._shares = shares
        self.told: list[InstanceOutcome] = []

    def released(self, view: View, instances: Sequence[InstanceView]) -> None:
        """Nothing to note."""

    def answered(self, view: View, outcome: InstanceOutcome) -> None:
        self.told.append(outcome)

    def assign(self, view: View, chosen: Sequence[InstanceView]) -> dict[tuple[str, int], InstanceLevel]:
        found = {}
        for each in chosen:
            kept = {part.reader: self._shares[place % len(self._shares)] for place, part in enumerate(each.inputs)}
            found[each.key] = InstanceLevel(kept, min(kept.values()), timing=EXPECTED)
        return found


def played(
    text: str, windows: dict[str, str], seconds: float, shares: Sequence[float]
) -> tuple[LocalRun, Timed, list[Arrival]]:
    app = App("p")
    for stream, columns in COLUMNS.items():
        app.stream(stream, columns)
    bound = {stream: f"{stream} {windows[f'q {stream}']}" for stream in COLUMNS}
    app.query("q", text.format(**bound) + " PERIOD 1 s", overload=["defer", "thin"])
    rows = drawn_rows(7)
    run = LocalRun(app)
    run.executor.stopwatch = Stopwatch(seconds)
    run.engine._periodic.levels = levels = Timed(*shares)
    for number, row in enumerate(rows):
        run.push(row.stream, [row.row], at=row.at / 1e6)
        if number % 5 == 0:
            run.turn()
    run.drain()
    return run, levels, rows


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", sorted(QUERIES.keys() - {"partitions"}))
def test_answers_in_parts_after_kills_are_those_of_log_minus_ledger(name: str, seed: int) -> None:
    """A killed unit leaves neither an answer nor an entry; it runs again, and may read another share then."""
    app = App("p")
    for stream, columns in COLUMNS.items():
        app.stream(stream, columns)
    windows = {f"q {stream}": "[RANGE 1 s]" for stream in COLUMNS}
    text = QUERIES[name].format(**{stream: f"{stream} [RANGE 1 s]" for stream in COLUMNS}) + " PERIOD 1 s"
    app.query("q", text, overload=["defer", "thin"], missed="catch-up")
    faults, rows = Faults.at_random(seed, 0.2, ["kill"]), drawn_rows(seed)
    drawn, watch = DrawnLevels(seed), DrawnStopwatch(seed)
    with LocalRun(app, faults=faults) as run:
        for number, row in enumerate(rows):
            run.executor.stopwatch, run.engine._periodic.levels = watch, drawn
            run.push(row.stream, [row.row], at=row.at / 1e6)
            if number % 3 == 0:
                survived(run, run.turn)
        faults.end()
        run.executor.stopwatch, run.engine._periodic.levels = watch, drawn
        assert run.drain()
        found, left = answers(run, "q"), minus_ledger(run, rows)
        assert len(found) == 7
        assert faults.happened
        for release, answer in found.items():
            expected = batch("q", text, windows, left, release)
            assert answer == expected or (name == "global" and expected == {(0, None, None): 1} and not answer)


def drawn_rows(seed: int) -> list[Arrival]:
    """Tuples of all streams, 20 a second."""
    rng, found = random.Random(seed), []
    for number in range(150):
        stream = rng.choice(sorted(COLUMNS))
        row = {"k": rng.choice("abc"), "v": rng.randint(0, 5), "w": rng.randint(0, 5)}
        own = {column.split()[0]: row[column.split()[0]] for column in COLUMNS[stream].split(", ")}
        found.append(Arrival(stream, round(START * 1e6) + number * 50_000, own))
    return found


def minus_ledger(run: LocalRun, rows: list[Arrival]) -> list[Arrival]:
    """The rows of the log that the ledger does not have."""
    gone: set[tuple[str, int]] = set()
    for entry in (each for each in run.missing("q") if each.kind == "thinned"):
        kept = kept_mask(Train(entry.stream, entry.first, entry.end, keep=entry.keep))
        assert entry.rows == int((~kept).sum())
        gone |= {(entry.stream, entry.first + int(place)) for place in np.flatnonzero(~kept)}
    left = []
    for stream in COLUMNS:
        mine = [row for row in rows if row.stream == stream]
        left += [row for offset, row in enumerate(mine) if (stream, offset) not in gone]
    return sorted(left, key=lambda row: row.at)


@pytest.mark.parametrize(("seconds", "share"), [(0.4, 1.0), (0.8, 0.625), (1.5, 0.5)])
@pytest.mark.parametrize("name", sorted(QUERIES.keys() - {"partitions"}))
def test_an_answer_in_parts_is_that_of_log_minus_ledger(name: str, seconds: float, share: float) -> None:
    # Windows that do not overlap: each tuple is in one answer, so the ledger has one entry for it.
    windows = {f"q {stream}": "[RANGE 1 s]" for stream in COLUMNS}
    bound = {stream: f"{stream} [RANGE 1 s]" for stream in COLUMNS}
    text = QUERIES[name].format(**bound) + " PERIOD 1 s"
    run, levels, rows = played(QUERIES[name], windows, seconds, (0.8, 1.0))
    with run:
        found, left = answers(run, "q"), minus_ledger(run, rows)
        assert len(found) == 7
        for release, answer in found.items():
            wanted_rows = batch("q", text, windows, left, release)
            # An aggregate over an empty window gives no row.
            assert answer == wanted_rows or (name == "global" and wanted_rows == {(0, None, None): 1} and not answer)
        for one in run.instances("q"):
            # Both inputs keep the same share of what they were to keep.
            planned = sorted(one.ends)
            wanted = {reader: (0.8, 1.0)[place % 2] * share for place, reader in enumerate(_in_order(run, planned))}
            assert dict(one.kept) == pytest.approx({reader: kept for reader, kept in wanted.items() if kept < 1.0})
            assert one.quality == pytest.approx(min(wanted.values()))
        assert any(answer for answer in found.values())
        assert len(levels.told) == len(found)


def _in_order(run: LocalRun, readers: Sequence[str]) -> list[str]:
    """Readers in the order of the inputs of an instance."""
    edges = [edge.edge.reader for operator in run.engine.board.operators for edge in operator.edges]
    return [reader for reader in edges if reader in readers]


def test_panes_remember_what_was_read_in_time() -> None:
    """Each pane keeps what its instance had read; a later answer has the panes before it."""
    windows = {f"q {stream}": "[RANGE 3 s]" for stream in COLUMNS}
    text = "SELECT k, count(*) AS n FROM {s} GROUP BY k"
    run, _, rows = played(text, windows, 0.8, (1.0,))
    with run:
        left = minus_ledger(run, rows)
        whole = text.format(s="s [RANGE 3 s]") + " PERIOD 1 s"
        found = answers(run, "q")
        assert all(one.kept == pytest.approx(dict.fromkeys(one.ends, 0.625)) for one in run.instances("q"))
        assert {round(one.quality, 9) for one in run.instances("q")} == {0.625}
        for release, answer in found.items():
            assert answer == batch("q", whole, windows, left, release)


def test_the_last_tuples_of_partitions_are_not_read_in_parts() -> None:
    windows = {f"q {stream}": "[PARTITION BY k ROWS 2]" for stream in COLUMNS}
    run, _, _ = played(QUERIES["partitions"], windows, 5.0, (1.0,))
    with run:
        assert {tuple(one.kept.values()) for one in run.instances("q")} == {()}
