"""Every benchmark for real, with parameters so small that only the contract is looked at, not the speed."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from itertools import pairwise

import duckdb
import pyarrow as pa
import pytest

from freshet.bench import constants as constants_module
from freshet.bench import windows as windows_module
from freshet.bench.backlog import RATE, backlog
from freshet.bench.constants import KINDS, WAYS, constants
from freshet.bench.crash import crash
from freshet.bench.overhead import overhead
from freshet.bench.result import Result
from freshet.bench.rows import SQL, make_rows
from freshet.bench.stage import Stage
from freshet.bench.state import state
from freshet.bench.throughput import throughput
from freshet.bench.windows import windows
from freshet.bench.windows.load import EPOCH, JOIN, NEAR
from freshet.kernels import task_split
from freshet.spark.session.session import SettingLost


@pytest.mark.spark
@pytest.mark.timeout(1200)
def test_crash_loses_and_doubles_nothing(tmp_path):
    # With this seed: kills of a resident at a commit, and of all processes at a file.
    found = crash(Stage(tmp_path), kills=2, seed=90, longest=1.0).figures
    assert found["kills"] == 2
    assert found["kills_of_residents"] + found["kills_of_other_workers"] == found["kills_of_whole_tree"] == 1
    assert found["rows_lost"] == found["rows_doubled"] == 0
    assert found["rows_checked"] > 1000


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.timeout(1200)
def test_crash_with_every_victim_loses_and_doubles_nothing(tmp_path):
    # With this seed: kills of an executor, of a resident at a commit, of the driver, and of all processes at a file.
    found = crash(Stage(tmp_path), kills=4, seed=196, longest=1.0).figures
    assert found["kills"] == 4
    assert found["kills_of_executors"] == found["kills_of_whole_tree"] == 1
    assert found["rows_lost"] == 0
    assert found["rows_doubled"] == 0
    assert found["rows_checked"] > 1000


def within(result: Result, name: str) -> bool:
    """Whether a figure lies in the range of its repetitions."""
    low, high = result.spread[name]
    return 0 < low <= result.figures[name] <= high


@pytest.mark.spark
@pytest.mark.timeout(1200)
def test_constants_gives_its_figures(spark, tmp_path, monkeypatch):
    few = {kind: work._replace(sizes=work.sizes[:1]) for kind, work in KINDS.items()}
    monkeypatch.setattr(constants_module, "KINDS", few)
    result = constants(Stage(tmp_path), rounds=1, trains=1, share=0.01)
    for kind, work in few.items():
        for way in WAYS:
            sizes = [max(100, size // 100) for size in work.sizes]
            assert all(within(result, f"{kind}_gain_{way}_{size}") for size in sizes)
            assert result.figures[f"{kind}_pays_from_{way}"] in (0, *sizes)
    for rows in (5_000, 40_000):
        assert all(within(result, f"join_s_{side}_{rows}") for side in ("kept", "again", "shuffled"))
        assert within(result, f"shuffle_gain_kept_{rows}")
    assert within(result, "look_again_share_250")
    assert result.conditions["constants"]["split_tuples"] > 0


@pytest.mark.spark
@pytest.mark.timeout(1200)
def test_overhead_gives_its_figures(spark, tmp_path):
    result = overhead(Stage(tmp_path), rows=100, rounds=2, block=4, warm_up=0)
    figures = result.figures
    assert figures["steps"] == figures["micro_batches"] == 4
    assert figures["step_vs_micro_batch"] == pytest.approx(figures["step_ms"] / figures["micro_batch_ms"])
    assert all(within(result, name) for name in ("step_ms", "micro_batch_ms", "step_vs_micro_batch", "job_step_ms"))
    parts = [figures[f"{part}_ms"] for part in ("decide", "bind", "send", "work", "report", "commit")]
    assert all(0 <= part < figures["step_ms"] for part in parts)


@pytest.mark.spark
@pytest.mark.timeout(1200)
def test_throughput_gives_its_figures(spark, tmp_path):
    result = throughput(Stage(tmp_path), rows=30_000, train=10_000, rounds=2, warm_up=0)
    figures = result.figures
    assert figures["rows"] == 30_000
    connection = duckdb.connect(config={"threads": "1"})
    connection.register("rows", make_rows(0, 30_000))
    [(passed,)] = connection.execute(f"SELECT count(*) FROM ({SQL})").fetchall()
    assert figures["rows_written"] == passed
    assert all(within(result, name) for name in ("rows_per_second", "batch_rows_per_second"))
    ours, theirs = result.spread["rows_per_second"], result.spread["batch_rows_per_second"]
    assert ours[0] / theirs[1] <= figures["throughput_vs_batch"] <= ours[1] / theirs[0]


@pytest.mark.spark
@pytest.mark.timeout(1200)
def test_state_gives_its_figures(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(task_split, "KEYED_ROWS", 1)
    monkeypatch.setattr(task_split, "KEYED_STATE", 1)
    result = state(Stage(tmp_path), rounds=1, share=0.001, scale_rounds=1, trains=1)
    figures = result.figures
    assert all(figures[f"step_cost_vs_state_{kind}"] > 0 for kind in ("join", "panes"))
    for name in ("scale_2", "scale_2_cpu", "scale_2_distinct", "scale_2_cpu_join", "scale_rows_per_second_2_join"):
        assert within(result, name)
    assert result.conditions["scale_parts"] == {"1": 1, "2": 2}
    assert result.conditions["scale_parts_join"] == {"1": 1, "2": 2}


@pytest.mark.spark
@pytest.mark.timeout(1200)
def test_backlog_works_all_off_and_gives_its_figures(spark, tmp_path):
    figures = backlog(Stage(tmp_path), rows=400_000, train=50_000).figures
    for name, count in (("tenth", 40_000), ("all", 400_000)):
        some, pairs = rows_of_backlog(count)
        assert (figures[f"rows_out_some_{name}"], figures[f"rows_out_pairs_{name}"]) == (some, pairs)
        assert figures[f"rows_per_second_{name}"] == pytest.approx(count / figures[f"seconds_{name}"])
    assert figures["rows_out_sliding_all"] > figures["rows_out_sliding_tenth"]
    assert figures["peak_workers_vs_tenth"] == pytest.approx(
        figures["peak_workers_mb_all"] / figures["peak_workers_mb_tenth"]
    )
    # None of these processes can be smaller.
    assert all(figures[f"peak_{kind}_mb_all"] > 20 for kind in ("driver", "jvm", "workers"))


def rows_of_backlog(rows: int) -> tuple[int, int]:
    """What a filter and a join give over the whole backlog, by another engine."""
    ends = [*range(0, rows // RATE, 5), rows / RATE]
    tables = [JOIN.rows(EPOCH + start, EPOCH + end, RATE) for start, end in pairwise(ends)]
    connection = duckdb.connect(config={"threads": "1"})
    for stream in ("a", "b"):
        connection.register(stream, pa.concat_tables([table[stream] for table in tables]))
    near = f"INTERVAL {NEAR} SECONDS"
    texts = (
        "SELECT count(*) FROM a WHERE v < 0.05 AND k % 7 <> 3",
        f"SELECT count(*) FROM a JOIN b ON a.k = b.k WHERE b.ts < a.ts + {near} AND a.ts < b.ts + {near}",
    )
    some, pairs = (connection.execute(text).fetchall()[0][0] for text in texts)
    return some, pairs


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.timeout(1200)
def test_windows_gives_its_figures(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(windows_module, "TIMED", 2)
    monkeypatch.setattr(windows_module, "_PROBES", 1)
    monkeypatch.setattr(windows_module, "_FIRST", {"freshet": 2_000.0, "streaming": 2_000.0})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SettingLost)  # the Spark of the tests has a smaller heap
        result = windows(Stage(tmp_path), rounds=1, live=8.0, case=["join"])
    figures = result.figures
    assert figures["join_rate_vs_ss"] == pytest.approx(
        figures["join_rows_per_second_freshet"] / figures["join_rows_per_second_streaming"]
    )
    assert figures["join_latency_vs_ss"] > 0
    assert all(0 < figures[f"join_latency_ms_{side}"] < 60_000 for side in ("freshet", "streaming"))
    assert not any(name.startswith("window") for name in figures)
    assert result.spread.keys() >= {"join_rate_vs_ss", "join_latency_vs_ss"}


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_soak_prints_its_figures():
    command = [
        sys.executable,
        "-c",
        "from freshet.bench import app; app()",
        "soak",
        "--minutes",
        "0.3",
        "--warm-up",
        "0.2",
        "--every",
        "1",
    ]
    done = subprocess.run([*command, "--rate", "200", "--json"], capture_output=True, text=True, check=True)
    document = json.loads(done.stdout)
    assert document["bench"] == "soak"
    assert document["spread"]["memory_slope_mb_per_min"][0] <= document["figures"]["memory_slope_mb_per_min"]
    assert document["figures"]["quarantined"] == 0
    assert document["figures"]["files_max"] > 0
