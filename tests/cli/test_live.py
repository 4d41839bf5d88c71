"""What a person sees while an application runs."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from freshet.app.report import build
from freshet.cli.live import line, table
from freshet.model import Chain, ChainResult, Curve, Train
from freshet.quality import Meters, Waiting
from freshet.quality.waiting import QueueLength


def report(queries: int, **parts: Any) -> dict[str, Any]:
    """A report of real meters: query ``q7`` has been stale for 7 of 1,000 seconds."""
    meters = Meters(start=0.0, workers=2)
    for number in range(queries):
        name = f"q{number}"
        meters.add_query(name, 0.0)
        result = ChainResult(Chain((0,)), Train("s", 0, 12_345), 3, (), (500.0 - number,))
        meters.record(name, result, 500.0)
        meters.wait(name, Waiting.in_queues([QueueLength(number, 10, 1000.0, 1.0)]))
    given: dict[str, Any] = {
        "app": "monitor",
        "status": "running",
        "policy": "fcfs",
        "meters": meters.snapshot(1000.0),
        "streams": {},
        "sources": {},
        "sinks": {},
        "tables": {},
        "changes": {},
        "notes": [],
        "settings": {},
        "error": None,
    }
    return build(**(given | parts))


def shown(height: int, width: int = 120, queries: int = 5, **parts: Any) -> list[str]:
    console = Console(width=width, height=height, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(table(report(queries, **parts), height))
    return console.export_text().splitlines()


def test_all_queries_worst_freshness_first() -> None:
    lines = shown(40)
    assert lines[0].startswith("monitor  running  1000 s   policy fcfs")
    assert "2 workers" in lines[0]
    assert lines[2].split() == ["query", "state", "in", "out", "waiting", "mean", "p95", "fresh", "in/s", "out/s"]
    assert [row.split()[0] for row in lines[3:]] == ["q4", "q3", "q2", "q1", "q0"]
    assert lines[3].split()[:6] == ["q4", "active", "12.3", "k", "3", "4"]
    assert "99.6 %" in lines[3]


def test_more_queries_than_lines() -> None:
    for height in (10, 24, 50):
        lines = shown(height, queries=250)
        assert len(lines) <= height
        assert lines[3].startswith("q249")
        assert lines[-1].startswith(f"... and {250 - (len(lines) - 4)} more, each with a freshness of at least ")


def test_a_narrow_screen_keeps_one_line_per_query() -> None:
    assert len(shown(40, width=60)) == 8 + 1


def test_what_is_wrong_is_said() -> None:
    sources = {"packets": {"state": "held back", "reason": "no room\nat all"}}
    sinks = {"q1/jsonl": {"state": "failing", "reason": "OSError: gone"}}
    lines = shown(40, sources=sources, sinks=sinks)
    assert lines[-2:] == ["source packets: held back, no room", "sink q1/jsonl: failing, OSError: gone"]
    assert "source packets: held back, no room" in line(report(3, sources=sources, sinks=sinks))


def test_a_line_for_logs() -> None:
    text = line(report(2))
    assert text.startswith("1000 s · 2 queries · in 24.7 k · out 6 · waiting 1 · response ")
    assert "\n" not in text


def test_a_run_without_anything_yet() -> None:
    assert "response -" in line(report(0))
    assert len(shown(24, queries=0)) >= 2


def test_the_qos_has_a_column_where_some_query_has_a_curve() -> None:
    meters = Meters(start=0.0)
    meters.add_query("tight", 0.0, curve=Curve([(0, 1), (1, 1), (3, 0)]))
    meters.add_query("plain", 0.0)
    meters.record("tight", ChainResult(Chain((0,)), Train("s", 0, 10), 1, (), (4.0,)), 6.0)
    found = report(0, meters=meters.snapshot(10.0))
    console = Console(width=120, height=40, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(table(found, 40))
    head, _, columns, *rows = console.export_text().splitlines()
    assert "qos 50.0 %" in head
    assert columns.split()[7:9] == ["fresh", "qos"]
    cells = {row.split()[0]: row for row in rows}
    assert "80.0 %  50.0 %" in cells["tight"]
    assert "100 %       -" in cells["plain"]
    assert "qos 50.0 %" in line(found)
    assert "qos" not in line(report(3))
