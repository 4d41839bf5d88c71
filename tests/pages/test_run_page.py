"""The page of a run: one file, whole, safe, with a chart for every measure of every query."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.model import Curve, Promises
from freshet.pages import run_page
from freshet.pages.chart import ChartLine, ChartSize, chart
from freshet.policies import FirstComeFirstServed
from freshet.quality.history import History, HistoryRecord
from freshet.simulation.executor import Profile
from freshet.simulation.world import SimulatedQuery, World

VOID = {"meta", "input", "br"}


class PageReader(HTMLParser):
    """Checks that all elements are closed in order; keeps what is named."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.labels: list[str] = []
        self.outside: list[str] = []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            self.labels += [value] if name == "aria-label" else []
            self.outside += [value] if name in ("src", "href") else []

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def record() -> HistoryRecord:
    queries = [
        SimulatedQuery.straight("alerts", "s", [Profile(0.01)], curve=Curve.deadline(0.03, 0.05)),
        SimulatedQuery.straight("archive", "s", [Profile(0.05, 0.5)], weight=0.1),
    ]
    world = World({"s": np.linspace(0.0, 5.0, 60)}, queries, FirstComeFirstServed(), history=History(every=0.05))
    world.run()
    return world.course("night")


def test_it_needs_nothing_else_and_shows_every_query(record: HistoryRecord) -> None:
    page = run_page(record)
    seen = PageReader(page)
    assert seen.outside == []
    assert "http" not in page
    measures = ("freshness", "age of answers, p95", "QoS, running average", "waiting tuples")
    for name in ("alerts", "archive"):
        assert {f"{measure} of {name}" for measure in measures} <= set(seen.labels)
    assert "fcfs runs" in page
    assert "full worth up to 30 ms" in page


def test_its_data_are_those_of_the_history(record: HistoryRecord) -> None:
    found = re.search(r'<script type="application/json" id="run">(.*?)</script>', run_page(record), re.S)
    assert found is not None
    data = json.loads(found[1])
    assert data["times"] == record["times"]
    assert data["queries"]["alerts"]["freshness"] == record["queries"]["alerts"]["freshness"]


def test_it_says_whether_promises_can_be_kept_if_the_run_judged_that(record: HistoryRecord) -> None:
    assert "feasible" not in run_page(record)
    told = run_page({**record, "feasible": "not feasible: alerts <20 ms>"})
    assert "<p>not feasible: alerts &lt;20 ms&gt;</p>" in told


def test_where_no_samples_were_taken_a_line_has_a_gap() -> None:
    def pieces(times: list[float]) -> int:
        drawn = chart(times, [ChartLine([1.0] * len(times), "x")], ChartSize(200, 40), top=2.0, label="q")
        [line] = re.findall(r'class="line x" d="([^"]*)"', drawn)
        return str(line).count("M")

    assert pieces([0.0, 1.0, 2.0, 3.0, 4.0, 5.0]) == 1
    assert pieces([0.0, 1.0, 2.0, 3.0, 30.0, 31.0]) == 2
    assert pieces([]) == 0


def test_a_change_of_weight_is_told_as_one(record: HistoryRecord) -> None:
    query = SimulatedQuery.straight("lonely", "s", [Profile(0.01)])
    world = World({"s": np.linspace(0.0, 5.0, 60)}, [query], FirstComeFirstServed(), history=History(every=0.05))
    world.run(2.0)
    world.engine.set_promises("lonely", Promises(weight=0.5))
    world.run(3.0)
    world.engine.set_promises("lonely", Promises(weight=0.5, curve=Curve.deadline(1.0)))
    world.run()
    marks = [text for _, text in world.course("night")["marks"]]
    assert marks == ["lonely has weight 0.5 now", "lonely has new promises"]


def test_names_cannot_break_out_of_it(record: HistoryRecord) -> None:
    evil = "</script><script>alert(1)</script>\"'<b>"
    page = run_page(
        {**record, "app": evil, "queries": {evil: record["queries"]["alerts"]}, "marks": [(1.0, evil)],
         "decisions": [evil] * len(record["times"])}
    )  # fmt: skip
    PageReader(page)
    assert "<script>alert" not in page


def test_without_curves_there_is_no_qos(record: HistoryRecord) -> None:
    assert "QoS" not in run_page({**record, "queries": {"archive": record["queries"]["archive"]}})


@given(st.lists(st.none() | st.floats(0.0, 1e9), min_size=1, max_size=50), st.floats(0.0, 1e9))
def test_lines_stay_inside_their_chart(values: list[float | None], top: float) -> None:
    times = list(map(float, range(len(values))))
    drawn = chart(times, [ChartLine(values, "x", area=True)], ChartSize(200, 40), top=top, label="q")
    for x, y in re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", drawn):
        assert -1.0 <= float(x) <= 200.0
        assert 0.0 <= float(y) <= 40.0
