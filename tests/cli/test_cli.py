"""The command line as a person meets it: exit codes, and what they print where."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from tests.cli.commands import APP, FRESHET, Command, freshet_command

import freshet
from freshet.log import Log, TableVersions
from freshet.model import ARRIVAL


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A state folder with an output of three tuples, an empty one, and an intermediate queue."""
    folder = tmp_path / "state"
    with Log.open(folder) as log:
        for name in ("hot", "cold"):
            log.declare(name, kind="output")
        log.declare("hot.filter_2", kind="queue")
        log.append("hot", pa.table({"k": [1, 2], "name": ["a", None], ARRIVAL: [1, 2]}))
        log.append("hot", pa.table({"k": [3], "name": ["c"], ARRIVAL: [3]}))
    return folder


def test_version() -> None:
    done = freshet_command("--version")
    assert (done.returncode, done.stdout) == (0, f"freshet {freshet.__version__}\n")


def test_help_teaches_by_examples_and_imports_little(command: Command) -> None:
    code = (
        "import sys; from freshet.cli.main import app\n"
        "try: app(['--help'])\n"
        "except SystemExit: pass\n"
        "print([name for name in ('pyspark', 'pyarrow', 'sqlglot', 'pandas') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[]\n"), done.stdout
    for name in ("run", "check", "explain", "read", "verify", "policies", "demo", "bench"):
        assert f"\n  {name}  " in done.stdout
    assert "freshet read app.toml hot --follow" in done.stdout
    for name in ("run", "check", "explain", "read", "policies"):
        assert f"freshet {name if name != 'policies' else 'run'} " in command(name, "--help").stdout


