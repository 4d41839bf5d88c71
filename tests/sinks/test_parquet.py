from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sinks.kit import kill_and_finish

from freshet.log import Limits, Log, Retention, write_parquet
from freshet.log.segments.export import row_groups
from freshet.model import ARRIVAL, Segment, Train, UserError
from freshet.sinks import ParquetOptions, ParquetSink, SinkRunner, Token, create


def table(*values: int) -> pa.Table:
    return pa.table({"v": pa.array(values, pa.int64())})


def sink(path: Path, **options) -> ParquetSink:
    return ParquetSink(ParquetOptions.model_validate({"path": path} | options))


def found(path: Path) -> list[int]:
    return list(pyarrow.dataset.dataset(path).to_table()["v"].to_pylist())


def names(path: Path) -> list[str]:
    return sorted(entry.name.partition("-")[2] for entry in path.iterdir())


@pytest.fixture
def log(tmp_path):
    with Log.open(tmp_path / "state", limits=Limits(min_free_bytes=0)) as log:
        log.declare("q", Retention())
        yield log


def append(log: Log, *values: int) -> None:
    log.append("q", pa.table({"v": pa.array(values, pa.int64()), ARRIVAL: pa.array([5] * len(values), pa.int64())}))


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def runner(log: Log, path: Path, clock: Clock, **options) -> SinkRunner:
    made = SinkRunner(log, interval=0.0, max_rows=3, clock=clock)
    made.add("q", "files", sink(path, **options))
    return made


def test_files_are_rolled_by_rows_and_by_time(log, tmp_path):
    path, clock = tmp_path / "out", Clock()
    made = runner(log, path, clock, rows=5, every=60)
    append(log, *range(7))
    made.run_round()
    made.run_round()
    assert names(path) == ["000000000000-000000000005.parquet"]
    assert log.cursor("q/files") == 5, "what waits for a file to be full waits in the log"
    clock.now = 59.0
    made.run_round()
    append(log, 7)
    assert log.cursor("q/files") == 5
    clock.now = 61.0
    made.run_round()
    assert names(path)[1:] == ["000000000005-000000000008.parquet"]
    assert log.cursor("q/files") == 8
    append(log, 8)
    made.run_round()
    assert log.cursor("q/files") == 8
    made.hasten("other")
    made.run_round()
    assert log.cursor("q/files") == 8
    made.hasten("q")
    made.run_round()
    assert found(path) == list(range(9))
    append(log, 9)
    made.start()
    made.stop()
    assert found(path) == list(range(10))


def test_a_log_that_takes_nothing_in_is_relieved(log, tmp_path):
    made = runner(log, tmp_path / "out", Clock())
    append(log, 1)
    made.run_round()
    assert log.cursor("q/files") == 0
    log.declare("q", Retention(bound_bytes=1))
    made.run_round()
    assert log.cursor("q/files") == 1
    assert found(tmp_path / "out") == [1]


def test_every_reader_sees_one_table(log, tmp_path):
    path, clock = tmp_path / "out", Clock()
    made = runner(log, path, clock, rows=4, arrival=True)
    append(log, *range(10))
    made.start()
    made.stop()
    (path / ".aa-000-001.parquet.open").write_text("half a file")
    assert found(path) == list(range(10))
    assert pyarrow.parquet.read_table(path)[ARRIVAL].to_pylist() == [5] * 10
    with duckdb.connect(config={"threads": "1"}) as database:
        query = database.execute(f"SELECT count(*), sum(v) FROM '{path}/*.parquet'")
        assert query.fetchall() == [(10, 45)]


@given(ends=st.lists(st.integers(1, 20), min_size=1, max_size=8), lost=st.data())
@settings(max_examples=40, deadline=None)
def test_what_comes_again_is_not_written_again(tmp_path_factory, ends, lost):
    """A crash after the rename and before the cursor has moved: the range comes again, shorter or longer."""
    path = tmp_path_factory.mktemp("out")
    state: dict[str, Any] = {}
    cursor = log_end = 0
    for rows in ends:
        log_end += rows
        made = sink(path)
        opened = made.open(state)
        end = lost.draw(st.integers(cursor, log_end))
        kept = made.write(table(*range(cursor, end)), Token("q", cursor, end))
        made.close()
        state = opened
        if lost.draw(st.booleans()):
            state, cursor = kept, end
    made = sink(path)
    made.open(state)
    made.write(table(*range(cursor, log_end)), Token("q", cursor, log_end))
    made.close()
    assert found(path) == list(range(log_end))


