"""The shorter stories of the demo: their applications, their words and pictures, and long runs of each."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import freshet
from freshet.demo.stories import StoryCard, cards
from freshet.demo.stories.joins import JoinSight, JoinsTold, Stations
from freshet.demo.stories.optimizer import BURST, CYCLE, LOADS, OptimizerTold, load_at
from freshet.demo.stories.periodic import CALM_RATE, MOST, PeriodicAnswer, PeriodicTold, grown
from freshet.quality.optimizer import Look, MeasureLook

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.mark.parametrize("card", cards().values(), ids=list(cards()))
def test_the_application_of_a_story_can_be_copied(card: StoryCard, tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text("element,worth\n1,1.0\n")
    (tmp_path / "story.toml").write_text(card.text())
    assert freshet.App.from_toml(tmp_path / "story.toml").check() == []


# The optimizer


def look(at: float, strategy: str, to: str, latency: tuple[float, float], memory: tuple[float, float]) -> Any:
    measures = [
        MeasureLook(name, "must", 1.0, seen, due, due, seen > due)
        for name, (seen, due) in (("latency", latency), ("memory", memory))
    ]
    return at, Look(at, at, strategy, to, "best", tuple(measures), seconds=0.5)


@pytest.fixture
def optimized() -> OptimizerTold:
    return OptimizerTold(
        [
            look(1.0, "pcs", "pcs", (0.2, 0.3), (4e6, 1e12)),
            look(5.0, "pcs", "segment", (0.4, 3600.0), (6e6, 5e5)),
            look(7.0, "segment", "segment", (2.0, 3600.0), (1e6, 5e5)),
            look(9.0, "segment", "pcs", (1.0, 0.3), (1e6, 1e12)),
            look(11.0, "pcs", "pcs", (0.6, 0.3), (3e6, 1e12)),
        ],
        part=4.0, sustained=20_000.0, rows=100_000, missing=0,
    )  # fmt: skip


def test_the_words_tell_each_change_with_its_reason(optimized: OptimizerTold) -> None:
    began, means, rows = optimized.paragraphs()
    assert began == (
        "The query began with pcs. In second 5 its memory was 6 MB where 500 KB was expected: the optimizer took "
        "segment. In second 9 its latency was 1 s where 300 ms was expected: the optimizer took pcs."
    )
    assert "its latency was 200 ms and 800 ms on average, and 4 MB and 2 MB waited" in means
    assert "3.5 MB waited, and its latency was 1.2 s" in means
    assert "100,000 rows came" in rows
    assert "Each was answered." in rows


def test_rows_without_an_answer_are_not_hidden(optimized: OptimizerTold) -> None:
    told = OptimizerTold(optimized.looks, optimized.part, optimized.sustained, optimized.rows, missing=7)
    assert "7 of them were not answered as they should" in told.paragraphs()[2]


def test_the_strategies_follow_each_other(optimized: OptimizerTold) -> None:
    assert optimized.spells() == [("pcs", 0.0, 5.0), ("segment", 5.0, 9.0), ("pcs", 9.0, 12.0)]


def test_bursts_are_more_than_the_machine_sustains() -> None:
    beats = [load_at(beat / 10) for beat in range(round(CYCLE * 10))]
    assert set(beats) == set(LOADS)
    assert beats.count(LOADS[1]) == pytest.approx(BURST * 10, abs=1)
    assert sum(beats) / len(beats) < 1.0 < LOADS[1]


# Periodic queries


@pytest.fixture
def released() -> PeriodicTold:
    answers = [
        PeriodicAnswer(name, 2.0 * number, kept, kept, seconds)
        for number in range(1, 7)
        for name, kept, seconds in (
            ("stolen", 1.0, 0.3),
            ("racing", 0.5 if number in (3, 4) else 1.0, 0.6),
            ("differences", 0.25 if number in (3, 4) else 1.0, 1.2 if number == 3 else 0.8),
        )
    ]
    return PeriodicTold(answers, [(0.0, 5_000.0), (4.0, 50_000.0), (6.0, 90_000.0), (10.0, 5_000.0), (12.0, 5_000.0)])


def test_the_words_tell_what_was_read_and_what_was_late(released: PeriodicTold) -> None:
    in_time, least = released.paragraphs()
    assert in_time.startswith("17 of 18 answers came within 1 s")
    assert "90,000 rows/s came on each stream, from second 6 to 10" in in_time
    assert "stolen 100% (worth 1.00), racing 50% (worth 0.50), differences 25% (worth 0.25)" in least


def test_traffic_grows_as_far_as_it_may() -> None:
    assert CALM_RATE < grown(CALM_RATE, 44.0) < grown(CALM_RATE, 16.0) <= MOST * CALM_RATE
    assert grown(MOST * CALM_RATE, 44.0) == MOST * CALM_RATE


# Joins without windows


@pytest.fixture
def joined() -> JoinsTold:
    sights = [
        JoinSight(1.0, 100, {"moments": 250, "guess": 3_000}, {"moments": 400, "guess": 390}, 500),
        JoinSight(5.0, 1_000, {"moments": 2_100, "guess": 2_000}, {"moments": 1_500, "guess": 1_480}, 2_300),
        JoinSight(9.0, 100, {"moments": 260, "guess": 3_000}, {"moments": 4_400, "guess": 3_000}, 500),
        JoinSight(11.0, 0, {"moments": 200, "guess": 900}, {"moments": 5_000, "guess": 4_000}, 400),
    ]
    return JoinsTold(10.0, 5_000, sights)


def test_the_words_tell_what_each_join_answered_and_remembered(joined: JoinsTold) -> None:
    answered, held, _ = joined.paragraphs()
    assert answered == (
        "The stations measured 5,000 moments. moments answered each. guess answered 4,000 of them (80%)."
    )
    assert "moments remembered at most 250 readings" in held
    assert "the north fell 1,000 readings behind, and it remembered up to 2,100." in held
    assert "predicted up to 2,300. At the end it remembered 200." in held


def test_moments_without_an_answer_are_not_hidden(joined: JoinsTold) -> None:
    told = JoinsTold(joined.seconds, joined.moments + 1, joined.sights)
    assert "moments answered 5,000 of them (100%)" in told.paragraphs()[0]


def test_readings_are_no_more_out_of_order_than_the_file_says(tmp_path: Path) -> None:
    (tmp_path / "stations.toml").write_text(cards()["joins"].text())
    order = freshet.App.from_toml(tmp_path / "stations.toml").streams["north"].stream.order
    assert order is not None
    assert order.rows is not None
    readings = Stations(3)
    for _ in range(20):
        for table in readings.rows(100).values():
            moments = table["moment"].to_numpy()
            assert all((moments[:place] >= moment).sum() <= order.rows for place, moment in enumerate(moments))
            assert (np.diff(moments) < 0).any()
            assert sorted(moments) == list(range(readings.measured - 100, readings.measured))


# Pictures


@pytest.mark.parametrize("story", ["optimized", "released", "joined"])
def test_labels_of_a_picture_do_not_overlap(
    story: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    drawn: list[Any] = []
    module = sys.modules[type(request.getfixturevalue(story)).__module__]
    new_figure = module.new_figure

    def noted(*size: float) -> Any:
        drawn.append(new_figure(*size))
        return drawn[-1]

    monkeypatch.setattr(module, "new_figure", noted)
    told = request.getfixturevalue(story)
    told.save(tmp_path / "story.png")
    assert (tmp_path / "story.png").read_bytes().startswith(PNG)
    canvas = FigureCanvasAgg(drawn[0])
    canvas.draw()
    for axes in drawn[0].axes:
        boxes = [Text.get_window_extent(text, canvas.get_renderer()) for text in axes.texts]
        assert not [pair for pair in combinations(boxes, 2) if pair[0].overlaps(pair[1])]
        assert axes.get_ylabel()
    json.dumps(told.to_json())


# Whole runs; test_demo.py has that of the flood


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", ["joins", "mirror", "optimizer", "periodic"])
def test_a_story_is_told(name: str, tmp_path: Path) -> None:
    options = ["--quick", "--state", "kept", "--keep", "--out", "seen.png"]
    done = subprocess.run(
        [sys.executable, "-m", "freshet", "demo", name, *options],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "3. What was seen" in done.stdout
    assert (tmp_path / "seen.png").read_bytes().startswith(PNG)
    kept = json.loads((tmp_path / "kept" / "demo.json").read_text())
    if name == "joins":
        assert kept["sights"][-1]["answered"]["moments"] == kept["moments"]
        assert kept["sights"][-1]["answered"]["guess"] < kept["moments"]
    if name == "optimizer":
        assert kept["missing"] == 0
        assert kept["looks"]
    if name == "periodic":
        assert {each["query"] for each in kept["answers"]} == {"stolen", "racing", "differences"}
