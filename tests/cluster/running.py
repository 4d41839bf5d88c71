"""Runs the application of :mod:`tests.cluster.driver`, and checks what it answered."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from tests.cluster.load import QUERIES, rows_of


def run_app(
    folder: Path, master: str, settings: dict[str, str], pushed: Callable[[int], None] = lambda rows: None
) -> dict[str, Any]:
    """Runs the application of windows and joins in a process of its own; returns what it told at the end."""
    command = [sys.executable, "-m", "tests.cluster.driver", str(folder), master, json.dumps(settings)]
    outcome: dict[str, Any] = {}
    with (folder / "driver.err").open("wb") as errors:
        driver = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, cwd=Path(__file__).parents[2])
    assert driver.stdout is not None
    with driver, driver.stdout as lines:
        for line in lines:
            told = json.loads(line)
            outcome |= told
            if "pushed" in told:
                pushed(told["pushed"])
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
        for name, (_, sql) in QUERIES.items():
            expected = Counter(connection.execute(sql).fetchall())
            assert Counter(tuple(row.values()) for row in outcome["answers"][name]) == expected, name


def spark_log(folder: Path) -> str:
    """What Spark's driver has said so far."""
    return "".join(path.read_text(errors="replace") for path in sorted((folder / "state").glob("spark.log*")))
