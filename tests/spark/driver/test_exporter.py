"""Files of sinks that Spark's tasks write."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from freshet.log import Export, Exported, Limits, Log, Retention
from freshet.model import ARRIVAL, FreshetError
from freshet.spark.driver.exporter import SparkExporter


@pytest.mark.parametrize("cores", [1, 2])
def test_tasks_write_ranges_and_say_what_they_could_not(spark: SparkSession, tmp_path: Path, cores: int) -> None:
    state, out = tmp_path / "state", tmp_path / "out"
    out.mkdir()
    with Log.open(state, limits=Limits(min_free_bytes=0)) as log:
        exports = []
        for number in range(40):
            query = f"a query with a long name, number {number}"
            log.declare(query, Retention())
            for first in (0, 10):
                values = pa.array(range(first, first + 10), pa.int64())
                log.append(
                    query, pa.table({"v": values, "when": values.cast(pa.timestamp("us", "UTC")), ARRIVAL: values})
                )
            folder = tmp_path / "missing" if number == 7 else out
            export = Export(log.train(query, 3, 17), folder / f"{number}.parquet", (4, 2), arrival=number % 2 == 0)
            exports.append(export)
        exporter = SparkExporter(spark, state)
        exporter._most_tasks = cores
        made = exporter.export(2, exports)
    assert exporter.sees_all
    ordinary = tmp_path / "ordinary"
    ordinary.touch()
    assert isinstance(made[7], FreshetError)
    assert "No such file" in str(made[7])
    for number, (export, each) in enumerate(zip(exports, made, strict=True)):
        if number == 7:
            continue
        assert isinstance(each, Exported)
        assert each.path.parent == out
        # The numbers of the dispatch, and the attempt of the task.
        assert each.path.name.startswith(f".{export.path.name}.4.2.")
        assert each.path.stat().st_mode == ordinary.stat().st_mode, "whoever could read the driver's files can read it"
        written = pq.read_table(each.path)
        assert written["v"].to_pylist() == list(range(3, 17))
        assert written.schema == each.schema
        assert (ARRIVAL in written.column_names) == export.arrival
    assert len(list(out.iterdir())) == 39, "only hidden files: names are the driver's to give"
    assert not list((state / "specs").iterdir()), "neither what was told nor what was reported stays"
