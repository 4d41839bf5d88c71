"""Code of one's own on a cluster: executors have neither Freshet nor the module, and one Spark job writes for sinks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.cluster.cluster import cluster

import freshet

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(900)]

HELPER = """
import importlib.util
import os


def place():
    # Where it runs, and whether this module can be imported there.
    return f"{os.getcwd()} {importlib.util.find_spec('helping') is not None}"
"""
MODULE = """
import freshet
import helping
import pyarrow as pa
import pyarrow.compute as pc


@freshet.function(takes="int", returns="string")
def place(number):
    return pa.array([helping.place()] * len(number))


@freshet.operator(takes="n int", returns="n int, place string")
def twice(batch):
    numbers = [row for row in range(batch.num_rows) for _ in range(2)]
    places = [helping.place()] * len(numbers)
    return pa.record_batch({"n": batch["n"].take(pa.array(numbers)), "place": places}), numbers


@freshet.operator(takes="n int", returns="total int, place string", time="none")
class Totals:
    states = ("total int",)

    def run(self, tuples, states, before, after):
        total, rows = (states[0]["total"].to_pylist() or [0])[-1], []
        for row in tuples.to_pylist():
            total += row["n"]
            rows.append({"total": total, "place": helping.place(), "_arrival": row["_arrival"]})
        schema = pa.schema({"total": pa.int32(), "place": pa.string(), "_arrival": pa.int64()})
        made = pa.Table.from_pylist(rows, schema)
        kept = made.drop_columns(["place"]).slice(max(0, len(rows) - 1))
        return made, [kept], [states[0].num_rows if rows else 0]
"""
APP = """
[spark.settings]
"spark.driver.host" = "127.0.0.1"
"spark.executor.memory" = "512m"
"spark.executor.cores" = "1"

[streams.s]
schema = "n int"

[functions]
place = "mine:place"

[operators]
twice = "mine:twice"
totals = "mine:Totals"

[queries.called]
sql = "SELECT n, place(n) AS place FROM s"
sinks = [{kind = "parquet", path = "shared", shared = true}, {kind = "parquet", path = "own"}]

# Spark's own form calls it, because of a function that is not compiled.
[queries.left_to_spark]
sql = "SELECT n, place(n) AS place, sha1(string(n)) AS code FROM s"

[queries.doubled]
sql = "SELECT n, place FROM twice(s)"

[queries.summed]
sql = "SELECT total AS n, place FROM totals(s)"
"""
DRIVER = """
import json, sys
import freshet
from freshet.spark.driver.exporter import SparkExporter

exported, real = [], SparkExporter.export


def export(self, number, exports):
    made = real(self, number, exports)
    exported.extend(each.path.parent.name for each in made)
    return made


SparkExporter.export = export
app = freshet.App.from_toml("app.toml")
with app.start(master=sys.argv[1]) as run:
    for first in (0, 3):
        run.push("s", [{"n": first + each} for each in range(3)])
        run.drain()
    answers = {name: run.read(name).to_pylist() for name in app.queries}
    states = {name: query["state"] for name, query in run.meters()["queries"].items()}
print(json.dumps({"answers": answers, "states": states, "exported": exported}))
"""


def run_driver(folder: Path, master: str) -> dict[str, Any]:
    """What the application tells, whose module lies beside its file."""
    for name, text in {"mine.py": MODULE, "helping.py": HELPER, "app.toml": APP, "driver.py": DRIVER}.items():
        (folder / name).write_text(text)
    environment = os.environ | {"PYTHONPATH": str(Path(freshet.__file__).parents[1])}
    with (folder / "driver.err").open("wb") as errors:
        command = [sys.executable, "driver.py", master]
        done = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=errors, check=False)
    assert done.returncode == 0, (folder / "driver.err").read_text()[-3000:]
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def test_executors_run_code_that_they_do_not_have_and_write_for_shared_sinks(tmp_path: Path) -> None:
    (tmp_path / "cluster").mkdir()
    (tmp_path / "driver").mkdir()
    with cluster(tmp_path / "cluster", installed=False) as workers:
        told = run_driver(tmp_path / "driver", workers.master)
    assert set(told["states"].values()) == {"active"}, told["states"]
    numbers = {name: [row["n"] for row in rows] for name, rows in told["answers"].items()}
    assert numbers == {
        "called": [0, 1, 2, 3, 4, 5],
        "left_to_spark": [0, 1, 2, 3, 4, 5],
        "doubled": [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5],
        "summed": [0, 1, 3, 6, 10, 15],
    }
    places = {row["place"] for rows in told["answers"].values() for row in rows}
    for place in places:
        assert place.startswith(str(tmp_path / "cluster")), "it runs in the working folder of an executor"
        assert place.endswith(" False"), "its module cannot be imported there"
    # Executors write where they are said to see the folder, and nowhere else.
    assert set(told["exported"]) == {"shared"}
    for sink in ("shared", "own"):
        found = pq.read_table(tmp_path / "driver" / sink)
        assert sorted(found["n"].to_pylist()) == [0, 1, 2, 3, 4, 5]
