"""Release, window and quality of an answer are hidden columns of its rows, shown where the arrival is."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from freshet import App
from freshet.model import InstanceView, View
from freshet.policies.outcome import InstanceOutcome
from freshet.policies.periodic.levels import InstanceLevel
from freshet.sinks import MemoryOptions, MemorySink, ParquetOptions, ParquetSink, SinkRunner
from freshet.testing import LocalRun
from freshet.testing.local_run import START

HIDDEN = ("__release", "__window_start", "__quality")


class HalfAtEvenSeconds:
    """Keeps half of what comes before even releases, and everything before the others."""

    def released(self, view: View, instances: Sequence[InstanceView]) -> None:
        """Nothing to note."""

    def answered(self, view: View, outcome: InstanceOutcome) -> None:
        """Nothing to learn."""

    def assign(self, view: View, chosen: Sequence[InstanceView]) -> dict[tuple[str, int], InstanceLevel]:
        shares = {each.key: 0.5 if round(each.release) % 2 == 0 else 1.0 for each in chosen}
        return {
            each.key: InstanceLevel({part.reader: shares[each.key] for part in each.inputs}, shares[each.key])
            for each in chosen
        }


def played(*texts: str) -> LocalRun:
    app = App("p")
    app.stream("s", "k string, v int")
    for number, text in enumerate(texts):
        app.query(f"q{number}", text, overload=["defer", "thin"])
    run = LocalRun(app)
    run.engine._periodic.levels = HalfAtEvenSeconds()
    for second in range(6):
        run.push("s", [{"k": "a", "v": number} for number in range(20)], at=START + second + 0.5)
        run.heartbeat("s", START + second + 1.0)
        run.drain()
    return run


def at(second: float) -> datetime:
    return datetime.fromtimestamp(START + second, UTC)


@pytest.mark.parametrize(("window", "begins"), [("RANGE 3 s", -3.0), ("ROWS 10", None)])
@pytest.mark.parametrize("what", ["k, v", "count(*) AS n"])
def test_rows_show_their_release_their_window_and_their_quality(what: str, window: str, begins: float | None) -> None:
    with played(f"SELECT {what} FROM s [{window}] PERIOD 1 s", "SELECT v FROM s") as run:
        rows = run.read("q0", arrival=True).to_pylist()
        qualities = {round(one.release / 1e6 - START): one.quality for one in run.instances("q0")}
        assert run.read("q0").column_names == run.read("q0", arrival=True).column_names[:-4]
        assert run.read("q1", arrival=True).column_names == ["v", "__arrival"], "a continuous query has no release"
    assert set(qualities.values()) == {0.5, 1.0}
    assert {round(row["__release"].timestamp() - START) for row in rows} == set(range(1, 7))
    for row in rows:
        second = round(row["__arrival"] / 1e6 - START)
        since = None if begins is None else at(second + begins)
        assert [row[name] for name in HIDDEN] == [at(second), since, qualities[second]]


def test_sinks_with_arrivals_get_them_too_also_after_a_crash(tmp_path: Path) -> None:
    with played("SELECT count(*) AS n FROM s [RANGE 3 s] PERIOD 1 s") as run:
        run.crash()
        shown, wanted = run.read("q0", arrival=True), run.read("q0", arrival=True).to_pylist()
        memory = MemorySink(MemoryOptions(arrival=True))
        files = ParquetSink(ParquetOptions(path=tmp_path / "out", arrival=True))
        runner = SinkRunner(run.log)
        runner.add("q0", "memory", memory)
        runner.add("q0", "files", files)
        runner.start()
        assert runner.stop()
    assert memory.rows() == wanted
    read: list[Any] = (
        duckdb.connect().execute(f"SELECT * FROM '{tmp_path}/out/*.parquet' ORDER BY __release").fetchall()
    )
    assert [row[0] for row in read] == [row["n"] for row in wanted]
    assert [row[-1] for row in read] == [row["__quality"] for row in wanted]
    assert len(read) == shown.num_rows == 6
