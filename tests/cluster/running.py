"""Runs the application of :mod:`tests.cluster.driver`, and checks what it answered."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from tests.cluster.load import QUERIES, rows_of


def run_app(
    folder: Path,
    master: str,
    settings: Mapping[str, str],
    told: Callable[[dict[str, Any]], None] = lambda told: None,
    names: Iterable[str] = QUERIES,
    **options: Any,
) -> dict[str, Any]:
    """Runs the application of windows and joins in a process of its own; returns what it told at the end.

    Args:
        folder: For its state.
        master: The cluster.
        settings: Of Spark.
        told: Is called with everything that it tells, while it is there.
        names: Of the queries.
        options: Of the application.
    """
    given = [json.dumps(each) for each in (dict(settings), list(names), options)]
    command = [sys.executable, "-m", "tests.cluster.driver", str(folder), master, *given]
    outcome: dict[str, Any] = {}
    with (folder / "driver.err").open("wb") as errors:
        driver = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, cwd=Path(__file__).parents[2]
        )
    assert driver.stdin is not None
    assert driver.stdout is not None
    with driver, driver.stdin, driver.stdout as lines:
        for line in lines:
            outcome |= (found := json.loads(line))
            told(found)
            if "answers" in found:
                driver.stdin.close()  # it ends then
    assert driver.returncode == 0, (folder / "driver.err").read_text()[-3000:]
    return outcome


def check(outcome: Mapping[str, Any]) -> None:
    """Every query is well, and has answered as DuckDB does over all rows."""
    assert set(outcome["states"].values()) == {"active"}
    rows = rows_of()
    with duckdb.connect(config={"threads": "1"}) as connection:
        for name in rows:
            plain = [{**row, "ts": row["ts"].replace(tzinfo=None)} for row in rows[name]]
            connection.register(name, pa.Table.from_pylist(plain))
        for name, answer in outcome["answers"].items():
            expected = Counter(connection.execute(QUERIES[name][1]).fetchall())
            assert Counter(tuple(row.values()) for row in answer) == expected, name


def spark_log(folder: Path) -> str:
    """What Spark's driver has said so far."""
    return "".join(path.read_text(errors="replace") for path in sorted((folder / "state").glob("spark.log*")))
