"""Answers depend on the log alone, on Spark, too: queries at random are run by residents, of which some are killed,
over states that are divided anew, in several runs one after the other. The rows must be those of DuckDB in one batch.
"""

from __future__ import annotations

import os
import random
import re
import signal
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.engine.grammar.batch import answers
from tests.engine.grammar.cases import Case, draw_case
from tests.engine.grammar.draws import FORMS
from tests.engine.grammar.forms import Query
from tests.engine.grammar.freshet_text import text
from tests.engine.grammar.judge import check_closed
from tests.engine.grammar.logs import END, STREAMS
from tests.engine.grammar.moments import Append, Heartbeat, Moment, contents, moments
from tests.engine.kit import KEEP

from freshet.app import App
from freshet.app.declared.spec import QuerySpec, StreamSpec
from freshet.app.running.run import Run
from freshet.engine import fold_states
from freshet.spark.driver.executor import SparkExecutor

pytestmark = [pytest.mark.spark]

QUICK, LONG = 4, 200
"""Cases; each has one to three queries, or twice as many."""
POLICIES = ("everything", "fcfs", "rr(3)", "fas-mcq", "fas-mcq+set", "baat", "aaat-min-latency", "pcs(2)")
_TIMED = [name for name, stream in STREAMS.items() if stream.event_time is not None]
_UNTIMED = STREAMS.keys() - _TIMED
_FORMS = [form for form in FORMS if form != "periodic"]


@pytest.mark.timeout(900)
def test_residents_change_no_answer(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _run(spark, tmp_path, monkeypatch, range(QUICK))


@pytest.mark.long
@pytest.mark.timeout(0)
def test_residents_change_no_answer_in_many_cases(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _run(spark, tmp_path, monkeypatch, range(QUICK, QUICK + LONG))


def _run(spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch, seeds: range) -> None:
    done: Counter[str] = Counter()
    for seed in seeds:
        played = SparkPlay(drawn(seed), seed, spark, folder / str(seed))
        with monkeypatch.context() as patched:
            patched.setattr(fold_states, "MOST_PIECES", played.case.pieces)
            patched.setattr(SparkExecutor, "parts", lambda *given, to=played: to.parts(*given))
            try:
                played.play()
            except Exception as error:
                error.add_note(f"seed {seed}: {played.case}")
                raise
        done += played.done
    assert all(done[what] for what in ("runs", "kills", "lost", "dispatches", "resplits", "answers")), done


def drawn(seed: int) -> Case:
    """A case whose streams all have event time, without periodic queries: arrivals are those of a real clock."""
    draw = random.Random(f"on Spark {seed}")
    while True:
        case = draw_case(_FORMS[seed % len(_FORMS)], draw.getrandbits(48))
        if not any(stream in _UNTIMED for _, stream, *_ in case.steps) and not any(map(_is_by_clock, case.queries)):
            return case


def _is_by_clock(query: Query) -> bool:
    return query.period > 0 or any(re.search(rf"\b{name}\b", text(query.body)) for name in _UNTIMED)


@dataclass
class SparkPlay:
    """A case being played on Spark, in one to three runs over one state folder.

    Args:
        case: What comes, and the queries.
        seed: Draws everything else.
        spark: Where it runs.
        folder: For the state.
    """

    case: Case
    seed: int
    spark: SparkSession
    folder: Path
    done: Counter[str] = field(default_factory=Counter)
    """How often what happened."""

    def __post_init__(self) -> None:
        self._draw, self._dividing = random.Random(self.seed), random.Random(self.seed)

    def parts(self, executor: SparkExecutor, fold: str, now: int, rows: int, remembered: int) -> int:
        """Takes the place of the executor's choice: sometimes another number than there is now."""
        if self._dividing.random() >= self.case.resplits or not executor._installation.is_divisible(fold):
            return now
        wanted = self._dividing.choice((1, 2, 3, 4))
        self.done["resplits"] += wanted != now and remembered > 0
        return wanted

    def play(self) -> None:
        """Everything that happens; then the rows are compared."""
        left = list(moments(self.case.steps, self.case.start))
        cuts = sorted(self._draw.randrange(len(left) + 1) for _ in range(self._draw.randrange(3)))
        for first, end in zip([0, *cuts], [*cuts, len(left)], strict=True):
            with self._app().start() as run:
                self.done["runs"] += 1
                for moment in left[first:end]:
                    self._do(run, moment)
                    self._perhaps_kill(run)
                if end == len(left):
                    self._end(run)
                told = run.report()["residents"]
                self.done.update(lost=told["restarts"], dispatches=told["dispatches"])
                run.stop(drain=False)

    def _app(self) -> App:
        draw = self._draw
        app = App(
            "random", state=self.folder / "state", spark=self.spark, policy=draw.choice(POLICIES),
            workers=draw.randint(1, 3), max_train_rows=draw.choice((1, 3, 500_000)), resident=draw.choice((0, 1, 2, 2)),
            share=self.case.twins is not None,
        )  # fmt: skip
        for name in _TIMED:
            app.streams[name] = StreamSpec(STREAMS[name], retention=KEEP)
        for query in self.case.queries:
            app.queries[query.name] = QuerySpec(query.name, text(query.body), retention=KEEP)
        return app

    def _do(self, run: Run, moment: Moment) -> None:
        match moment:
            case Append(stream, rows, _):
                schema = STREAMS[stream].schema
                columns = zip(zip(*rows, strict=True), schema, strict=True)
                run.push(
                    stream,
                    pa.Table.from_arrays([pa.array(each, column.type) for each, column in columns], schema=schema),
                )
            case Heartbeat(stream, at):
                run.heartbeat(stream, at / 1e6)
            case _:
                assert self._draw.random() < 0.5 or run.drain(timeout=600.0)
        time.sleep(self._draw.random() * 0.05)

    def _perhaps_kill(self, run: Run) -> None:
        if self._draw.random() < 0.1:
            there = [each["process"] for each in run.report()["residents"]["present"]]
            for process in there[:1]:
                with suppress(ProcessLookupError):
                    os.kill(process, self._draw.choice((signal.SIGKILL, signal.SIGSEGV)))
                    self.done["kills"] += 1

    def _end(self, run: Run) -> None:
        """All time passes, and the rows are compared."""
        now = self.case.start + sum(gap for _, _, gap, _ in self.case.steps)
        for stream in _TIMED:
            run.heartbeat(stream, (END + now) / 1e6)
        assert run.drain(timeout=600.0)
        states = {name: each["state"] for name, each in run.report()["queries"].items()}
        assert set(states.values()) == {"active"}, states
        expected = answers(self.case.queries, contents(self.case.steps, self.case.start), {})
        check_closed(self.case, lambda name: [tuple(row.values()) for row in run.read(name).to_pylist()], expected)
        self.done["answers"] += sum(map(bool, expected.values()))
