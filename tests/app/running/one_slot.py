"""An application on a Spark of one slot that ran before: ``python -m tests.app.running.one_slot FOLDER``. It prints a
line of JSON."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from freshet.app import App
from freshet.spark.session.java import ensure_java


def main(folder: Path) -> None:
    """Runs a compiled query, one with a state, and one in Spark's own form, each over several trains."""
    ensure_java()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {"spark.ui.enabled": "false", "spark.sql.session.timeZone": "UTC", "spark.sql.ansi.enabled": "true"}
    builder = SparkSession.builder.master("local[1]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    builder.getOrCreate()
    app = App("slot", state=folder / "state", workers=2)
    app.stream("s", "ts timestamp, v bigint", event_time="ts", lateness="0 s")
    app.query("plain", "SELECT v FROM s WHERE v % 10 = 3")
    app.query("sums", "SELECT sum(v) AS n FROM s [RANGE 10 SECONDS SLIDE 10 SECONDS]")
    app.query("own", "SELECT v FROM s WHERE crc32(cast(v AS string)) > 0 AND v < 5")
    with app.start() as run:
        for first in range(0, 60, 20):
            run.push("s", [{"ts": f"2024-01-01 12:00:{second:02}", "v": second} for second in range(first, first + 20)])
            assert run.drain()
        answers = {name: [next(iter(row.values())) for row in run.read(name).to_pylist()] for name in app.queries}
        report = run.report()
        print(json.dumps({"answers": answers, "residents": report["residents"], "ways": sorted(report["ways"])}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
