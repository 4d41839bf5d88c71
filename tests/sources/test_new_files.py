import gzip
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.log import Intake, Limits, Log
from freshet.model import Stream, UserError, parse_schema
from freshet.sources import FilesOptions, FilesSource, create
from freshet.sources.folder import FinishedFile

STREAM = Stream("s", parse_schema("k string, v int"))


def source(path: Path, stream: Stream = STREAM, **options) -> FilesSource:
    return FilesSource(FilesOptions.model_validate({"path": path, "settle": 0} | options), stream)


def write(path: Path, text: str, age: float = 100.0) -> Path:
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    os.utime(path, (1_000_000 - age, 1_000_000 - age))
    return path


def batches(files: FilesSource, now: float = 1_000_000.0, looks: int = 3) -> list[Any]:
    """Everything that is due within some looks at the folder."""
    found = []
    for look in range(looks):
        while (batch := files.poll(now + look)) is not None:
            found.append(batch)
    return found


def rows(found) -> list[Any]:
    return [row for b in found for row in (b.rows.to_pylist() if isinstance(b.rows, pa.Table) else b.rows)]


def values(found) -> list[int]:
    return [int(row["v"]) for row in rows(found)]


def csv(*numbers: int) -> str:
    return "k,v\n" + "".join(f"a,{number}\n" for number in numbers)


def test_every_format_once_in_order_of_time_then_name(tmp_path):
    write(tmp_path / "b.csv", csv(1, 2), age=50)
    write(tmp_path / "z.csv.gz", csv(3), age=40)
    write(tmp_path / "a.jsonl", '{"k": "x", "v": 4, "more": true}\n\n{"v": 5}\n', age=30)
    pyarrow.parquet.write_table(pa.table({"v": [6, 7], "k": ["y", "y"]}), tmp_path / "c.parquet")
    os.utime(tmp_path / "c.parquet", (999_990, 999_990))
    write(tmp_path / ".hidden.csv", csv(9))
    write(tmp_path / "_temporary.csv", csv(9))
    (tmp_path / "deep.csv").mkdir()
    files = source(tmp_path)
    assert values(batches(files)) == [1, 2, 3, 4, 5, 6, 7]
    assert batches(files, now=1_000_010) == []
    write(tmp_path / "a.csv", csv(8), age=0)
    assert values(batches(files, now=1_000_020)) == [8]


def test_the_order_of_names_and_a_pattern(tmp_path):
    write(tmp_path / "2.csv", csv(2), age=50)
    write(tmp_path / "1.csv", csv(1), age=10)
    write(tmp_path / "0.json", '{"v": 0}')
    assert values(batches(source(tmp_path, order="name", pattern="*.csv"))) == [1, 2]


def test_a_file_counts_when_it_has_not_changed_for_a_while(tmp_path):
    path = write(tmp_path / "a.csv", csv(1), age=0)
    files = source(tmp_path, settle=2)
    assert files.poll(1_000_001.0) is None
    assert files.next_due() == 1_000_001.5
    write(path, csv(1, 2), age=-1.5)
    assert files.poll(1_000_002.0) is None
    assert files.poll(1_000_003.0) is None
    assert values([files.poll(1_000_004.0)]) == [1, 2]
    # A clock of the files that is ahead: what counts is for how long it has not been seen to change.
    write(tmp_path / "b.csv", csv(3), age=-1000)
    assert files.poll(1_000_005.0) is None
    assert files.poll(1_000_006.5) is None
    assert values([files.poll(1_000_007.5)]) == [3]


def test_it_ends_where_it_is_not_to_follow(tmp_path):
    write(tmp_path / "a.csv", csv(1), age=0)
    files = source(tmp_path, settle=5, follow=False)
    assert files.poll(1_000_001.0) is None
    assert files.next_due() is not None, "there is a file that is not complete"
    assert values(batches(files, now=1_000_006)) == [1]
    assert files.next_due() is None


