"""What a person sees while an application runs."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from typing import Any, cast

import pytest
from rich.console import Console, ConsoleDimensions, RenderableType

from freshet.app.reports.report import build
from freshet.app.reports.types import Report
from freshet.cli import run
from freshet.cli.interrupts import Interrupts
from freshet.cli.live import line, table
from freshet.cli.screen import Screen
from freshet.model import Chain, ChainResult, Curve, Promises, Train
from freshet.quality import Meters, Waiting
from freshet.quality.optimizer import Look, MeasureLook, Tally
from freshet.quality.snapshots import BalanceSnapshot
from freshet.quality.waiting import QueueLength

CHAIN = Chain((0,), (Train("s", 0, 1),))


def report(queries: int, /, **parts: Any) -> Report:
    """A report of real meters: query ``q7`` has been stale for 7 of 1,000 seconds."""
    meters = Meters(start=0.0, workers=2)
    for number in range(queries):
        name = f"q{number}"
        meters.add_query(name, 0.0)
        result = ChainResult(CHAIN, 3, (), (500.0 - number,))
        meters.record(name, result, 500.0, rows_in=12_345)
        meters.wait(name, Waiting.in_queues([QueueLength(number, 10, 1000.0, 1.0)]))
    given: dict[str, Any] = {
        "app": "monitor",
        "status": "running",
        "policy": "fcfs",
        **meters.snapshot(1000.0),
        "streams": {},
        "sources": {},
        "mirrors": {},
        "sinks": {},
        "tables": {},
        "changes": {},
        "notes": [],
        "settings": {},
        "error": None,
    }
    return build(**(given | parts))


def draw(picture: RenderableType, width: int, height: int = 40) -> list[str]:
    console = Console(width=width, height=height, record=True, file=io.StringIO())
    console.print(picture)
    return [text.rstrip() for text in console.export_text().splitlines()]


def shown(height: int, width: int = 120, queries: int = 5, **parts: Any) -> list[str]:
    return draw(table(report(queries, **parts), height), width, height)


def lively(status: str = "running", app: str = "monitor") -> Report:
    """A report with queries in every state, and answers of the last seconds."""
    meters = Meters(start=0.0, workers=2)
    for name, weight in (("large", 0.5), ("suspicious_logins_of_the_night", 1.0), ("stuck", 1.0), ("broken", 1.0)):
        meters.add_query(name, 0.0, Promises(weight))
        meters.record(name, ChainResult(CHAIN, 2, (), (95.0, 96.0)), 97.0, rows_in=1000)
    meters.hold("stuck", "its sink is slow")
    meters.quarantine("broken", "no such function\nat line 1")
    meters.wait("stuck", Waiting(rows=70_000, bytes=1, since=60.0))
    return report(0, status=status, app=app, **meters.snapshot(100.0))


RESIDENTS = {
    "wanted": 2,
    "reason": None,
    "present": [
        {"process": 1, "host": "one", "kept_bytes": 1_500_000},
        {"process": 2, "host": "two", "kept_bytes": 500_000},
    ],
    "restarts": 1,
    "dispatches": 1234,
    "lost": 1,
    "given_back": 1,
}


def test_wide_shows_residents_states_and_ways() -> None:
    ways = {"resident": {"calls": 1230, "per_call_s": 0.0028}, "vectorised": {"calls": 1, "per_call_s": None}}
    told = report(2, residents=RESIDENTS, ways=ways)
    lines = draw(table(told, wide=True), 120)
    assert lines[2:6] == [
        "residents 2 of 2, 1 on one, 1 on two, 1 restart, 1,234 dispatches, 1 lost, 1 unit given back",
        "states found 0 times, rebuilt 0 times, 2.0 MB kept",
        "steps by resident: 1,230 at 2.8 ms",
        "steps by vectorised: 1 at -",
    ]
    assert lines[6] == ""
    assert draw(table(told), 120)[2] == ""
    assert len(draw(table(told, 12, wide=True), 120, 12)) <= 12
    assert "residents 2 of 2, 1 on one" in line(told, wide=True)
    assert "residents" not in line(told)
    none = dict(RESIDENTS, wanted=0, present=[], reason="because of a setting")
    assert draw(table(report(1, residents=none, ways={}), wide=True), 120)[2].startswith(
        "residents 0 of 0, because of a setting, 1 restart"
    )


def test_all_queries_worst_freshness_first() -> None:
    lines = shown(40)
    assert lines[0] == "monitor  running   1000 s   policy fcfs   2 workers 0.0 % busy   deciding 0.0 %"
    assert lines[1] == "no answers in the last seconds   oldest waiting 0 s   fresh 99.8 %"
    titles = ["query", "state", "age", "p95", "oldest", "fresh", "waiting", "out/s", "in/s", "out", "in"]
    assert lines[3].split() == titles
    assert [row.split()[0] for row in lines[4:]] == ["q4", "q3", "q2", "q1", "q0"]
    assert "99.6 %" in lines[4]


def test_more_queries_than_lines() -> None:
    for height in (10, 24, 50):
        lines = shown(height, queries=250)
        assert len(lines) == height
        assert lines[4].startswith("q249")
        assert lines[-1].startswith(f"... and {250 - (height - 5)} more, each at least ")
        assert lines[-1].endswith(" % fresh")


@pytest.mark.parametrize("width", [1, 7, 20, 40, 60, 80, 120, 200])
def test_nothing_is_wrapped_at_any_width(width: int) -> None:
    for lines in (shown(24, width, 250), shown(24, width, 3), draw(table(lively(), 24), width, 24)):
        assert len(lines) <= 24
        assert max(map(len, lines)) <= width
    assert len(draw(table(lively(), 24), width, 24)) == 3 + 1 + 4 + 2


def test_the_latest_decision_has_a_line_where_one_is_to_spare() -> None:
    why = "rb-mcq runs 1 of 3, highest output rate: q1 (priority 1), before q2 (priority 0.5)"
    assert shown(10, latest_decision=why)[-1] == why
    assert shown(10, width=40, latest_decision=why)[-1] == "rb-mcq runs 1 of 3, highest output rate…"
    assert shown(9, latest_decision=why)[-1].startswith("q0"), "queries come first"
    assert shown(10, latest_decision=why, status="stopped")[-1].startswith("q0")
    assert shown(10)[-1].startswith("q0")


@pytest.mark.parametrize(
    ("width", "titles"),
    [
        (40, "query state age waiting"),
        (60, "query state age fresh waiting"),
        (80, "query state age p95 oldest fresh waiting"),
        (120, "query state age p95 oldest fresh waiting out/s in/s out in"),
        (200, "query state age p95 oldest fresh waiting out/s in/s out in"),
    ],
)
def test_columns_go_by_priority(width: int, titles: str) -> None:
    assert draw(table(lively(), 24), width)[3].split() == titles.split()


def test_a_picture_of_a_narrow_screen() -> None:
    assert draw(table(lively(), 24), 40) == [
        "monitor  running   100 s   policy fcfs",
        "answers 1.5 s old (p95 2 s)",
        "",
        "query      state            age  waiting",
        "broken     quarantined    1.5 s        0",
        "stuck      held           1.5 s     70 k",
        "suspicio…  running        1.5 s        0",
        "large      running        1.5 s        0",
        "stuck: held back, its sink is slow",
        "broken: quarantined, no such function",
    ]


def test_a_picture_of_a_wide_screen() -> None:
    assert draw(table(lively(), 24), 100) == [
        "monitor  running   100 s   policy fcfs   2 workers 0.0 % busy   deciding 0.0 %",
        "answers 1.5 s old (p95 2 s)   oldest waiting 40 s   fresh 88.5 %",
        "",
        "query                       state            age      p95   oldest    fresh  waiting   out/s    in/s",
        "broken                      quarantined    1.5 s      2 s        -   98.0 %        0     0.1      74",
        "stuck                       held           1.5 s      2 s     40 s   60.0 %     70 k     0.1      74",
        "suspicious_logins_of_the_…  running        1.5 s      2 s        -   98.0 %        0     0.1      74",
        "large                       running        1.5 s      2 s        -   98.0 %        0     0.1      74",
        "stuck: held back, its sink is slow",
        "broken: quarantined, no such function",
    ]


def test_colours_tell_states_and_words_tell_them_without() -> None:
    coloured = Console(width=80, force_terminal=True, color_system="standard", file=io.StringIO(), _environ={})
    plain = Console(
        width=80, force_terminal=True, color_system="standard", file=io.StringIO(), _environ={"NO_COLOR": "1"}
    )
    for console in (coloured, plain):
        console.print(table(lively(), 24))
    text = cast(io.StringIO, coloured.file).getvalue()
    rows = {line.split()[0].split("m")[-1]: line for line in text.splitlines() if "1.5 s" in line}
    for name, colour in (("broken", "1;31m"), ("stuck", "33m"), ("large", "32m")):
        (row,) = [line for line in rows.values() if name in line]
        assert f"\x1b[{colour}" in row
    text = cast(io.StringIO, plain.file).getvalue()
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]", text)
    assert all(word in text for word in ("quarantined", "held", "running"))


def test_draining_says_how_to_leave_at_every_width() -> None:
    interrupts = Interrupts()
    assert interrupts.hint == "draining, Ctrl-C to leave"
    interrupts.count = 1
    assert interrupts.hint == "draining, Ctrl-C again to leave"
    for width in (40, 60, 120):
        for name in ("monitor", "an application with a long name"):
            lines = draw(table(lively("draining", name), 24, interrupts.hint), width)
            assert "draining, Ctrl-C again to leave" in lines[0]
            assert [row.split()[1] for row in lines[4:8]] == ["quarantined", "held", "draining", "draining"]
    interrupts.hurried = True
    assert interrupts.hint == "leaving"


def test_ties_are_resolved_by_weight() -> None:
    meters = Meters(start=0.0)
    for name, weight in (("a", 0.1), ("b", 1.0), ("c", 0.5), ("d", 1.0)):
        meters.add_query(name, 0.0, Promises(weight))
    lines = draw(table(report(0, **meters.snapshot(10.0)), 24), 80)
    assert [row.split()[0] for row in lines[4:]] == ["b", "d", "c", "a"]


def test_trouble_comes_first_and_the_rest_is_counted() -> None:
    meters = Meters(start=0.0)
    for number in range(30):
        meters.add_query(f"q{number:02}", 0.0)
    meters.wait("q01", Waiting(rows=1, bytes=1, since=0.0))
    for number in range(20, 30):
        meters.quarantine(f"q{number}", "no")
    lines = draw(table(report(0, **meters.snapshot(10.0)), 14), 80)
    assert [row.split()[0] for row in lines[4:10]] == ["q20", "q21", "q22", "q23", "q24", "q25"]
    assert lines[10] == "... and 24 more, each at least 0.0 % fresh, 4 quarantined"
    assert len(lines) == 14


def test_at_the_end_the_ages_are_those_of_the_whole_run() -> None:
    lines = shown(40, status="stopped")
    assert lines[1].startswith("answers were 2 s old (p95 4")
    assert shown(40)[1].startswith("no answers in the last seconds")


class _Terminal(Console):
    """A console whose terminal can be resized."""

    now = ConsoleDimensions(80, 24)

    @property  # type: ignore[misc]
    def size(self) -> ConsoleDimensions:
        return self.now


def test_a_resize_erases_what_is_visible_line_by_line() -> None:
    written = io.StringIO()
    console = _Terminal(file=written, force_terminal=True, _environ={"TERM": "xterm"})
    erased = "\x1b[H" + "\x1b[2K\x1b[1B" * 12 + "\x1b[H"
    with Screen(console) as screen:
        screen.show("one")
        assert screen.height == 23
        console.now = ConsoleDimensions(40, 12)
        assert erased not in written.getvalue()
        screen.show("two")
        assert written.getvalue().count(erased) == 1
        screen.show("three")
        assert written.getvalue().count(erased) == 1
        assert "\x1b[2J" not in written.getvalue()


def test_what_is_wrong_is_said() -> None:
    sources = {"packets": {"state": "held back", "reason": "no room\nat all"}}
    sinks = {"q1/jsonl": {"state": "failing", "reason": "OSError: gone", "waiting": 40}}
    lines = shown(40, sources=sources, sinks=sinks)
    assert lines[-2:] == [
        "source packets: held back, no room",
        "sink q1/jsonl: failing, OSError: gone (40 rows not delivered)",
    ]
    assert "source packets: held back, no room" in line(report(3, sources=sources, sinks=sinks))


def test_a_beta_that_is_found_stands_beside_the_policy() -> None:
    balance: BalanceSnapshot = {"bound": "response at most 1 s", "observed": 2.0, "beta": 0.55, "looks": 3}
    assert "policy fcfs, beta 0.55" in " ".join(shown(24, balance=balance))
    assert "beta" not in " ".join(shown(24))


def test_a_line_for_logs() -> None:
    text = line(report(2))
    assert text.startswith(
        "1000 s · 2 queries · no answers in the last seconds · oldest waiting 0 s · in 24.7 k · out 6 · waiting 1 · "
    )
    assert "\n" not in text
    assert line(lively("draining")).startswith("100 s · draining · 4 queries · answers 1.5 s old (p95 2")


def test_a_run_without_anything_yet() -> None:
    assert "no answers in the last seconds · nothing waits" in line(report(0))
    assert len(shown(24, queries=0)) >= 2


def test_the_qos_has_a_column_where_some_query_has_a_curve() -> None:
    meters = Meters(start=0.0)
    meters.add_query("tight", 0.0, Promises(curve=Curve([(0, 1), (1, 1), (3, 0)])))
    meters.add_query("plain", 0.0)
    meters.record("tight", ChainResult(CHAIN, 1, (), (4.0,)), 6.0, rows_in=10)
    found = report(0, **meters.snapshot(10.0))
    _, head, _, columns, *rows = draw(table(found, 40), 120)
    assert "qos 50.0 %" in head
    assert columns.split()[5:7] == ["fresh", "qos"]
    cells = {row.split()[0]: row for row in rows}
    assert "80.0 %   50.0 %" in cells["tight"]
    assert "100 %        -" in cells["plain"]
    assert "qos 50.0 %" in line(found)
    assert "qos" not in line(report(3))


def test_what_is_expected_has_a_column_if_something_is() -> None:
    told = report(3)
    late = MeasureLook("latency", "must", 1.0, observed=3.0, expected=2.0, ahead=2.0, violated=True, weight=1.0)
    for name, measures in (("q0", (late,)), ("q1", (replace(late, observed=1.0, violated=False),))):
        tally = Tally()
        tally.add(Look(7.0, 3.0, "segment", "pcs", "best", measures), seconds=3.0)
        told["queries"][name]["promise"] = tally.snapshot("pcs", pinned=False)
    lines = draw(table(told, 24), 60)
    assert lines[3].split()[:4] == ["query", "state", "promise", "age"]
    cells = {line.split()[0]: line.split("running")[1].split("  ") for line in lines[4:7]}
    shown = {name: next(cell.strip() for cell in each if cell.strip()) for name, each in cells.items()}
    assert shown == {"q0": "broken: latency", "q1": "kept", "q2": "-"}
    assert "promise" not in draw(table(report(3), 24), 200)[3]


def test_evaluation_errors_are_told() -> None:
    seen = report(2)
    seen["queries"]["q1"]["errors"] = 3
    assert any("q1: 3 evaluation errors gave NULL" in text for text in draw(table(seen, 20), 120))
    assert not any("evaluation error" in text for text in shown(20, queries=2))


def test_without_a_terminal_the_end_of_a_run_is_told_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Ending:
        """A run that ends while it is shown, and a line is due then."""

        def __init__(self) -> None:
            self.states = iter(["running", "draining", "stopped", "stopped"])

        def report(self) -> Report:
            return report(2, status=next(self.states))

    monkeypatch.setattr(run, "LINE", 0.0)
    with Interrupts() as interrupts, run.showing(cast(Any, Ending()), interrupts, quiet=False, wide=False) as show:
        for _ in range(3):
            show()
    told = [text.split(" · ")[1] for text in capsys.readouterr().out.splitlines()]
    assert told == ["2 queries", "draining", "stopped"], "a line says nothing of a run that goes on as it should"


def test_periodic_queries_show_what_they_missed_and_what_their_answers_are_worth() -> None:
    told = report(2)
    instances = {"instances": 8, "missed": 2, "quality": 0.625}
    queries = {"q0": {**told["queries"]["q0"], "instances": instances}, "q1": told["queries"]["q1"]}
    head, continuous, periodic = draw(table({**told, "queries": queries}, 40), 160)[3:6]
    assert [word in head for word in ("missed", "quality")] == [True, True]
    assert "25.0 %" in periodic
    assert "62.5 %" in periodic
    assert "25.0 %" not in continuous
    assert "missed" not in "".join(draw(table(told, 40), 160))
