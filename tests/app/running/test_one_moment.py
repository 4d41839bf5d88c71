"""A report is of one moment: it asks the engine once, so that its figures belong together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import freshet
from freshet.app.running.loop import Loop


@pytest.mark.spark
def test_a_report_asks_the_engine_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = freshet.App(
        "moment", state=tmp_path / "state", master="local[2]", policy="fas-mcq", expect={"response": "2 s"}
    )
    app.stream("s", "v int")
    app.query("q", "SELECT v FROM s", curve=[(0, 1.0), ("500 ms", 1.0), (2, 0.0)])
    with app.start() as run:
        run.push("s", [{"v": 1}])
        run.drain()
        asked: list[Callable[[], Any]] = []
        ask = Loop.ask

        def counted(self: Loop, function: Callable[[], Any]) -> Any:
            asked.append(function)
            return ask(self, function)

        app.report = None  # only the report below asks
        monkeypatch.setattr(Loop, "ask", counted)
        told = run.report()
        assert len(asked) == 1
        assert told["balance"] is not None
        assert {each["query"] for each in told["feasible"]} <= {"q", "all queries"}