@given(
    cuts=st.lists(st.integers(0, 30), max_size=4), max_rows=st.integers(1, 7), order=st.sampled_from(["time", "name"])
)
@settings(max_examples=40, deadline=None)
def test_every_row_comes_once_wherever_it_is_restarted(tmp_path_factory, cuts, max_rows, order):
    path = tmp_path_factory.mktemp("files")
    write(path / "a.csv", csv(*range(8)), age=90)
    write(path / "b.json", "".join(json.dumps({"v": v}) + "\n" for v in range(8, 15)), age=80)
    write(path / "c.csv", csv(), age=70)
    pyarrow.parquet.write_table(pa.table({"k": ["x"] * 9, "v": list(range(15, 24))}), path / "d.parquet")
    os.utime(path / "d.parquet", (999_950, 999_950))
    found: list[Any] = []
    position = None
    for cut in [*sorted(cuts), 10_000]:
        files = source(path, max_rows=max_rows, order=order, remember=2)
        if position is not None:
            files.restore(json.loads(json.dumps(position)))
        now = 1_000_000.0
        while len(found) < cut and (batch := files.poll(now)) is not None:
            found.append(batch)
            position = batch.position
    assert values(found) == list(range(24))
    assert max(len(batch.arrivals) for batch in found) <= max_rows


def test_the_position_of_a_finished_file_does_not_need_it(tmp_path):
    path = write(tmp_path / "a.csv", csv(*range(5)))
    files = source(tmp_path, max_rows=3)
    first, last = batches(files)
    path.unlink()
    again = source(tmp_path)
    again.restore(last.position)
    assert batches(again) == []
    again = source(tmp_path)
    with pytest.raises(UserError, match=r"a\.csv is gone after 3 of its rows: put it back"):
        again.restore(first.position)
    write(path, csv(*range(50)))
    with pytest.raises(UserError, match=r"a\.csv has changed after 3 of its rows"):
        again.restore(first.position)
    write(path, "")
    again.restore(first.position)
    assert batches(again) == []


def test_what_was_read_is_remembered_in_little_room(tmp_path):
    files = source(tmp_path, remember=3, order="name")
    for number in range(20):
        write(tmp_path / f"{number:03}.csv", csv(number))
    found = batches(files)
    assert values(found) == list(range(20))
    assert found[-1].position["mark"] == (0, "016.csv")
    assert len(found[-1].position["done"]) == 3
    again = source(tmp_path, remember=3, order="name")
    again.restore(json.loads(json.dumps(found[-1].position)))
    write(tmp_path / "017a.csv", csv(100))
    assert values(batches(again)) == [100]


def test_a_file_that_comes_too_late_is_told(tmp_path):
    files = source(tmp_path, remember=2)
    for number in range(6):
        write(tmp_path / f"{number}.csv", csv(number), age=100 - number)
    assert values(batches(files)) == list(range(6))
    write(tmp_path / "old.csv", csv(7), age=5000)
    [batch] = batches(files, now=1_000_010)
    assert batch.rows == ["old.csv"]
    assert batch.rows[0].reason == (
        "the file was not read: its modification time lies before that of 2 files read already"
    )
    write(tmp_path / "new.csv", csv(8), age=0)
    assert values(batches(files, now=1_000_020)) == [8]


def test_a_read_file_that_is_touched_is_not_read_again(tmp_path):
    path = write(tmp_path / "a.csv", csv(1))
    files = source(tmp_path)
    assert values(batches(files)) == [1]
    os.utime(path, (1_000_003, 1_000_003))
    assert batches(files, now=1_000_010) == []


