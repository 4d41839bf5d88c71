"""Every benchmark for real, with parameters so small that only the contract is looked at, not the speed."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings

import pytest

from freshet.bench import windows as windows_module
from freshet.bench.backlog import backlog
from freshet.bench.crash import crash
from freshet.bench.overhead import overhead
from freshet.bench.stage import Stage
from freshet.bench.throughput import throughput
from freshet.bench.windows import windows
from freshet.spark.session.session import SettingLost


@pytest.mark.spark
@pytest.mark.timeout(1200)
def test_crash_loses_and_doubles_nothing(spark, tmp_path):
    # With this seed: kills of a running process, at a commit, at a file and during the start, with three policies.
    found = crash(Stage(tmp_path), kills=4, seed=25, longest=1.0).figures
    assert found["kills"] == 4
    assert found["rows_lost"] == 0
    assert found["rows_doubled"] == 0
    assert found["rows_checked"] > 1000


@pytest.mark.spark
@pytest.mark.timeout(1200)
def test_overhead_gives_its_figures(spark, tmp_path):
    result = overhead(Stage(tmp_path), rows=100, rounds=2, block=4, warm_up=0)
    figures = result.figures
    assert figures["steps"] == figures["micro_batches"] == 4
    assert figures["step_vs_micro_batch"] == pytest.approx(figures["step_ms"] / figures["micro_batch_ms"])
    parts = [figures[f"{part}_ms"] for part in ("decide", "plan", "job", "hand_over", "commit")]
    assert all(part >= 0 for part in parts)
    assert result.spread.keys() >= {"step_ms", "micro_batch_ms", "step_vs_micro_batch"}


@pytest.mark.spark
@pytest.mark.timeout(1200)
def test_throughput_gives_its_figures(spark, tmp_path):
    figures = throughput(Stage(tmp_path), rows=30_000, train=10_000, rounds=2, warm_up=0).figures
    assert figures["rows"] == 30_000
    assert 0.5 < figures["rows_written"] / 30_000 < 0.7
    assert figures["throughput_vs_batch"] > 0


@pytest.mark.spark
@pytest.mark.timeout(1200)
def test_backlog_works_all_off_and_gives_its_figures(spark, tmp_path):
    figures = backlog(Stage(tmp_path), rows=400_000, train=50_000).figures
    assert figures["rows_out_some_all"] > 5 * figures["rows_out_some_tenth"] > 0
    assert figures["rows_out_pairs_all"] > 5 * figures["rows_out_pairs_tenth"] > 0
    assert figures["rows_out_sliding_all"] > 0
    assert all(figures[f"peak_{kind}_mb_all"] > 1 for kind in ("driver", "jvm", "workers"))


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