def test_an_unfinished_file_is_thrown_away_and_its_rows_come_again(tmp_path):
    path = tmp_path / "deep" / "out"
    made = sink(path)
    state = made.open({})
    half = path / f".{state['id']}-000000000000-000000000002.parquet.open"
    half.write_text("half")
    (path / ".other-000-001.parquet.open").write_text("another sink's")
    made.open(state)
    assert not half.exists()
    made.write(table(1, 2), Token("q", 0, 2))
    made.close()
    assert found(path) == [1, 2]
    assert (path / ".other-000-001.parquet.open").exists()


def test_files_of_others_are_refused(tmp_path):
    made = sink(tmp_path)
    state = made.open({})
    made.write(table(1), Token("q", 0, 1))
    made.close()
    other = sink(tmp_path)
    with pytest.raises(UserError, match=r"holds .*\.parquet already, and this sink did not write it: choose another"):
        other.open({})
    other = sink(tmp_path, append=True)
    other.open({})
    with pytest.raises(UserError, match="is written by another sink already"):
        sink(tmp_path, append=True).open({})
    other.write(table(2), Token("q", 0, 1))
    other.close()
    assert sorted(found(tmp_path)) == [1, 2]
    again = sink(tmp_path)
    assert again.refusal(state) is not None
    (tmp_path / "moved").mkdir()
    for file in tmp_path.glob(f"{state['id']}-*"):
        file.rename(tmp_path / "moved" / file.name)
    moved = sink(tmp_path / "moved")
    moved.open(state)
    moved.write(table(1, 3), Token("q", 0, 2))
    moved.close()
    assert found(tmp_path / "moved") == [1, 3]


def test_other_columns_are_refused(tmp_path):
    made = sink(tmp_path)
    state = made.open({})
    made.write(table(1), Token("q", 0, 1))
    for columns in ({"w": [1]}, {"v": ["text"]}):
        made.open(state)
        with pytest.raises(UserError, match="choose another path"):
            made.write(pa.table(columns), Token("q", 1, 2))
    made.close()


def test_groups_of_rows_are_large_however_small_the_segments(tmp_path):
    segments = tuple(Segment("q", n, 1000, 0, 0, 0, "f", 0, 100) for n in range(0, 150_000, 1000))
    groups = list(row_groups(Train("q", 500, 149_500, segments)))
    assert [(group.first, group.end, len(group.segments)) for group in groups] == [
        (500, 132_000, 132),
        (132_000, 149_500, 18),
    ]
    wide = tuple(Segment("q", n, 10, 0, 0, 0, "f", 0, 40 << 20) for n in range(0, 40, 10))
    assert [group.rows for group in row_groups(Train("q", 0, 40, wide))] == [20, 20]
    tiny = tuple(Segment("q", n, 1, 0, 0, 0, f"f{n}", 0, 100) for n in range(5000))
    assert max(len(group.segments) for group in row_groups(Train("q", 0, 5000, tiny))) < 4000


def test_each_group_is_a_row_group_of_the_file(tmp_path):
    path = tmp_path / "a.parquet"
    write_parquet(path, [table(1, 2, 3), table(4)])
    with pyarrow.parquet.ParquetFile(path) as file:
        assert [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)] == [3, 1]


def test_nothing_is_left_of_a_file_that_cannot_be_completed(tmp_path):
    def groups():
        yield table(1)
        raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        write_parquet(tmp_path / "a.parquet", groups())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "message"),
    [({"rows": 0}, "rows: "), ({"every": 0}, "every: "), ({"row": 5}, "row is not a known key"), ({}, "path: ")],
)
def test_wrong_options(tmp_path, options, message):
    with pytest.raises(UserError, match=f"sink parquet: {message}"):
        create("parquet", options if message == "path: " else {"path": tmp_path} | options)


def test_sigkill_at_any_moment_leaves_every_row_exactly_once(tmp_path):
    options = {"path": str(tmp_path / "out"), "rows": 60, "every": 0.01}
    count = kill_and_finish(tmp_path / "state", "parquet", options, [1, 1500])
    rows = pyarrow.dataset.dataset(tmp_path / "out").to_table()
    assert rows["id"].to_pylist() == list(range(count))
    assert not list((tmp_path / "out").glob(".*"))
