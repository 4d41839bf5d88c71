"""``freshet bench many``: its parts, and all of it with so few queries and rows that only the contract is looked at."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from freshet.bench.many import grid as many_grid
from freshet.bench.many import many, numbers
from freshet.bench.many.answers import Expected, answer_in, answer_of
from freshet.bench.many.figures import TrialFigures, TrialKey, comparison_figures, load_figures
from freshet.bench.many.files import INTERVAL, Files
from freshet.bench.many.floor import TrainColumns, answer, check_selectivities
from freshet.bench.many.plot import draw
from freshet.bench.many.queries import LEAST, MOST, make_queries, make_rows
from freshet.bench.many.trial import TrialOutcome
from freshet.bench.result import Result
from freshet.bench.rig.checkpoints import Checkpoint, name_of, written
from freshet.bench.rig.meter import ByKind
from freshet.bench.stage import Stage
from freshet.model import UserError


def test_queries_are_a_mix_and_select_what_they_should():
    queries = make_queries(250)
    assert all(LEAST <= query.selectivity <= MOST for query in queries)
    assert len({predicate.form for query in queries for predicate in query.predicates}) >= 10
    assert len({query.sql for query in queries}) == 250
    check_selectivities(queries, make_rows(0, 20_000))


def test_wrong_answers_are_noticed(tmp_path):
    queries = make_queries(2)
    files = Files.write(tmp_path / "files", rows=200, count=2)
    expected = Expected(queries, files)
    columns = TrainColumns(pa.concat_tables(pq.read_table(path) for path in files.paths([0, 1])))
    right = [answer_of([1, 0], pa.table(answer(query, columns))) for query in queries]
    assert expected.check("floor", right) == sum(each.rows for each in right) > 0
    missing = answer_of([0, 1], pa.table(answer(queries[1], columns)).slice(1))
    with pytest.raises(RuntimeError, match="floor gave"):
        expected.check("floor", [right[0], missing])


def test_an_answer_without_files_has_no_rows():
    assert answer_in([2, 1], []) == answer_of([1, 2], pa.table({"id": pa.array([], pa.int64())}))


def test_a_checkpoint_tells_which_files_were_answered(tmp_path):
    sources, marks = tmp_path / "sources" / "0", tmp_path / "_spark_metadata"
    for folder in (sources, marks):
        folder.mkdir(parents=True)
    lines = [
        {"path": f"file:///in/{name_of(n)}", "timestamp": 1, "batchId": batch} for n, batch in ((0, 8), (1, 9), (2, 9))
    ]
    (sources / "8").write_text("\n".join(["v1", json.dumps(lines[0])]))
    (sources / "9.compact").write_text("\n".join(["v1", *map(json.dumps, lines)]))
    (sources / ".8.crc").write_bytes(b"\0")
    checkpoint = Checkpoint(tmp_path, marks)
    assert checkpoint.answered() == {}
    (marks / "8").write_text("\n".join(["v1", json.dumps({"path": "file:///out/a.parquet"})]))
    assert checkpoint.answered().keys() == {0}
    (marks / "9.compact").write_text("\n".join(["v1", json.dumps({"path": "file:///out/a.parquet"})]))
    assert checkpoint.answered().keys() == {0, 1, 2}
    assert checkpoint.batches[9] == (marks / "9.compact").stat().st_ctime
    assert written(marks) == [Path("/out/a.parquet")]


def outcome(wait: float, backlogs: list[float], rate: float = 2000.0, answered: float = 1.0) -> TrialOutcome:
    waits = np.full((2, len(backlogs)), wait)
    return TrialOutcome(2, rate, waits, None, answered, 1.0, ByKind(1.0), 10.0, 5.0, 0.0, 5, np.array(backlogs))


def test_a_backlog_that_grows_is_not_kept_up_with():
    file = 2000.0 * INTERVAL
    assert outcome(0.1, [file] * 6).kept_up
    assert outcome(0.1, [file, file, file, file, 2 * file, 2 * file]).kept_up
    assert not outcome(0.1, [file, file, file, 2 * file, 3 * file, 4 * file]).kept_up
    assert not outcome(0.1, [file] * 6, answered=0.9).kept_up


def test_gains_are_ratios_of_means_and_the_highest_rate_kept_up_with_counts():
    def at(side: str, rate: float) -> TrialKey:
        return TrialKey(25, "parquet", rate, side)

    found = TrialFigures()
    found.outcomes[at("freshet", 2000.0)] = [outcome(0.1, [500] * 6), outcome(0.3, [500] * 6)]
    found.outcomes[at("floor", 2000.0)] = [outcome(0.05, [500] * 6)]
    found.outcomes[at("queries", 2000.0)] = [outcome(4.0, [500] * 6), outcome(6.0, [500] * 6)]
    for rate, backlog in ((20_000.0, 0.0), (30_000.0, 50_000.0)):
        found.outcomes[at("freshet", rate)] = [outcome(0.4, [0.0] * 4 + [backlog] * 2, rate)]
    compared = Result.of(comparison_figures(found, 2000.0), {})
    assert compared.figures["latency_gain_vs_queries_25"] == pytest.approx(25.0)
    assert compared.spread["latency_gain_vs_queries_25"] == pytest.approx((4.0 / 0.3, 60.0))
    assert compared.figures["latency_vs_floor_25"] == pytest.approx(4.0)
    assert "mean_s_freshet_25_parquet_20000" not in compared.figures
    loaded = Result.of(load_figures(found, 25, ["parquet"], 20_000.0, 2000.0), {}).figures
    assert loaded["rows_per_s_25"] == 20_000.0
    assert loaded["latency_s_25"] == pytest.approx(0.4)


def test_the_picture_has_a_line_for_each_side_that_got_going():
    found = TrialFigures()
    for side, counts in {"freshet": (1, 25), "queries": (1,), "floor": (1, 25)}.items():
        for count in counts:
            for sink in ("parquet", "noop"):
                found.outcomes[TrialKey(count, sink, 2000.0, side)] = [outcome(0.1 * count, [500] * 6)]
    conditions = {"options": {"queries": "1,25", "rate": 2000.0}, "cores": 2}
    figure = draw(Result.of(comparison_figures(found, 2000.0), conditions).document("many"))
    lines = [
        np.asarray(line.get_xydata()).tolist() for line in figure.axes[0].get_lines() if line.get_linestyle() != "None"
    ]
    assert lines == [[[1.0, 0.1], [25.0, 2.5]]] * 2 + [[[1.0, 0.1]]] * 2 + [[[1.0, 0.1], [25.0, 2.5]]] * 2
    labels = [text.get_text().replace("\n", " ") for text in figure.axes[0].texts]
    assert labels == ["Freshet", "a streaming query for each", "floor: NumPy, no Spark"]


@pytest.mark.parametrize("text", ["", "a", "0", "1,,2"])
def test_lists_of_numbers_are_checked(text):
    with pytest.raises(UserError, match="--queries"):
        numbers(text, "--queries")


def test_unknown_sides_and_sinks_are_refused(tmp_path):
    with pytest.raises(UserError, match="there is no storm"):
        many(Stage(tmp_path), sides="freshet,storm")
    with pytest.raises(UserError, match="--sinks"):
        many(Stage(tmp_path), sinks="kafka")


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.timeout(1200)
def test_many_gives_its_figures(tmp_path, monkeypatch):
    monkeypatch.setattr(many_grid, "WARM_TRAINS", 1)
    monkeypatch.setattr(many_grid, "TRAINS", 2)
    result = many(
        Stage(tmp_path), queries="2", rate=400.0, seconds=1.0, sinks="both", trials=1, loaded=2, rates="800",
        train=2000, limit=240.0,
    )  # fmt: skip
    figures = result.figures
    assert result.conditions["never_got_going"] == {}
    for side in ("freshet", "queries", "foreach", "floor"):
        assert figures[f"answered_{side}_2_parquet"] == 1.0
        assert figures[f"rows_checked_{side}_2_parquet"] == figures["rows_checked_floor_2_parquet"] > 0
        assert figures[f"peak_mb_{side}_2_parquet"] >= figures[f"driver_mb_{side}_2_parquet"] > 10
        assert side == "floor" or figures[f"p95_s_{side}_2_noop"] > 0
    assert figures["sunk_mean_s_freshet_2_parquet"] >= figures["mean_s_freshet_2_parquet"] > 0
    assert figures["latency_gain_vs_queries_2"] == pytest.approx(
        figures["mean_s_queries_2_parquet"] / figures["mean_s_freshet_2_parquet"]
    )
    assert figures["latency_gain_vs_foreach_2"] > 0
    assert figures["latency_vs_floor_2"] == pytest.approx(
        figures["mean_s_freshet_2_parquet"] / figures["mean_s_floor_2_parquet"]
    )
    assert figures["latency_s_2"] == figures["mean_s_freshet_2_parquet_800"]
    assert figures["rows_per_s_2"] in (0.0, 100.0, 200.0, 400.0, 800.0)
    assert figures["cpu_vs_floor_2"] > 0
