"""`freshet run` with Spark."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest
from tests.cli.commands import APP, FRESHET, Command, freshet_command


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_what_only_spark_can_refuse_is_refused_at_once_for_all_queries(app: Path, command: Command) -> None:
    app.write_text(
        APP
        + """
[queries.one]
sql = "SELECT from_json(host, host) AS x FROM packets"
[queries.two]
sql = "SELECT named_struct(host, size) AS x FROM packets"
[queries.on_two]
sql = "SELECT x FROM two"
"""
    )
    assert command("check", app).returncode == 0
    done = command("run", app, "--json")
    assert done.returncode == 2
    assert done.stdout == ""
    lines = [line for line in done.stderr.splitlines() if not line.endswith(" ...")]
    assert [line.split(": ")[1] for line in lines] == ["queries.one.sql", "queries.two.sql"], done.stderr
    assert all("Spark refuses it: " in line for line in lines)
    assert not (app.parent / "report.json").exists()


@pytest.mark.spark
def test_a_spark_that_does_not_start_is_one_line_that_names_its_output(app: Path) -> None:
    app.write_text(APP.replace("[spark]", '[spark]\nsettings = {"spark.driver.memory" = "1k"}'))
    done = freshet_command("run", app)
    assert done.returncode == 1
    lines = [line for line in done.stderr.splitlines() if not line.endswith(" ...")]
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("Spark does not start on local[2]: ")
    assert lines[0].endswith(f"(what it printed is in {app.parent / 'state' / 'spark.out'})")
    assert (app.parent / "state" / "spark.out").read_text()


@pytest.mark.spark
def test_run_prints_the_report_alone_and_read_sees_the_output(app: Path, command: Command) -> None:
    done = freshet_command("run", app, "--json", "--policy", "fcfs")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["policy"] == "fcfs"
    assert report["status"] == "stopped"
    assert report["streams"]["packets"]["tuples"] == 1000
    assert json.loads((app.parent / "report.json").read_text()) == report
    shown = command("report", app.parent / "report.json")
    assert "large" in shown.stdout
    page = command("report", app.parent / "report.json", "--html")
    assert page.returncode == 0, page.stderr
    assert "waiting tuples of large" in (app.parent / "report.html").read_text()
    history = json.loads((app.parent / "report.history.json").read_text())
    assert history["app"] == report["app"]
    assert any(history["decisions"])
    # The report of a run without curves is enough to judge a curve that the file has by now.
    app.write_text(APP + 'curve = [[0, 1.0], ["1000 s", 1.0], ["2000 s", 0.0]]\n')
    judged = json.loads(command("explain", app, "--feasible", "--json").stdout)
    assert [each["feasible"] for each in judged["verdicts"]] == ["yes"]
    assert 0.0 < judged["load"] < 1.0 < judged["room"]
    lines = command("read", app, "large", "--as", "jsonl").stdout.splitlines()
    assert len(lines) == report["queries"]["large"]["tuples_out"] > 0
    assert all(json.loads(line)["size"] > 50 for line in lines)
    # The console sink spoke, but not on standard output.
    assert f"large 0 {lines[0]}" in done.stderr
    assert len(command("read", app, "packets", "--as", "jsonl").stdout.splitlines()) == 1000


@pytest.mark.spark
def test_an_interrupt_drains_and_a_second_instance_is_refused(app: Path) -> None:
    app.write_text(APP.replace(", limit = 1000", "").replace('{kind = "console"}', ""))
    report = app.parent / "report.json"
    with subprocess.Popen(
        [*FRESHET, "run", str(app)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        until = time.monotonic() + 600
        while not (report.exists() and json.loads(report.read_text())["total"]["tuples_out"]):
            assert running.poll() is None, running.communicate()
            assert time.monotonic() < until
            time.sleep(0.2)
        second = freshet_command("run", app)
        assert second.returncode == 2
        assert "is in use by process" in second.stderr
        assert len(second.stderr.splitlines()) == 1
        running.send_signal(signal.SIGINT)
        output, errors = running.communicate()
    assert running.returncode == 0, errors
    assert "fresh" in output.splitlines()[0]
    last = json.loads(report.read_text())
    assert last["status"] == "stopped"
    assert last["total"]["waiting"] == 0
    assert last["queries"]["large"]["tuples_in"] == last["streams"]["packets"]["tuples"]


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_quarantined_query_is_told_at_the_end_and_gives_exit_code_1(app: Path, command: Command) -> None:
    failing = APP.replace('size > 50"', '10 / size > 0"\non_error = "fail"')
    app.write_text(failing.replace('{kind = "console"}', ""))
    done = command("run", app)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("warning: query large is quarantined: ")
    assert last.endswith(" wait for it; the next run tries it again from there)")
    assert done.stderr.count("is quarantined") == 1
