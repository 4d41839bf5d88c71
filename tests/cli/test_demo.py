"""The demo: its application, its figures, its words, its picture, and a short real run."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from copy import deepcopy
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cli.commands import Command

import freshet
from freshet.cli.demo import play_demo
from freshet.demo.calibration import Capacity
from freshet.demo.counts import readings, unanswered
from freshet.demo.finished import FinishedDemo
from freshet.demo.monitor import LOGINS, PACKETS, monitor, text
from freshet.demo.plot import draw, draw_small, main, save
from freshet.demo.stories import cards, flood
from freshet.demo.story import Story
from freshet.demo.timeline import Timeline, TimelineSample
from freshet.demo.words import paragraphs
from freshet.demo.worth import GROUPS, group
from freshet.kernels import why_not
from freshet.log import LogReader
from freshet.model import Filter, Project, Query, QueryGraph

DEMO = [sys.executable, "-m", "freshet", "demo"]
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def recorded() -> dict[str, Any]:
    """What a run of the demo kept, every second sample of it."""
    found: dict[str, Any] = json.loads(Path(__file__).with_name("recorded_demo.json").read_text())
    return found


# The application


def test_the_file_is_right_and_can_be_copied(tmp_path: Path, command: Command) -> None:
    done = command("demo", "--show")
    assert (done.returncode, done.stdout) == (0, text())
    (tmp_path / "monitor.toml").write_text(done.stdout)
    app = freshet.App.from_toml(tmp_path / "monitor.toml")
    assert app.check() == []
    assert app.state == tmp_path / "state"


def test_it_asks_25_queries_of_different_worth_in_both_forms() -> None:
    checked = monitor(Path()).checked()
    queries = checked.queries
    assert len(queries) == 25
    assert len({query.promises.weight for query in queries.values()}) >= 8
    assert {group(query.promises.weight) for query in queries.values()} == set(GROUPS)
    assert sum("union" in kinds(query) for query in queries.values()) >= 2, "UNION ALL"
    assert sum(bool(set(query.graph.streams) & queries.keys()) for query in queries.values()) >= 3, "on queries"
    forms = [
        why_not(plain(query.graph, stream), checked.schemas[stream])
        for query in queries.values()
        for stream in query.graph.streams
    ]
    assert 2 <= sum(form is not None for form in forms) <= 4, forms


def kinds(query: Query) -> set[str]:
    return {operator.tag for operator in query.graph.operators.values()}


def plain(graph: QueryGraph, stream: str) -> list[Filter | Project]:
    """The filters and projections that a stream goes through first."""
    readers = {source: name for name, sources in graph.inputs.items() for source in sources}
    found: list[Filter | Project] = []
    while stream in readers and isinstance(operator := graph.operators[readers[stream]], Filter | Project):
        found.append(operator)
        stream = readers[stream]
    return found


@settings(deadline=None)
@given(st.floats(5, 600), st.floats(10, 1e6))
def test_the_story_is_an_overload_in_its_middle_only(seconds: float, sustained: float) -> None:
    story = Story(seconds, sustained)
    pieces = story.arrival()["pieces"]
    assert sum(length for length, _ in pieces) == pytest.approx(seconds)
    assert 0 < story.flood_start < story.flood_end < seconds / 2
    flood = [(length, rate) for length, rate in pieces if rate > sustained]
    assert flood == [(story.flood_end - story.flood_start, story.flood_rate)]
    calm = [(length, rate) for length, rate in pieces if rate <= sustained]
    mean = sum(length * rate for length, rate in calm) / sum(length for length, _ in calm)
    assert mean == pytest.approx(story.calm_rate)
    assert max(rate for _, rate in calm) < sustained / 2


def test_the_story_fits_the_application() -> None:
    assert monitor(Path(), {PACKETS: {"arrival": Story(34, 1e5).arrival()}, LOGINS: {"limit": 9}}).check() == []


# Figures


def test_a_row_that_was_not_answered_is_found(recorded: dict[str, Any]) -> None:
    read, report = readings(monitor(Path())), recorded["report"]
    assert set(unanswered(read, report).values()) == {0}
    report["queries"]["oversize"]["tuples_out"] += 2
    report["queries"]["dns"]["tuples_in"] += 1
    assert {name: rows for name, rows in unanswered(read, report).items() if rows} == {"incidents": 2, "dns": -1}


moments = st.tuples(st.floats(0.01, 3.0), st.floats(-1.0, 40.0))


@settings(deadline=None)
@given(st.lists(moments, min_size=1, max_size=20))
def test_freshness_over_time_is_a_share_whatever_the_meters_believed(found: list[tuple[float, float]]) -> None:
    course, time_ = Timeline(), 0.0
    for gap, fresh in found:
        time_ += gap
        course.samples.append(TimelineSample(time_, dict.fromkeys(GROUPS, 0), {"q": fresh}))
    shares = course.freshness({"q": None})
    assert len(shares) == len(found)
    assert all(-1e-9 <= share <= 1 + 1e-9 for share in shares)


def test_freshness_over_time_follows_what_turned_out() -> None:
    # Stale from 10 s to 20 s, which was seen only at the end of it; fresh otherwise.
    fresh = [float(time) if time < 20 else float(time - 10) for time in range(31)]
    course = Timeline([TimelineSample(float(time), {}, {"q": seconds}) for time, seconds in enumerate(fresh)])
    shares = course.freshness({"q": None})
    assert shares[5] == shares[10] == shares[30] == 1.0
    assert shares[12:21] == [0.0] * 9


def test_recovery_is_counted_from_the_end_of_the_flood() -> None:
    waiting = [3, 5, 4, 90, 80, 30, 6, 5, 2]
    course = Timeline([TimelineSample(float(time), {"alerts": rows}, {}) for time, rows in enumerate(waiting)])
    assert course.recovered("alerts", flood_start=2.5, flood_end=4.5) == 2.5
    assert course.recovered("alerts", flood_start=6.5, flood_end=7.5) == 0.0
    assert Timeline(course.samples[:6]).recovered("alerts", 2.5, 4.5) is None
    assert course.peak() == (3.0, 90)


# Words


def test_the_words_have_the_figures_of_the_run(recorded: dict[str, Any]) -> None:
    seen = FinishedDemo.from_json(recorded)
    came, answered, calm, weighed, cost = paragraphs(seen)
    report = recorded["report"]
    assert f"{report['streams']['packets']['tuples']:,} packets" in came
    assert "5,000 packets/s, a quarter of the 20,000 packets/s" in came
    assert f"{seen.course.peak()[1]:,} tuples waited" in came
    for words in ("The 8 alerts (weight 0.9 to 1)", "The 11 dashboards", "The 6 archives"):
        assert words in answered
    assert re.search(r" pager \(weight [^)]*\) waited longest, ", answered)
    assert "Before the flood the queries were fresh 4.0 % of the time." in calm
    assert "5,000 packets come together" in calm
    assert " s for the alerts, " in weighed
    assert (
        "everything does not look at weights. Of the queries that read the packets themselves, the 4 alerts" in weighed
    )
    assert f"{report['workers']['units']:,} steps" in cost
    assert f"{recorded['jobs']:,} Spark jobs" in cost
    assert f"0 rows were lost: each query answered every tuple that came in, {report['total']['tuples_in']:,}" in cost


def test_heavy_and_light_queries_are_compared_as_they_were_measured(recorded: dict[str, Any]) -> None:
    recorded["report"]["policy"] = "fas-mcq+set"
    start, end = Story(**recorded["story"]).flood_start, 1e9
    for sample in recorded["course"]["samples"]:
        # Fresh until the flood, and from then on the alerts only.
        heavy, light = sample["time"], min(sample["time"], start)
        sample["fresh"] = {
            name: heavy if group(query["weight"]) == "alerts" else light
            for name, query in recorded["report"]["queries"].items()
        }
    seen = FinishedDemo.from_json(recorded)
    weighed = paragraphs(seen)[3]
    alerts, *_, archives = seen.groups().values()
    assert seen.course.freshness_between(alerts, start, end) == pytest.approx(1.0)
    assert seen.course.freshness_between(archives, start, end) == pytest.approx(0.0, abs=0.05)
    assert "fas-mcq+set goes by weight, cost and what waits." in weighed
    assert "the 4 alerts were fresh 100 % of that time" in weighed
    assert "the 6 archives were fresh 0.0 % of that time" in weighed


def test_the_words_do_not_hide_what_went_wrong(recorded: dict[str, Any]) -> None:
    lost, doubled, differs, calm = (deepcopy(recorded) for _ in range(4))
    lost["unanswered"]["web"] = 5
    assert "5 rows lost" in paragraphs(FinishedDemo.from_json(lost))[4]
    doubled["unanswered"]["web"] = -7
    assert "7 answered twice" in paragraphs(FinishedDemo.from_json(doubled))[4]
    differs["outputs"]["web"] += 1
    assert "differ from what was counted: web." in paragraphs(FinishedDemo.from_json(differs))[4]
    for sample in calm["course"]["samples"]:
        sample["waiting"] = dict.fromkeys(GROUPS, 0)
    assert "not too much for this machine" in paragraphs(FinishedDemo.from_json(calm))[3]


# The picture


def test_no_two_labels_of_the_picture_overlap(recorded: dict[str, Any]) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure = draw(FinishedDemo.from_json(recorded))
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    frame = figure.bbox
    assert figure._suptitle is not None  # type: ignore[attr-defined]
    everything = [figure._suptitle]  # type: ignore[attr-defined]
    for axes in figure.axes:
        labels = [*axes.get_yticklabels(), *axes.texts]
        everything += [axes.title, axes._left_title, axes.xaxis.label, axes.yaxis.label]  # type: ignore[attr-defined]
        boxes = [label.get_window_extent(renderer) for label in labels if label.get_text()]
        assert not [pair for pair in combinations(boxes, 2) if pair[0].overlaps(pair[1])]
        assert axes.get_xlabel()
    boxes = [part.get_window_extent(renderer) for part in everything]
    shown = [box for box in boxes if box.width > 1]
    assert not [pair for pair in combinations(shown, 2) if pair[0].overlaps(pair[1])]
    named = [[text for text in axes.texts if text.get_text().startswith(GROUPS)] for axes in figure.axes]
    assert [len(texts) for texts in named] == [0, 3, 3, 3], "groups are named beside what is drawn of them"
    shown += [text.get_window_extent(renderer) for texts in named for text in texts]
    for box in shown:
        assert frame.x0 <= box.x0 <= box.x1 <= frame.x1
        assert frame.y0 <= box.y0 <= box.y1 <= frame.y1
    assert figure.axes[3].get_ylim() == (0, 100), "a share is at most 100 %"
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert len(names) == 25
    weights = [float(name.split()[1]) for name in names]
    assert all(higher >= lower for higher, lower in pairwise(weights))


def test_a_query_that_answered_nothing_has_its_place(recorded: dict[str, Any], tmp_path: Path) -> None:
    nothing = dict.fromkeys(recorded["report"]["queries"]["pager"]["response"]) | {"count": 0}
    recorded["report"]["queries"]["pager"]["response"] = nothing
    seen = FinishedDemo.from_json(recorded)
    save(seen, tmp_path / "demo.png")
    assert (tmp_path / "demo.png").read_bytes().startswith(PNG)
    assert len(paragraphs(seen)) == 5


def test_the_small_picture_names_every_group(recorded: dict[str, Any], tmp_path: Path) -> None:
    labels = [text.get_text().split("\n")[0] for text in draw_small(FinishedDemo.from_json(recorded)).axes[0].texts]
    assert labels == [*GROUPS, "flood"]
    (tmp_path / "demo.json").write_text(json.dumps(recorded))
    main([str(tmp_path / "demo.json"), str(tmp_path / "small.png")])
    assert (tmp_path / "small.png").read_bytes().startswith(PNG)


# The command


def test_wrong_arguments_are_said_before_anything_starts(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").touch()
    for arguments, words in (
        (
            ("drought",),
            f"there is no story 'drought': freshet demo --list shows them ({', '.join(cards())})",
        ),
        (("--policy", "best"), "there is no policy 'best'"),
        (("--out", "none/demo.png"), "there is no such folder"),
        (("--state", "taken"), "already exists"),
    ):
        done = command("demo", *arguments)
        assert done.returncode == 2, done.stderr
        assert words in done.stderr
        assert len(done.stderr.splitlines()) == 1
    assert (tmp_path / "taken" / "file").exists()


def test_the_stories_are_listed_and_shown_by_name(command: Command) -> None:
    done = command("demo", "--list")
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == list(cards())
    assert flood.CARD.summary in done.stdout
    assert command("demo", "flood", "--show").stdout == text()


def test_a_story_is_one_new_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import freshet.demo.stories as package

    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    (tmp_path / "drought.py").write_text(
        "from freshet.demo.stories import StoryCard\nCARD = StoryCard('drought', 'nothing comes', str, None)\n"
    )
    assert list(cards()) == ["drought", "flood", "joins", "mirror", "optimizer", "periodic"]


def test_the_flood_is_told_from_calibration_to_picture(
    recorded: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = FinishedDemo.from_json(recorded)
    asked: list[Any] = []

    def measured(folder: Path, policy: str | None, rounds: int, seconds: float, tell: Any, check: Any) -> Capacity:
        asked.append((policy, rounds))
        tell("5,000 packets in 1.0 s")
        check()
        return Capacity(1000.0, ())

    def played(folder: Path, story: Story, policy: str | None, tell: Any, watch: Any) -> FinishedDemo:
        asked.append((policy, story))
        watch(seen.report, 3.0)
        return seen

    monkeypatch.setattr(flood, "measure", measured)
    monkeypatch.setattr(flood, "play", played)
    monkeypatch.setattr("freshet.cli.live.line", lambda report: f"{len(report['queries'])} queries")
    picture = tmp_path / "seen.png"
    play_demo(quick=True, policy="rr", out=picture, state=tmp_path / "state", keep=True)
    assert asked == [("rr", 3), ("rr", Story(10.0, 1000.0))]
    assert picture.read_bytes().startswith(PNG)
    assert json.loads((tmp_path / "state" / "demo.json").read_text()) == json.loads(json.dumps(seen.to_json()))
    told = capsys.readouterr().out
    for words in (
        "   5,000 packets in 1.0 s",
        "a flood of 3,000 packets/s",
        "   flood · 25 queries",
        "3. What was seen",
    ):
        assert words in told


def test_help_teaches(command: Command) -> None:
    done = command("demo", "--help")
    assert done.returncode == 0
    for words in (
        "25 continuous SQL queries",
        "--list",
        "--seconds",
        "--policy",
        "--quick",
        "--keep",
        "--show > monitor.toml",
    ):
        assert words in done.stdout


@pytest.mark.spark
@pytest.mark.timeout(900)
def test_a_short_run_answers_everything_and_draws_it(tmp_path: Path) -> None:
    options = ["--quick", "--seconds", "5", "--state", "kept", "--keep", "--out", "seen.png"]
    done = subprocess.run([*DEMO, *options], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "0 rows were lost" in " ".join(done.stdout.split())
    assert (tmp_path / "seen.png").read_bytes().startswith(PNG)
    seen = FinishedDemo.from_json(json.loads((tmp_path / "kept" / "demo.json").read_text()))
    queries = seen.report["queries"]
    assert {name: query["tuples_out"] for name, query in queries.items()} == dict(seen.outputs)
    assert seen.report["sources"][PACKETS]["rows"] == seen.report["streams"][PACKETS]["tuples"]
    assert seen.jobs + seen.report["residents"]["dispatches"] >= seen.report["workers"]["units"]
    with LogReader(tmp_path / "kept" / "monitor" / "state") as log:
        packets = log.read(PACKETS, log.oldest(PACKETS), log.end(PACKETS))
    # The answers, counted anew from what came in.
    assert packets.num_rows == seen.report["streams"][PACKETS]["tuples"]
    assert pc.sum(pc.greater(packets["size"], 1500)).as_py() == seen.outputs["oversize"]
    web = pc.is_in(packets["port"], value_set=pc.cast([80, 443, 8080], "int32"))
    assert pc.sum(web).as_py() == seen.outputs["web"]
    assert packets.num_rows == seen.outputs["all_headers"]


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_an_interrupt_leaves_nothing_behind(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        DEMO, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=environment
    ) as running:
        assert running.stdout is not None
        while "Spark starts" not in running.stdout.readline():
            assert running.poll() is None
        time.sleep(5)
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate()
    assert running.returncode == 130, errors
    assert errors.splitlines()[-1] == "Interrupted: the demo ends here."
    assert not list(tmp_path.glob("freshet-demo*"))
