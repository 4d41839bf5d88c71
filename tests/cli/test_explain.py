"""What ``freshet explain`` says of windows, of what is remembered, and of the form of each part."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from freshet.app.declared.problems import InvalidApp
from freshet.cli.check import check
from freshet.cli.explaining.explain import explain
from freshet.kernels.shuffling import rows_that_pay

APP = """
[streams.s]
schema = "ts timestamp, k string, v int"
event_time = "ts"
lateness = "5 s"

[streams.t]
schema = "ts timestamp, k string, w int"
event_time = "ts"
lateness = "0 s"

[streams.u]
schema = "k string, x int"

[tables.hosts]
file = "hosts.csv"
schema = "host string, owner string"

[queries.sliding]
sql = "SELECT k, count(DISTINCT v) AS n FROM s [RANGE 100 SECONDS SLIDE 10 SECONDS] GROUP BY k"

[queries.rows]
sql = "SELECT avg(x) AS m FROM u [ROWS 10]"

[queries.three]
sql = '''SELECT a.ts, a.v, c.x FROM s [RANGE 1 MINUTE] a JOIN t [RANGE 10 SECONDS] b ON a.k = b.k AND a.v > b.w
JOIN u [RANGE 5 SECONDS] c ON b.k = c.k'''

[queries.path]
sql = "SELECT a.k FROM s [RANGE 1 MINUTE] a, t [RANGE 1 MINUTE] b, u [RANGE 1 MINUTE] c WHERE a.k = b.k AND b.w = c.x"

[queries.lonely]
sql = "SELECT a.k, b.w FROM s [RANGE 1 MINUTE] a LEFT JOIN t [RANGE 10 SECONDS] b ON a.k = b.k"

[queries.band]
sql = "SELECT a.k, b.w FROM s [RANGE 1 MINUTE] a JOIN t [RANGE 10 SECONDS] b ON a.v > b.w"

[queries.owned]
sql = "SELECT s.k, h.owner FROM s JOIN hosts h ON s.k = h.host"

[queries.missing]
sql = "SELECT k FROM s [RANGE 1 MINUTE SLIDE 1 MINUTE] EXCEPT SELECT k FROM t [RANGE 1 MINUTE SLIDE 1 MINUTE]"

[queries.again]
sql = '''SELECT max(n) AS n
FROM (SELECT k, count(*) AS n, window_end FROM s [RANGE 10 SECONDS SLIDE 10 SECONDS] GROUP BY k)
[RANGE 1 MINUTE SLIDE 1 MINUTE]'''

[queries.staged]
sql = "SELECT k, count(*) AS n FROM s [RANGE 10 SECONDS SLIDE 10 SECONDS] WHERE k RLIKE '^a+' GROUP BY k"

[queries.mixed]
sql = "SELECT k FROM s WHERE k RLIKE '^a+' UNION ALL SELECT k FROM t WHERE w > 1"

