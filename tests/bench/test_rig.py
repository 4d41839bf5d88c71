"""What benchmarks are built from, without Spark."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from freshet.bench.many.places import QueryProgress
from freshet.bench.many.queries import STREAM, make_queries
from freshet.bench.rig.notes import PARTS, NotingClock, StepNotes
from freshet.bench.rig.streaming import StreamingRig
from freshet.engine.events import Committed, Failed, Returned, Submitted
from freshet.model import Chain, OperatorRun, Train, Unit, UnitResult
from freshet.model.scheduling.unit import ChainResult


def noting() -> StepNotes:
    notes = StepNotes(NotingClock())
    board: Any = SimpleNamespace(operators=[SimpleNamespace(node=SimpleNamespace(name="q.filter_1"))])
    notes.board = board
    return notes


def result_of(unit: Unit, retry: str | None = None) -> UnitResult:
    done = ChainResult(unit.chains[0], 4, (OperatorRun(0, 10, 4, 2.0),))
    return UnitResult(unit, 1.0, 2.5, (done,), overhead=0.5, parts={"plan": 0.001, "job": 0.002}, retry=retry)


UNIT = Unit("u1", (Chain((0,), (Train("s", 0, 10),), ("q",)),))


def test_a_step_is_noted_with_its_parts() -> None:
    notes = noting()
    notes.begin()
    time.sleep(0.01)
    notes.tell(Submitted(0.0, UNIT))
    time.sleep(0.02)
    notes.tell(Returned(0.0, result_of(UNIT)))
    time.sleep(0.01)
    notes.tell(Committed(0.0, result_of(UNIT), UNIT.chains))
    [step] = notes.steps
    assert tuple(step.parts) == PARTS
    assert sum(step.parts.values()) == pytest.approx(step.seconds)
    assert step.parts["decide"] >= 0.01
    away = sum(step.parts[part] for part in ("bind", "send", "work", "report"))
    assert away >= 0.02
    assert step.parts["commit"] >= 0.01
    # Two seconds of tasks side by side took one second of the wall's.
    assert step.work == 1.0
    assert step.runs == (("q.filter_1", OperatorRun(0, 10, 4, 1.0)),)
    assert step.written == {"q": 4}
    notes.begin()
    assert notes.steps == []


def test_a_step_that_could_not_run_is_no_measurement() -> None:
    notes = noting()
    for retry in ("cancelled", "the disk is full"):
        notes.tell(Submitted(0.0, UNIT))
        notes.tell(Returned(0.0, result_of(UNIT, retry)))
        if retry == "cancelled":
            notes.tell(Failed(0.0, result_of(UNIT, retry)))
    with pytest.raises(RuntimeError, match="the disk is full"):
        notes.tell(Failed(0.0, result_of(UNIT, "the disk is full")))
    assert notes.steps == []


def test_files_come_under_their_names_at_once_and_go_together(tmp_path: Path) -> None:
    session: Any = None
    rows = pa.table({"v": [1]})
    with StreamingRig(session, tmp_path / "rig", {"a": "v int", "b": "v int"}) as rig:
        rig.write({"a": rows, "b": rows})
        rig.write({"a": rows})
        names = {name: sorted(path.name for path in (rig.folder / name).iterdir()) for name in rig.streams}
        assert names == {"a": ["000000.parquet", "000001.parquet"], "b": ["000000.parquet"]}
        rig.clear()
        assert not list((rig.folder / "a").iterdir())
    assert not (tmp_path / "rig").exists()


def test_how_far_queries_are_follows_commits() -> None:
    places = QueryProgress(make_queries(2))
    assert places.commits[-1].least == 0

    def commit(now: float, *chains: Chain) -> None:
        unit = Unit("u", chains)
        places.tell(Committed(now, UnitResult(unit, 0.0, 0.0), chains))

    commit(1.0, Chain((0, 1), (Train(STREAM, 0, 500),), ("q0",)), Chain((2,), (Train("other", 0, 9),), ("q1",)))
    assert places.commits[-1].places == (500, 0)
    commit(2.0, Chain((2, 3), (Train(STREAM, 0, 400),), ("q1",)), Chain((0,), (Train(STREAM, 500, 900),), ("a queue",)))
    assert places.commits[-1].least == 400
    assert [each.time for each in places.commits[1:]] == [1.0, 2.0]