def test_what_cannot_be_read_is_a_dead_letter_and_the_rest_comes(tmp_path):
    stream = Stream("s", parse_schema("ts timestamp, k string, v int, d decimal(20,10)"), event_time="ts")
    good = '{"ts": "2024-01-01T00:00:00Z", "v": %d, "d": 1234567890.0123456789, "k": "x"}\n'
    lines = [good % 1, "{broken\n", "[1, 2]\n", '{"v": 2}\n', good % 3, '{"ts": 5, "v": "many"}\n', "\xff\n"]
    write(tmp_path / "a.json", "".join(lines), age=90)
    write(tmp_path / "b.csv", "ts,k,v,d\n2024-01-01T00:00:01Z,x,4,1.5\n1,2,3\n", age=80)
    write(tmp_path / "c.csv", "k,v\n1,2\n", age=70)
    write(tmp_path / "d.parquet", "no parquet", age=60)
    (tmp_path / "e.json.gz").write_bytes(gzip.compress((good % 5).encode() * 1000)[:-20])
    os.utime(tmp_path / "e.json.gz", (999_950, 999_950))
    write(tmp_path / "f.txt", "text", age=40)
    with Log.open(tmp_path / "state", limits=Limits(min_free_bytes=0)) as log:
        log.declare("s")
        intake = Intake(log, stream)
        for batch in batches(source(tmp_path, stream)):
            intake.append(batch.rows, batch.arrivals, source_position=batch.position)
        table = log.read("s", 0, log.end("s"))
    assert [v for v in table["v"].to_pylist() if v != 5] == [1, 3, 4]
    assert str(table["d"][0]) == "1234567890.0123456789"
    dead = [json.loads(line) for line in (tmp_path / "state" / "dead" / "s.jsonl").read_text().splitlines()]
    reasons = [letter["reason"] for letter in dead]
    assert [reason.split(":")[0] for reason in reasons] == [
        "not a line of JSON",
        "not a JSON object but list",
        "column ts",
        "column v",
        "not a line of JSON",
        "3 fields, the header has 4",
        "the file cannot be read",
        "the file cannot be read",
        "the file cannot be read",
        "the file cannot be read",
    ]
    assert [letter["row"] for letter in dead[-4:]] == ["c.csv", "d.parquet", "e.json.gz", "f.txt"]
    assert "set columns.ts, columns.d" in reasons[6]
    assert "must end in .csv, .json" in reasons[9]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"path": "nowhere"}, "stream s: source files: folder .*nowhere does not exist"),
        ({"path": "a.csv"}, "a.csv is a file: name its folder"),
        ({"columns": {"w": "x"}}, "columns.w is not a column of stream s"),
        ({"order": "size"}, "order: input should be 'time' or 'name'"),
        ({"settle": -1}, "settle: "),
        ({"patern": "*"}, "patern is not a known key"),
    ],
)
def test_wrong_options(tmp_path, options, message):
    write(tmp_path / "a.csv", "x\n")
    place = {"path": tmp_path / options["path"]} if "path" in options else {}
    with pytest.raises(UserError, match=message):
        create("files", {"path": tmp_path} | options | place, STREAM)


def test_check_looks_at_the_first_file(tmp_path):
    files = source(tmp_path)
    files.check()
    write(tmp_path / "a.csv", "key,v\nx,1\n")
    with pytest.raises(UserError, match=r"a\.csv has no column 'k' \(its columns: key, v\): set columns\.k"):
        files.check()
    source(tmp_path, columns={"k": "key"}).check()
    assert rows(batches(source(tmp_path, columns={"k": "key"}))) == [{"k": "x", "v": "1"}]


@given(st.lists(st.integers(0, 60), unique=True), st.integers(1, 5))
def test_finished_knows_every_file_that_was_read(numbers, remember):
    finished = FinishedFile(remember)
    for number in numbers:
        finished.add((number, f"f{number}"))
        finished = FinishedFile.restored(remember, json.loads(json.dumps(finished.position())))
    assert all((number, f"f{number}") in finished for number in numbers)
    assert len(finished.position()["done"]) <= remember
    assert (61, "new") not in finished


READER = """
import sys, time
from pathlib import Path
from freshet.log import Intake, Limits, Log
from freshet.model import Stream, parse_schema
from freshet.sources import Feeder, create

state, folder = Path(sys.argv[1]), sys.argv[2]
stream = Stream("s", parse_schema("id bigint"))
log = Log.open(state, limits=Limits(min_free_bytes=0))
log.declare("s")
options = {"path": folder, "settle": 0, "follow": False, "max_rows": 40, "order": "name", "remember": 2}
feeder = Feeder(create("files", options, stream), Intake(log, stream), log, "s", interval=0.001,
                wake=lambda: print(log.end("s"), flush=True))
feeder.start()
while feeder.status.state in ("new", "running", "waiting"):
    time.sleep(0.005)
feeder.stop()
print(feeder.status.state, log.end("s"), flush=True)
log.close()
"""


def test_sigkill_in_the_middle_of_files_neither_loses_nor_repeats_rows(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(6):
        ids = range(number * 1000, (number + 1) * 1000)
        if number % 2:
            write(folder / f"{number}.json", "".join(f'{{"id": {v}}}\n' for v in ids))
        else:
            write(folder / f"{number}.csv", "id\n" + "".join(f"{v}\n" for v in ids))
    command = [sys.executable, "-c", READER, str(tmp_path / "state"), str(folder)]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    for enough in (700, 2100, 3500):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        assert process.stdout is not None
        while int(process.stdout.readline()) < enough:
            pass
        process.send_signal(signal.SIGKILL)
        process.communicate()
        with Log.open(tmp_path / "state") as log:
            assert enough <= log.end("s") < 6000, "it had finished before it was killed"
    last = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, timeout=120, check=True)
    assert last.stdout.splitlines()[-1] == "stopped 6000"
    with Log.open(tmp_path / "state") as log:
        assert log.read("s", 0, 6000)["id"].to_pylist() == list(range(6000))