[queries.over]
sql = "SELECT count(*) AS n FROM three [RANGE 10 SECONDS SLIDE 10 SECONDS]"
"""


@pytest.fixture
def app(tmp_path: Path) -> Path:
    (tmp_path / "hosts.csv").write_text("host,owner\na,me\n")
    path = tmp_path / "app.toml"
    path.write_text(APP)
    return path


@pytest.fixture
def told(app: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, list[str]]:
    """The lines on each query, without what they are indented by."""
    explain(app)
    parts = capsys.readouterr().out.rstrip("\n").split("\n\n")
    return {part.split()[1]: [line.strip() for line in part.splitlines()] for part in parts}


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ('resident = "off"', "resident is off"),
        ('settings = {"spark.speculation" = "true", "spark.speculation.task.duration.threshold" = "1s"}',
         "spark.speculation.task.duration.threshold makes Spark run every task that takes long a second time"),
    ],
)  # fmt: skip
def test_without_residents_it_says_why(app: Path, setting: str, why: str, capsys: pytest.CaptureFixture[str]) -> None:
    app.write_text(f"{APP}\n[spark]\n{setting}\n")
    explain(app)
    told = capsys.readouterr().out
    assert f"way: Spark jobs, because {why}" in told
    assert f"\n\nresidents: none, because {why}\n" in told
    [staged] = (part for part in told.split("\n\n") if part.startswith("query staged "))
    assert "way: Spark jobs, because not all its expressions are compiled" in staged, "residents would change nothing"


@pytest.mark.parametrize(
    ("spark", "said"),
    [
        ('master = "local[1]"', "1 of 2 (workers), because local[1] has 1 core"),
        ('master = "local[8]"', "2, one for each unit that can run at once (workers)"),
        ('master = "local[8]"\nresident = 3', "3, as declared"),
        ('master = "local-cluster[2,1,1024]"', "1 of 2 (workers), because local-cluster[2,1,1024] has 2 cores, of "
         "which one is left to jobs"),
        ('master = "local-cluster[2,1,1024]"\nresident = 4', "1 of 4, because Spark has 2 slots: one is left to jobs"),
        ('master = "local-cluster[1,1,1024]"\nresident = 4', "none, because Spark has one slot, which is left to jobs"),
        ('master = "spark://head:7077"\nresident = 4', "at most 4; fewer if spark://head:7077 has fewer slots, because "
         "one is left to jobs"),
        ('master = "local[2]"\nsettings = {"spark.executor.pyspark.memory" = "2g"}',
         "2, one for each unit that can run at once (workers); each keeps states of up to 1.07 GB (kept_state), and up "
         "to a quarter of what spark.executor.pyspark.memory = 2g leaves it"),
    ],
)  # fmt: skip
def test_it_says_how_many_residents_are_planned(
    app: Path, spark: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    app.write_text(f"{APP}\n[spark]\n{spark}\n")
    explain(app)
    assert capsys.readouterr().out.rstrip("\n").split("\n\n")[-1].startswith(f"residents: {said}")


def test_residents_that_settings_exclude_are_told_before_the_start(
    app: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = '{"spark.speculation" = "true", "spark.speculation.task.duration.threshold" = "1s"}'
    app.write_text(f"{APP}\n[spark]\nresident = 2\nsettings = {settings}\n")
    why = (
        "there can be no residents: spark.speculation.task.duration.threshold makes Spark run every task that takes "
        "long a second time; leave out that setting, or set resident = 'off'"
    )
    explain(app)
    assert f"residents: the application cannot start: {why}" in capsys.readouterr().out
    with pytest.raises(InvalidApp) as refused:
        check(app)
    assert str(refused.value) == f"{app}: spark.resident: {why}"


def test_an_aggregate_says_when_its_windows_close_and_what_it_remembers(told: dict[str, list[str]]) -> None:
    lines = told["sliding"]
    assert any(line.startswith("sliding.aggregate: every 10 s over 100 s of __time, for each k: ") for line in lines)
    assert "time of s is ts, complete up to 5 s behind the newest tuple; windows close by that" in lines
    assert "reads s: reader sliding.aggregate.input" in lines
    assert "way: a resident, if one is there; else Spark jobs" in lines
    assert "way: Spark jobs, because not all its expressions are compiled" in told["staged"]
    assert (
        "one job per step: vectorised, because all its expressions are compiled; in one task, because it remembers"
    ) in lines
    assert (
        "merges a train on all cores if it has enough tuples to make that quicker "
        "(0.29 million on 2 cores, 0.16 million on 8 cores, 0.15 million on 64 cores)"
    ) in lines
    assert not any(line.startswith("merges a train") for line in told["rows"] + told["three"] + told["staged"])
    assert "(remembers a partial answer of each k and the different values of v for every 10 s, for 100 s)" in lines
    assert "three" in told["over"]
    assert "time of three is ts, complete as far as what it is made of" in told["over"]


def test_a_window_of_rows_needs_no_time(told: dict[str, list[str]]) -> None:
    assert "(remembers the last 10 tuples)" in told["rows"]
    assert not any(line.startswith("time of") for line in told["rows"])


def test_a_join_by_equal_columns_may_be_shuffled_from_a_size_on(told: dict[str, list[str]]) -> None:
    joins = [line for line in told["three"] if line.startswith("join ")]
    readers = [line.partition(": ")[2] for line in told["three"] if line.startswith("reads ")]
    assert readers == [f"reader three.join_1.input_{port}" for port in (1, 2, 3)]
    assert [line.partition(":")[0] for line in joins] == ["join three.join_1"]
    for line in joins:
        assert "vectorised, in one task; shuffled, because its equal columns allow it" in line
        assert "if they look at more than 683 MiB, which a worker cannot keep (kept_state)" in line
        new, remembered = (f"{rows_that_pay(64, kept) or 0:.2g}" for kept in (True, False))
        assert f"{float(new) / 1e6:.2g} million on 64 cores), or" in line
        assert f"{float(remembered) / 1e6:.2g} million on 64 cores) or more than 1024 MiB" in line
    remembered = "input_1 tuples for 1 min, input_2 tuples for 10 s, input_3 tuples for 5 s"
    assert f"(remembers {remembered})" in told["three"]
    assert sum(line.startswith("three.join_1.on_2: ") for line in told["three"]) == 1, "what runs is shown once"


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("lonely", "a LEFT JOIN must know of all tuples at once which of them found no partner"),
        ("band", "no equal columns tell which core a tuple belongs to"),
        ("path", "no column is equal in all its inputs, so that none tells which core a tuple belongs to"),
    ],
)
def test_a_join_that_is_never_shuffled_says_why(query: str, reason: str, told: dict[str, list[str]]) -> None:
    assert f"join {query}.join_1: vectorised, in one task at any size, because {reason}" in told[query]


def test_a_join_with_a_table_remembers_nothing(told: dict[str, list[str]]) -> None:
    assert (
        "join owned.join_1 with table hosts: vectorised, each task over its part; finds rows by an index of its keys"
    ) in told["owned"]
    assert not any("remembers" in line for line in told["owned"])


def test_sub_queries_and_set_operations_show_every_state(told: dict[str, list[str]]) -> None:
    assert [line for line in told["again"] if line.startswith("(remembers")] == [
        "(remembers a partial answer for every 1 min, for 1 min)",
        "(remembers a partial answer of each k for every 10 s, for 10 s)",
    ]
    assert told["missing"].count("(remembers a partial answer of each k for every 1 min, for 1 min)") == 1
    assert "missing.except.members: UNION ALL" in told["missing"]


def test_what_is_not_compiled_is_a_job_of_its_own(told: dict[str, list[str]]) -> None:
    lines = told["staged"]
    assert "staged.filter_1: k RLIKE '^a+'" in lines
    first = lines.index("job 1: staged.filter_1, staged.aggregate.input: catalyst, because REGEXP_LIKE is not compiled")
    assert lines[first - 1].endswith("2 jobs per step, because not all its expressions are compiled")
    assert lines[first + 1] == (
        "job 2: staged.aggregate, staged.project: vectorised, because all its expressions are compiled; "
        "in one task, because it remembers"
    )


def test_what_is_compiled_is_said_to_run_with_what_reads_it(told: dict[str, list[str]]) -> None:
    first = told["mixed"].index("2 jobs per step, because not all its expressions are compiled")
    assert told["mixed"][first + 2] == (
        "job 2: mixed.branch_2.filter_1, mixed.branch_2.project, mixed.union: "
        "vectorised, because all its expressions are compiled"
    )


def test_explain_needs_no_spark(app: Path) -> None:
    code = (
        "import sys; from freshet.cli.main import app\n"
        f"try: app(['explain', {str(app)!r}])\n"
        "except SystemExit: pass\n"
        "print('pyspark' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("query sliding")
    assert done.stdout.endswith("\nFalse\n")


def test_options_of_a_sink_read_as_in_the_file(app: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sink = '{kind = "table", path = "a.db", table = "n", keys = ["k", "n"], append = true}'
    app.write_text(APP.replace("[queries.rows]", f"sinks = [{sink}]\n\n[queries.rows]"))
    explain(app, "sliding")
    assert f"  sink table: path {app.parent}/a.db, table n, keys [k, n], append true\n" in capsys.readouterr().out


def test_a_type_that_only_spark_knows_is_said_to_be_known_at_the_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "app.toml"
    path.write_text("""
[streams.s]
schema = "ts timestamp, k string"

[queries.q]
sql = "SELECT k, ts + INTERVAL 5 SECONDS AS later FROM s"
""")
    explain(path)
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert "output q: k string, later (type known at the start)" in lines
