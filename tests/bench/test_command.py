from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

import freshet.bench
from freshet.bench import registry
from freshet.bench.command import app, command_of, run_bench
from freshet.bench.figures import Spread
from freshet.bench.registry import Bench, benches
from freshet.bench.result import Result
from freshet.bench.stage import Stage
from freshet.model import UserError

NAMES = ("crash", "overhead", "throughput", "soak")


def noisy(
    stage: Stage, times: Annotated[int, typer.Option(min=1, help="How many lines.")] = 2, label: str = "x"
) -> Result:
    """Prints in every way there is."""
    for _ in range(times):
        print("from Python")
        os.write(1, b"from a library\n")
        subprocess.run([sys.executable, "-c", "print('from a child')"], check=True)
    stage.say("on standard error")
    (stage.folder / "file").write_text(label)
    return Result.of({"times": times, "x_ms": Spread(1.0, 0.5, 2.0)}, {"folder": str(stage.folder)})


BENCH = Bench("noisy", "Is loud.", "a moment", noisy)


def test_json_is_all_that_is_printed(capfd):
    run_bench(BENCH, as_json=True, times=3)
    printed = capfd.readouterr()
    document = json.loads(printed.out)
    assert document["bench"] == "noisy"
    assert document["figures"] == {"times": 3, "x_ms": 1.0}
    assert document["spread"] == {"x_ms": [0.5, 2.0]}
    assert printed.err.count("from a library") == printed.err.count("from a child") == 3


def test_conditions_name_machine_and_options(capfd):
    run_bench(BENCH, as_json=True, times=1)
    conditions = json.loads(capfd.readouterr().out)["conditions"]
    assert conditions["options"] == {"times": 1}
    assert conditions["cores"] >= 1
    assert len(conditions["load_at_start"]) == 3
    assert conditions["versions"]["pyspark"]


def test_the_folder_is_gone_afterwards_also_after_an_error(tmp_path, capfd):
    run_bench(BENCH, as_json=True, folder=tmp_path)
    assert not Path(json.loads(capfd.readouterr().out)["conditions"]["folder"]).exists()

    def fails(stage: Stage) -> Result:
        (stage.folder / "half").write_text("")
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        run_bench(Bench("fails", "", "", fails), folder=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_must_be_there(tmp_path):
    with pytest.raises(UserError, match="is not a folder"):
        run_bench(BENCH, folder=tmp_path / "none")


def test_without_json_a_person_gets_a_table(capfd):
    run_bench(BENCH, times=1)
    assert "x_ms" in capfd.readouterr().out


def test_options_of_a_bench_become_options_of_its_command():
    single = typer.Typer()
    single.command()(command_of(BENCH))
    runner = CliRunner()
    assert runner.invoke(single, ["--times", "0"]).exit_code == 2
    assert runner.invoke(single, ["--strange", "1"]).exit_code == 2
    found = runner.invoke(single, ["--times", "1", "--json"])
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout)["figures"]["times"] == 1


HELLO = """
from freshet.bench.registry import bench
from freshet.bench.result import Result
from freshet.bench.stage import Stage


@bench("Says hello.", takes="no time")
def hello(stage: Stage, times: int = 2) -> Result:
    return Result({"times": times})
"""


def test_a_new_bench_is_one_file_and_one_line(tmp_path, monkeypatch):
    (tmp_path / "hello.py").write_text(HELLO)
    monkeypatch.setattr(freshet.bench, "__path__", [*freshet.bench.__path__, str(tmp_path)])
    monkeypatch.setattr(registry, "MODULES", [*registry.MODULES, "hello"])
    monkeypatch.setattr(registry, "BENCHES", dict(registry.BENCHES))
    monkeypatch.setitem(sys.modules, "freshet.bench.hello", None)
    del sys.modules["freshet.bench.hello"]
    single = typer.Typer()
    single.command()(command_of(benches()["hello"]))
    found = CliRunner().invoke(single, ["--times", "3", "--json"])
    assert json.loads(found.stdout)["figures"] == {"times": 3}


def test_help_says_what_each_measures_and_how_long_it_takes():
    text = " ".join(CliRunner().invoke(app, ["--help"]).stdout.split())
    for name in NAMES:
        found = benches()[name]
        assert name in text
        assert found.summary in text
        assert f"Takes {found.takes}" in text
    for name in NAMES:
        shown = CliRunner().invoke(app, [name, "--help"])
        assert shown.exit_code == 0
        assert "--json" in shown.stdout


@pytest.mark.parametrize(
    "arguments", [["crash", "--kills", "0"], ["soak", "--minutes", "0"], ["overhead", "--rows", "many"], ["nothing"]]
)
def test_a_wrong_option_is_refused_before_anything_starts(arguments):
    assert CliRunner().invoke(app, arguments).exit_code == 2


def test_help_does_not_wait_for_spark():
    code = "import sys, freshet.bench; print('pyspark' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.strip() == "False"
