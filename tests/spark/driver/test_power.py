"""Files that tasks leave to the driver to sync: what is committed survives a power cut, by both ways."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.log.power import PowerCuts

from freshet.app import App
from freshet.log import LogReader
from freshet.log.store.verify import verify
from freshet.spark.session.residency import ResidentSetting

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
BATCHES, ROWS = 6, 20


@pytest.mark.parametrize("resident", [1, "off"])
def test_what_tasks_wrote_is_synced_before_it_is_committed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, resident: ResidentSetting
) -> None:
    state = tmp_path / "state"
    app = App("power", state=state, spark=spark, resident=resident)
    app.stream("s", "v bigint")
    app.query("q", "SELECT v, v * 2 AS w FROM s WHERE v % 2 = 0")
    with app.start() as run:
        cuts = PowerCuts(state, tmp_path / "cuts")
        with cuts.watching(monkeypatch):
            for batch in range(BATCHES):
                run.push("s", [{"v": batch * ROWS + row} for row in range(ROWS)])
                assert run.drain(timeout=600.0)
    assert any("-0-" in name for name in cuts.syncs)  # the driver synced files of tasks
    answered = set()
    for copy in (tmp_path / "cuts").iterdir():
        assert [check.damage for check in verify(copy) if check.damage] == []
        with LogReader(copy) as log:
            end = log.end("q")
            values = log.read("q", 0, end)["v"].to_pylist() if end else []
        assert values == list(range(0, 2 * end, 2))
        answered.add(end)
    assert max(answered) == BATCHES * ROWS // 2
