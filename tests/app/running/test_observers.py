"""Observers of a run: they hear of everything, from its start on."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from freshet.app import App
from freshet.engine.events import Added, Began, Committed, Decided, Event

pytestmark = [pytest.mark.spark]


class Notes:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def tell(self, event: Event) -> None:
        self.events.append(event)


class Raising:
    """Raises at the first event."""

    def tell(self, event: Event) -> None:
        raise RuntimeError(str(event))


def test_they_see_the_start_and_the_first_decision(spark: SparkSession, tmp_path: Path) -> None:
    app = App("a", state=tmp_path / "state", spark=spark)
    app.stream("s", "v bigint")
    app.query("q", "SELECT v FROM s")
    notes = Notes()
    with app.start(observers=[Raising(), notes]) as run:
        run.push("s", [{"v": 1}])
        assert run.drain(120)
        assert run.read("q").num_rows == 1
    kinds = [type(event) for event in notes.events]
    added = [event for event in notes.events if isinstance(event, Added)]
    assert len(added) == 1
    assert kinds.index(Added) < kinds.index(Began) < kinds.index(Decided) < kinds.index(Committed)
