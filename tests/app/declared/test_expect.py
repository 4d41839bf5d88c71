"""Expectations as applications declare them."""

from __future__ import annotations

from pathlib import Path

import pytest

from freshet.app import App
from freshet.model import UserError
from freshet.quality.optimizer import LookSettings

FILE = """
[app]
classes = {gold = 0.8}
look_every = "2 s"
look_ahead = "500 ms"
[streams.s]
schema = "k int"
[queries.short]
sql = "SELECT k FROM s"
expect.latency = "2 s"
[queries.long]
sql = "SELECT k FROM s"
[queries.long.expect]
latency = {class = "must", points = [[0, "2 s"], ["10 s", "1 s"]]}
memory = {class = "gold", intervals = [[[0, "10 MB"], ["1 min", "5 MB"]], [["2 min", "1 MB"]]]}
throughput = {class = {bronze = 0.3}, points = "200 rows/s"}
every = "1 s"
[queries.plain]
sql = "SELECT k FROM s"
"""


def test_a_file_declares_expectations(tmp_path: Path) -> None:
    (tmp_path / "app.toml").write_text(FILE)
    app = App.from_toml(tmp_path / "app.toml")
    assert app.check() == []
    texts = {name: [wish.text() for wish in spec.promises.expect] for name, spec in app.queries.items()}
    assert texts == {
        "short": ["latency 2 s (best-effort, weight 0.5)"],
        "long": [
            "latency 2 s at 0 s, 1 s at 10 s (must, weight 1)",
            "memory 10 MB at 0 s, 5 MB at 1 min, 1 MB at 2 min (gold, weight 0.8)",
            "throughput 200 rows/s (bronze, weight 0.3)",
        ],
        "plain": [],
    }
    assert app.settings.looks == LookSettings(every=2.0, ahead=0.5)
    long = app.queries["long"].promises.expect
    assert (long.every, long.floor(1.0), long.floor(0.5)) == (1.0, 0.8, 0.3)


def test_python_declares_the_same() -> None:
    app = App("a", classes={"gold": 0.8})
    app.stream("s", "k int")
    app.query("q", "SELECT k FROM s", expect={"memory": {"class": "gold", "points": "1 MB"}, "every": 1})
    [wish] = app.queries["q"].promises.expect
    assert (wish.priority.weight, wish.at(0.0)) == (0.8, 1e6)


@pytest.mark.parametrize(
    ("expect", "line"),
    [
        ({"latncy": 1}, "query q: expect.latncy: there is no such measure (there are: latency, memory, throughput)"),
        ({"latency": 0},
         "query q: expect.latency: a latency of 0 cannot be expected: use a value above 0, such as '2 s'"),
        ({"every": 0}, "query q: expect.every: must be above 0, such as '3 s'"),
        ({"latency": 1, "every": "500 ms"},
         "query q: a look-ahead of 1 s is too long: use less than the 500 ms between looks"),
        ({}, "query q: expect names no measure: use latency, memory or throughput, such as {'latency': '2 s'}"),
        ("2 s", "query q: expect: is a table by measure, such as {\"latency\": \"2 s\"}, not '2 s'"),
    ],
)  # fmt: skip
def test_python_is_told_the_place(expect: object, line: str) -> None:
    app = App("a", look_ahead="1 s")
    app.stream("s", "k int")
    with pytest.raises(UserError) as refused:
        app.query("q", "SELECT k FROM s", expect=expect)  # type: ignore[arg-type]
    assert str(refused.value) == line


def test_a_class_with_a_wrong_weight_is_one_mistake(tmp_path: Path) -> None:
    wrong = FILE.replace("gold = 0.8", "gold = -1")
    (tmp_path / "app.toml").write_text(wrong)
    with pytest.raises(UserError) as refused:
        App.from_toml(tmp_path / "app.toml")
    lines = str(refused.value).splitlines()
    assert lines == [f"{tmp_path / 'app.toml'}: app.classes: class gold: its weight must be a number above 0, not -1.0"]