def test_check_loads_neither_spark_nor_anything_else_that_only_a_run_needs(tmp_path: Path) -> None:
    app = tmp_path / "small.toml"  # a generator is tried, and Arrow would load pandas for its rows
    app.write_text(
        '[streams.s]\nschema = "k int"\nsource = {kind = "generator", rate = 5}\n'
        '[queries.q]\nsql = "SELECT k + 1 AS n FROM s WHERE k > 1"\n'
    )
    code = (
        "import sys; from freshet.cli.main import app\n"
        f"try: app(['check', {str(app)!r}])\n"
        "except SystemExit: pass\n"
        "heavy = ('pyspark', 'pandas', 'freshet.engine', 'freshet.kernels', 'freshet.quality')\n"
        "heavy += ('freshet.app.running.run', 'freshet.mirror', 'aiohttp', 'sqlite3', 'freshet.sources.feeder')\n"
        "heavy += ('freshet.sources.trace', 'freshet.sinks.parquet', 'freshet.sources.table_file')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"{app}: right: 1 stream, 1 query\n[]\n"


def test_what_a_file_names_may_use_pandas_while_it_is_checked(tmp_path: Path) -> None:
    (tmp_path / "panda.py").write_text(
        "import freshet, pandas, pyarrow as pa\nFACTOR = pa.array(pandas.Series([1.5]))[0].as_py()\n"
        "@freshet.function(takes='double', returns='double')\ndef scaled(x):\n    return x\n"
    )
    app = tmp_path / "app.toml"
    app.write_text(
        '[streams.s]\nschema = "k double"\n[functions]\nscaled = "panda:scaled"\n'
        '[queries.q]\nsql = "SELECT scaled(k) AS n FROM s"\n'
    )
    assert freshet_command("check", str(app)).stdout == f"{app}: right: 1 stream, 1 query\n"


def test_user_errors_are_lines_on_stderr_and_exit_code_2(
    app: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    app.write_text(APP.replace("sql =", "slq =").replace("rate =", "rat ="))
    monkeypatch.chdir(app.parent)
    for name in ("check", "run", "explain"):
        done = command(name, app.name)
        assert done.returncode == 2
        assert done.stdout == ""
        assert done.stderr.splitlines() == [
            "app.toml: queries.large.sql: is missing (The query)",
            "app.toml: queries.large.slq: unknown key (did you mean 'sql'?)",
            "app.toml: streams.packets.source.rat: unknown key (did you mean 'rate'?)",
        ]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("run", "none.toml"), "none.toml: there is no such file"),
        (("run", "app.toml", "--for", "soon"), "'soon' is not a duration"),
        (("run", "app.toml", "--policy", "best"), "there is no policy 'best'"),
        (("explain", "app.toml", "larg"), "there is no query 'larg' (did you mean 'large'?)"),
        (("run", "app.toml", "--policy", "rr(many)"), "rows must be a whole number of at least 1, not 'many'"),
        (("run", "app.toml", "--master", "lcal[2]"), "is not a Spark master: use local[*]"),
        (("read", "app.toml", "large"), "app.toml has not run yet"),
        (("read", ".", "large"), "holds no log"),
    ],
)
def test_wrong_arguments(
    arguments: tuple[str, ...], text: str, app: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(app.parent)
    done = command(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert text in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr


def test_unexpected_errors_are_one_line_that_names_the_traceback(tmp_path: Path) -> None:
    code = (
        "import sys, freshet.cli\n"
        "def boom(): raise KeyError('x')\n"
        "sys.modules['freshet.cli.main'].app = boom\n"
        "freshet.cli.main()"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("freshet: unexpected KeyError: 'x' (traceback in ")
    (file,) = tmp_path.glob("freshet-*.traceback")
    assert str(file) in line
    assert "in boom" in file.read_text()


def test_explain(app: Path, command: Command) -> None:
    done = command("explain", app, "large")
    assert done.returncode == 0
    *lines, empty, residents = done.stdout.splitlines()
    assert empty == ""
    assert residents.startswith("residents: ")
    assert lines == [
        "query large (weight 1, starts at earliest, an evaluation error gives NULL)",
        "  large.project: host, size",
        "    large.filter_1: size > 50",
        "      packets",
        "  reads packets: reader large.filter_1",
        "  one job per step: vectorised, because all its expressions are compiled",
        "  way: a resident, if one is there; else Spark jobs",
        "  output large: host string, size int",
        "  sink console",
        '  shares nothing: share is "never"',
    ]


def test_policies_are_listed_with_what_they_do(command: Command) -> None:
    done = command("policies")
    assert done.returncode == 0
    listed, _, arguments = done.stdout.partition("\n\n")
    lines = dict(re.split(r"  +", line, maxsplit=1) for line in listed.splitlines())
    assert {"everything", "rr(rows)", "fas-mcq(beta=1, rows)", "fas-mcq(beta=1, rows)+set"} <= lines.keys()
    assert all(len(text) > 10 and text.endswith(".") for text in lines.values())
    assert re.search(r"beta +1: best freshness, 0: best response time; a number from 0 to 1", arguments)
    assert re.search(r"size .*, or auto \(.*slope-slack-push.*\)", arguments)


@pytest.mark.parametrize(
    "name", ["", "run", "check", "explain", "read", "verify", "policies", "demo", "reproduce", "bench"]
)
def test_every_command_helps_by_h(name: str, command: Command) -> None:
    short, long = (command(*name.split(), option) for option in ("-h", "--help"))
    assert short.returncode == long.returncode == 0, short.stderr
    assert short.stdout == long.stdout
    assert re.match(rf"Usage: .*freshet {name}", short.stdout)


def test_exit_codes_are_told(command: Command) -> None:
    lines = command("--help").stdout.split("Exit codes:\n")[1].splitlines()
    assert [line.split()[0] for line in lines if line.strip()] == ["0", "1", "2", "130"]


def test_read_says_that_an_application_is_starting(
    app: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(app.parent)
    with Log.open(app.parent / "state") as log:
        log.declare("packets")
        done = command("read", app.name, "large")
        assert done.returncode == 2
        assert done.stderr == (
            "app.toml: large has nothing to read yet: the application is starting, "
            "or has not run since large was added\n"
        )
        follow = [*FRESHET, "read", str(app), "large", "--follow", "--as", "jsonl", "--limit", "1"]
        with subprocess.Popen(follow, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as reading:
            assert reading.stderr is not None
            assert "waiting for the application to start" in reading.stderr.readline()
            log.declare("large")
            log.append("large", pa.table({"k": [7], ARRIVAL: [1]}))
            rest, errors = reading.communicate()
    assert (reading.returncode, rest, errors) == (0, '{"k": 7}\n', "")


def test_read_needs_no_more_of_the_file_than_its_state(app: Path, state: Path, command: Command) -> None:
    app.write_text(APP.replace("sql =", "slq ="))
    assert len(command("read", app, "hot", "--as", "jsonl").stdout.splitlines()) == 3


def test_public_names_are_listed_before_they_are_used() -> None:
    code = "import freshet; print(sorted(set(freshet.__all__) - set(dir(freshet))))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_read_as_table_and_lines(state: Path, command: Command) -> None:
    done = command("read", state, "hot")
    assert [line.split() for line in done.stdout.splitlines()] == [
        ["k", "name"],
        ["-" * 12, "-" * 12],
        ["1", "a"],
        ["2"],
        ["3", "c"],
    ]
    done = command("read", state, "hot", "--as", "jsonl", "--from", "1", "--limit", "1")
    assert done.stdout == '{"k": 2, "name": null}\n'
    assert command("read", state, "cold").stdout == ""
    done = command("read", state, "hto")
    assert done.returncode == 2
    assert "there is no query, stream or table 'hto' (did you mean 'hot'?); it has: hot, cold\n" in done.stderr


def test_read_shows_the_newest_version_of_a_table(app: Path, state: Path, command: Command) -> None:
    app.write_text(APP + '[tables.hosts]\nfile = "hosts.csv"\nschema = "host string, owner string"\n')
    done = command("read", app, "hosts")
    assert done.returncode == 2
    assert "hosts has nothing to read yet" in done.stderr
    with Log.open(state) as log:
        versions = TableVersions(log, "hosts")
        versions.put(pa.table({"host": ["a"], "owner": ["me"]}))
        versions.put(pa.table({"host": ["a", "b"], "owner": ["you", None]}))
        done = command("read", app, "hosts")
        assert [line.split() for line in done.stdout.splitlines()[2:]] == [["a", "you"], ["b"]]
    done = command("read", state, "hosts", "--as", "jsonl", "--limit", "1")
    assert done.stdout == '{"host": "a", "owner": "you"}\n'
    for option in (("--follow",), ("--from", "1")):
        done = command("read", app, "hosts", *option)
        assert done.returncode == 2
        assert f"hosts is a table, and read shows its present rows: leave {option[0]} out" in done.stderr


def test_verify_tells_damage_by_its_exit_code(state: Path, command: Command) -> None:
    done = command("verify", state)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == f"{state} is whole"
    file = next((state / "segments").iterdir())
    file.write_bytes(file.read_bytes()[:-1])
    done = command("verify", state, "--json")
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert not found["whole"]
    assert [check["check"] for check in found["checks"] if check["damage"]] == ["segments"]
    (state / "store.db").write_bytes(b"nothing" * 1000)
    done = command("verify", state)
    assert done.returncode == 1
    assert "store.db is damaged: file is not a database" in done.stdout
    done = command("read", state, "hot")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"{state / 'store.db'} is damaged: file is not a database\n"


def test_read_as_arrow(state: Path) -> None:
    done = subprocess.run([*FRESHET, "read", str(state), "hot", "--as", "arrow"], capture_output=True, check=True)
    assert pa.ipc.open_stream(done.stdout).read_all().to_pylist() == [
        {"k": 1, "name": "a"},
        {"k": 2, "name": None},
        {"k": 3, "name": "c"},
    ]


def _hear_interrupts() -> None:
    """What a shell starts in the background is deaf to SIGINT, and so are its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_follow_sees_what_comes_until_it_is_interrupted(state: Path) -> None:
    command = [*FRESHET, "read", str(state), "hot", "--follow", "--as", "jsonl", "--from", "2"]
    with (
        Log.open(state) as log,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=_hear_interrupts
        ) as reading,
    ):
        assert reading.stdout is not None
        assert json.loads(reading.stdout.readline())["k"] == 3
        log.append("hot", pa.table({"k": [4], "name": ["d"], ARRIVAL: [4]}))
        assert json.loads(reading.stdout.readline())["k"] == 4
        reading.send_signal(signal.SIGINT)
        rest, errors = reading.communicate()
        assert (reading.returncode, rest, errors) == (0, "", "")
