"""Runs the application of :mod:`tests.cluster.large_driver`, and checks what it answered."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
from pyarrow import feather
from tests.cluster.large import CHUNKS, chunk, queries
from tests.cluster.running import spark_log
from tests.cluster.task_log import Tasks


@dataclass
class Application:
    """A running :mod:`tests.cluster.large_driver`."""

    folder: Path
    process: subprocess.Popen[str]

    def push(self) -> None:
        """Pushes the next chunk."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def answered(self) -> None:
        """Waits until it is answered."""
        assert self.process.stdout is not None
        assert self.process.stdout.readline().strip().isdigit(), self.errors()

    def errors(self) -> str:
        """What it has said on standard error, in the end."""
        return (self.folder / "driver.err").read_text()[-3000:]

    def tasks(self) -> Tasks:
        """What Spark has said of tasks."""
        return Tasks.read(spark_log(self.folder))

    def units(self) -> dict[str, set[int]]:
        """The tasks that wrote a file for a unit; the file's name ends with the number of the task."""
        found: dict[str, set[int]] = {}
        for file in (self.folder / "state" / "segments").iterdir():
            unit, *numbers = file.stem.rsplit("-", 2)
            if len(numbers) == 2 and numbers[1].isdigit():
                found.setdefault(unit, set()).add(int(numbers[1]))
        return found


@contextmanager
def running(folder: Path, master: str, settings: dict[str, str], has_late_part: bool = False) -> Iterator[Application]:
    """Runs it; at the end it must have been sent all chunks."""
    given = [json.dumps(settings), json.dumps(has_late_part)]
    command = [sys.executable, "-m", "tests.cluster.large_driver", str(folder), master, *given]
    place = Path(__file__).parents[2]
    with (folder / "driver.err").open("wb") as errors:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=place
        )
    try:
        yield Application(folder, process)
        assert process.wait() == 0, (folder / "driver.err").read_text()[-3000:]
    finally:
        process.kill()
        process.communicate()


def check(folder: Path, has_late_part: bool = False) -> None:
    """Every query is well, and has answered as DuckDB does over all rows, in the same order."""
    assert set(json.loads((folder / "states.json").read_text()).values()) == {"active"}
    with duckdb.connect(config={"threads": "1"}) as connection:
        connection.register("s", pa.concat_tables(chunk(number) for number in range(CHUNKS)))
        connection.execute("CREATE MACRO late(number) AS number")
        for name, sql in queries(has_late_part).items():
            expected = connection.execute(f"{sql} ORDER BY id").fetchall()
            answer = feather.read_table(folder / f"{name}.arrow")
            assert list(zip(*(column.to_pylist() for column in answer.columns), strict=True)) == expected, name
