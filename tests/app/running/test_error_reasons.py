"""Whoever reads the report, the live table or the log of a query that an evaluation error fails learns what failed."""

from __future__ import annotations

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from rich.console import Console

from freshet.app import App
from freshet.cli.live import table

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


def no_threes(number: pa.Array) -> pa.Array:
    if 3 in number.to_pylist():
        raise ValueError("not a number")
    return pc.add(number, pa.scalar(1, pa.int32()))


COUNTED = "1 evaluation error in 4 tuples (on_error = fail)"
REASONS = {
    "own": f"{COUNTED}: function no_threes raised ValueError: not a number",
    "own_on_spark": f"{COUNTED}: function no_threes raised ValueError: not a number",
    "computed": f"{COUNTED} in 12 / (v - 3)",
    "summed": f"{COUNTED} in one or more of: v + 2147483644; ",
}


def test_the_reason_names_what_failed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    app = App("strict", state=tmp_path / "state", master="local[2]")
    app.stream("s", "v int")
    app.function("no_threes", no_threes, "int", returns="int")
    texts = {
        "own": "SELECT no_threes(v) AS x FROM s",
        "own_on_spark": "SELECT no_threes(v) AS x, soundex(CAST(v AS string)) AS y FROM s",
        "computed": "SELECT 12 / (v - 3) AS x FROM s",
        "summed": "SELECT sum(v + 2147483644) AS x FROM s [RANGE 1 SECOND SLIDE 1 SECOND]",
        "fine": "SELECT v FROM s",
    }
    for name, text in texts.items():
        app.query(name, text, on_error="fail")
    with app.start() as run:
        run.push("s", [{"v": value} for value in (1, 2, 3, 4)])
        assert run.drain(300)
        report = run.report()
    assert report["queries"]["fine"]["state"] == "active"
    logged = [record.getMessage() for record in caplog.records]
    for name, told in REASONS.items():
        query = report["queries"][name]
        assert told in (query["reason"] or "")
        console = Console(width=300, height=60, record=True, file=io.StringIO())
        console.print(table({**report, "queries": {name: query}}, 60))
        assert any(line.startswith(f"{name}: quarantined, {told}") for line in console.export_text().splitlines())
        assert any(line.startswith(f"query {name} is quarantined: ") and told in line for line in logged)
