"""A query on Spark that fails behind work which it shares: it finds its tuples when it is put back."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from freshet.app import App, Run
from freshet.engine.events import Committed, Event, Failed, Submitted

pytestmark = [pytest.mark.spark]


class Notes:
    """Counts what becomes of units."""

    def __init__(self) -> None:
        self.events: Counter[type[Event]] = Counter()

    def tell(self, event: Event) -> None:
        self.events[type(event)] += 1


def start(spark: SparkSession, folder: Path) -> Run:
    fault = folder / "fault"

    def doubled(x: pa.Array) -> pa.Array:
        return pc.multiply(x, 2).slice(1 if fault.exists() else 0)

    app = App("a", state=folder / "state", spark=spark, share="always")
    app.stream("s", "v bigint")
    app.function("doubled", doubled, "bigint", returns="bigint")
    app.query("good", "SELECT v FROM s WHERE v > 2")
    app.query("bad", "SELECT doubled(v) AS w FROM s WHERE v > 2")
    return app.start()


def push(run: Run, first: int) -> None:
    run.push("s", [{"v": v} for v in range(first, first + 10)])
    assert run.drain(120)


def column(run: Run, query: str) -> list[int]:
    [values] = run.read(query).to_pydict().values()
    return list(values)


def test_it_goes_on_where_it_failed_and_nobody_runs_again(spark: SparkSession, tmp_path: Path) -> None:
    notes, fault = Notes(), tmp_path / "fault"
    with start(spark, tmp_path) as run:
        push(run, 0)
        run.observe(notes)
        fault.touch()
        push(run, 10)
        push(run, 20)
        meters = run.meters()["queries"]
        assert (meters["bad"]["state"], meters["bad"]["waiting"]) == ("quarantined", 20)
        assert "9 values for 10 rows" in str(meters["bad"]["reason"])
        assert column(run, "good") == list(range(3, 30))
    assert (notes.events[Submitted], notes.events[Committed], notes.events[Failed]) == (2, 2, 0)
    fault.unlink()
    with start(spark, tmp_path) as run:
        push(run, 30)
        assert column(run, "good") == list(range(3, 40))
        assert column(run, "bad") == [2 * v for v in range(3, 40)]
