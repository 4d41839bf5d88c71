"""A task that fails and is run again: two attempts, one commit. Needs a Spark that retries, so a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

_PROGRAM = """
import json, sys
from pathlib import Path
import pyarrow as pa
import freshet.spark.worker.vectorised as vectorised
from freshet.model import parse_schema
from freshet.spark.session.session import open_session
from tests.spark.kit import Harness, query, with_arrivals, write_train

def dies_after_writing(batches):
    # The first attempt of each task is lost when its file is durable and its report is on the way.
    from pyspark import TaskContext
    from freshet.spark.worker.vectorised import run_vectorised
    reports = list(run_vectorised(batches))
    if TaskContext.get().attemptNumber() == 0:
        raise RuntimeError("a lost host")
    yield from reports

vectorised.run_vectorised = dies_after_writing
folder = Path(sys.argv[1])
session = open_session("attempts", "local[2,3]", log_folder=folder / "log")
schema = parse_schema("k bigint")
with Harness(session, folder / "state") as harness:
    harness.install({"s": schema}, query("q", "s", "k > 0", [("k", "k + 1")]))
    train = write_train(harness.state, "s", with_arrivals(pa.table([list(range(50))], schema=schema)))
    result = harness.run(harness.unit(train, "q"))
    output = harness.read(result, "q")
    print(json.dumps({
        "retry": result.retry,
        "failure": result.chains[0].failure,
        "rows": result.chains[0].rows_out,
        "values": output.column("k").to_pylist(),
        "committed": [file.name for file in result.files],
        "written": sorted(file.name for file in (harness.state / "segments").glob(f"{result.unit.id}-*")),
    }))
session.stop()
"""


def test_only_the_attempt_that_reported_is_committed(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
        cwd=Path(__file__).parents[3],
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert (seen["retry"], seen["failure"], seen["rows"]) == (None, None, 49)
    assert seen["values"] == list(range(2, 51))
    assert len(seen["written"]) == 2
    assert len(seen["committed"]) == 1
    assert set(seen["committed"]) < set(seen["written"])
